"""Pointers to arrays, and arrays of arrays, in host code: their sizes, their steps and what is stored through them."""

import pytest

from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.errors import NoWorkload
from agent.workload.static import infer
from agent.workload.workload import Access, Workload

KERNEL = """#define M 4
__global__ void k(float (*a)[M], int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i][0] = 1;
}
"""


def inferred(host: str, kernel: str = KERNEL) -> Workload:
    document = parse((kernel + host).encode())
    return infer(document, document.kernels[0])


def nbytes(host: str, kernel: str = KERNEL) -> list[int]:
    document = parse((kernel + host).encode())
    found = infer(document, document.kernels[0])
    return [buffer.nbytes for buffer in bind(found, found.plan, None, document).buffers]


@pytest.mark.parametrize(
    "declared",
    [
        "float (*a)[M]; cudaMalloc(&a, n * sizeof(*a));",
        "float (*a)[M]; cudaMalloc((void**)&a, n * sizeof(a[0]));",
        "float (*a)[4]; cudaMalloc(&a, n * sizeof(float[4]));",
        "float (*a)[2 + 2]; cudaMalloc(&a, n * sizeof(*a));",
        "float (*a)[M] = nullptr; cudaMalloc(&a, n * sizeof(*a));",
        "float h[100][M]; float (*a)[M]; cudaMalloc(&a, n * sizeof(h[0]));",
        "float h[100][M]; float* a; cudaMalloc(&a, sizeof(h));",
        "const int rows = 4; float h[100][rows]; float* a; cudaMalloc(&a, n * sizeof(*h));",
        "float h[100][2][2]; float* a; cudaMalloc(&a, n * sizeof(h[0]));",
        "float* h[100]; float* a; cudaMalloc(&a, n * 2 * sizeof(h[0]));",
        "float** h; float* a; cudaMalloc(&a, n * 2 * sizeof(*h));",
        "float (*h)[M]; float* a; cudaMalloc(&a, n * 2 * sizeof(h));",
    ],
)
def test_one_step_is_as_long_as_a_row(declared: str) -> None:
    assert nbytes(f"int main() {{ const int n = 100; {declared} k<<<1, 128>>>((float (*)[M])a, n); }}") == [1600]


@pytest.mark.parametrize("parameter", ["float (*rows)[M]", "float rows[][M]", "float rows[100][M]"])
def test_parameters_of_host_functions(parameter: str) -> None:
    host = (
        f"void go({parameter}, int n) {{ float* a; cudaMalloc(&a, n * sizeof(*rows)); "
        "k<<<1, 128>>>((float(*)[M])a, n); }"
        "int main() { float h[100][M]; go(h, 100); }"
    )
    assert nbytes(host) == [1600]


def test_a_row_whose_length_is_not_known_is_asked_for() -> None:
    with pytest.raises(NoWorkload, match="the size of"):
        inferred(
            "int main() { const int n = 9; float (*a)[n * 2]; cudaMalloc(&a, n * sizeof(*a)); k<<<1, 9>>>(a, n); }"
        )


def test_stores_into_rows_fill_what_they_are_rows_of() -> None:
    host = """int main() { const int n = 100; float (*a)[M]; cudaMallocManaged(&a, n * 16);
        for (int i = 0; i < n; i++) for (int j = 0; j < M; j++) FILL;
        k<<<1, 128>>>(a, n); }"""
    kernel = KERNEL.replace("a[i][0] = 1;", "a[i][0] = 1, a[i][2] = a[i][0] + a[i][1];")
    assert inferred(host.replace("FILL", "a[i][j] = i * j"), kernel).buffers[0].access is Access.INOUT
    zeroed = inferred(host.replace("FILL", "a[i][j] = 0"), kernel).buffers[0]
    assert zeroed.access is Access.INOUT and zeroed.domain.kind == "zeros"
    assert inferred(host.replace("FILL", "n"), kernel).buffers[0].access is Access.OUT


def test_a_pointer_into_rows_counts_in_rows() -> None:
    with pytest.raises(NoWorkload, match="counts in arrays"):
        inferred("int main() { const int n = 9; float (*a)[4]; cudaMalloc(&a, n * 16); k<<<1, 9>>>(a + 1, n); }")
