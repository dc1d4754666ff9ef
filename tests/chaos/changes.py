"""What the jobs of a storm verify: changes of which everybody knows whether they are right. No two have one text, so
that each is compiled, and none is answered from a cache."""

from attrs import frozen

SCALE = """// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] + NUMBER.0f;
}
"""

SUMS = """// cuda-lsp: workload
//   size     rows = 60, cols = 500
//   buffer   x: i32[rows * cols] in integers(0, 99)
//   buffer   y: i32[rows] out
//   launch   sums<<<rows, 128>>>(x, y, cols)
__global__ void sums(const int* x, int* y, int cols) {
    __shared__ int s[128];
    int t = threadIdx.x, sum = NUMBER;
    for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""

_EDITS = (
    ("scale", SCALE, "2.0f * x[i]", "(x[i] + x[i])", True),
    ("scale", SCALE, "i < n", "i < n - 1", False),
    ("scale", SCALE, "2.0f * x[i]", "(i % 997 ? 2.0f * x[i] : x[i])", False),
    ("sums", SUMS, "for (int k = 64; k > 0; k /= 2)", "for (int k = 64; k >= 1; k >>= 1)", True),
    ("sums", SUMS, "i < cols", "i < cols - 1", False),
)


@frozen
class Change:
    """``before`` is the saved file, ``after`` the text in the editor, ``right`` whether it does the same."""

    kernel: str
    before: str
    after: str
    right: bool


def change(number: int, wanted: bool | None = None) -> Change:
    """One of them; right or wrong as ``wanted`` where that matters."""
    edits = [edit for edit in _EDITS if wanted in (None, edit[4])]
    kernel, text, old, new, right = edits[number % len(edits)]
    before = text.replace("NUMBER", str(number))
    assert before.count(old) == 1, (kernel, old)
    return Change(kernel, before, before.replace(old, new), right)
