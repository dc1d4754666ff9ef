"""What a rewrite does to the rest of its file is told, or refused where nobody could say what was judged."""

import pytest

from agent.evaluation.bystanders import changed, doubled
from tests.evaluation.kernels import original, rewrite

FILE = """
__device__ float twice(float v) { return 2.0f * v; }
__global__ void other(float* z, int count) { if (threadIdx.x < count) z[threadIdx.x] = twice(z[threadIdx.x]); }
int host(int limit) { return limit + 1; }
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = twice(x[i]) + 0.25f;
}
"""


def told(old: str, new: str) -> tuple[str, ...]:
    program, _ = original(FILE)
    assert FILE.count(old) == 1
    return changed(program, rewrite(FILE.replace(old, new), program.plan))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("twice(x[i]) + 0.25f", "fmaf(2.0f, x[i], 0.25f)"),
        ("    if (i < n)", "#define SMALL 3\n    if (i < n)"),
        ("// cuda-lsp: workload", "__device__ float thrice(float v) { return 3.0f * v; }\n// cuda-lsp: workload"),
        ("__device__ float twice", "\n\n__device__ float twice"),
    ],
)
def test_what_leaves_the_rest_alone_is_not_told(old: str, new: str) -> None:
    assert told(old, new) == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return 2.0f * v", "return v + v", "the kernel `other`"),
        ("    if (i < n)", "#define limit 0\n    if (i < n)", "what `limit` means to the rest of the file"),
        ("    if (i < n)", "#define count 0\n    if (i < n)", "what `count` means to the rest of the file"),
        ("__device__ float twice", "#define v 1.0f\n__device__ float twice", "the kernel `other`"),
        ("__global__ void other", "__global__ void another", "the kernel `other`"),
    ],
)
def test_what_changes_beside_the_kernel_is_told(old: str, new: str, words: str) -> None:
    assert words in told(old, new)


def test_a_second_kernel_of_the_same_name_is_refused() -> None:
    program, _ = original(FILE)
    more = "__global__ void scale(float* x, float* y, int n) {}\n"
    for text in (FILE + more, FILE.replace("// cuda-lsp: workload", f"{more}// cuda-lsp: workload")):
        assert "2 kernels are called `scale`" in doubled(program, rewrite(text, program.plan))
    assert not doubled(program, rewrite(FILE + more.replace("scale", "scaled"), program.plan))
    both, _ = original(more + FILE)
    assert not doubled(both, rewrite(more + FILE, both.plan))
