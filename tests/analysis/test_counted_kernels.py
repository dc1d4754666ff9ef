"""What runs of a kernel tell the benchmark of the rules beside its counts."""

import shutil

import pytest

from agent.source.document import parse
from tests.analysis.counted_kernels import counted_kernel, declared, on_lines, races_without_barriers

OWN = b"""
__global__ void square(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] * 2.0f;
}
int main() {
    float *x, *y;
    cudaMalloc(&x, 64 * sizeof(float));
    cudaMalloc(&y, 64 * sizeof(float));
    square<<<1, 64>>>(x, y);
}
"""
PASSED = OWN.replace(b"s[threadIdx.x] * 2.0f", b"s[63 - threadIdx.x]")
ONE = PASSED.replace(b"    __syncthreads();\n", b"", 1)


def races(text: bytes, only: int | None) -> set[str] | None:
    document = parse(text, "given.cu")
    found = races_without_barriers(document, document.kernel("square"), only)
    return None if found is None else {kind for kind, *_ in found}


@pytest.mark.parametrize(
    ("text", "only", "expected"),
    [
        (OWN, None, set()),
        (PASSED, None, {"shared-memory race"}),
        (PASSED, 6, set()),
        (ONE, 5, {"shared-memory race"}),
        (ONE, 4, None),
    ],
)
def test_barriers_that_nobody_needs(text: bytes, only: int | None, expected: set[str] | None) -> None:
    assert races(text, only) == expected


def test_what_no_warp_came_to_is_known_and_the_block_is_the_programs() -> None:
    text = OWN.replace(b" * 2.0f;", b";\n    if (x[0] > 1e30f) y[0] = 0.1 * x[1] + x[2];")
    document = parse(text, "given.cu")
    row = counted_kernel(document, document.kernel("square"), False)
    assert (row["ended"], row["threads"], row["dynamic"]) == ("counted", 64, False)
    (store,) = [one for one in on_lines(row, [7]).line if one.opcode.startswith("st.global")]
    assert store.warps == 2, "what was executed is there once"
    double = [one.warps for one in on_lines(row, [8]).line if ".f64" in one.opcode]
    assert double and not any(double)


def test_of_several_launches_none_is_the_programs() -> None:
    document = parse(OWN.replace(b"(x, y);\n}", b"(x, y);\n    square<<<1, 32>>>(x, y);\n}"), "given.cu")
    assert "threads" not in counted_kernel(document, document.kernel("square"), False)


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="a C++ compiler reads them")
def test_what_the_toolkit_says_of_a_function() -> None:
    assert declared("cudaDeviceSynchronize") == "declared"
    assert declared("cudaBindTexture2DToNothing") == "gone"
    assert declared("cuda; int") == ""
