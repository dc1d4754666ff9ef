"""Other shapes of programs, each judged against itself: nothing right may be refused."""

import pytest
from attrs import evolve

from agent.evaluation.contracts.contract import Contract
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from tests.evaluation.kernels import original, rewrite, setting

HEAT = """
// cuda-lsp: workload
//   size     n = 20000, steps = 100
//   buffer   a: f32[n] inout
//   buffer   b: f32[n] out
//   repeat   steps { launch heat<<<(n + 255) / 256, 256>>>(a, b, n)  swap a b }
__global__ void heat(const float* a, float* b, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? a[i - 1] : a[i], right = i + 1 < n ? a[i + 1] : a[i];
    b[i] = a[i] + 0.1f * (left - 2.0f * a[i] + right);
}
"""

TWO_LAUNCHES = """
// cuda-lsp: workload
//   size     n = 300000
//   buffer   x: f32[n] in
//   buffer   y: f32[1] out
//   local    blocks = (n + 255) / 256
//   scratch  part: f32[blocks]
//   launch   sums<<<blocks, 256>>>(x, part, n)
//   launch   sums<<<1, 256>>>(part, y, blocks)
__global__ void sums(const float* x, float* y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0.0f;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) v += x[i];
    s[t] = v;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""

ATOMIC_SUM = """
// cuda-lsp: workload
//   size     n = 300000
//   buffer   x: f32[n] in
//   buffer   y: f32[1] out
//   fill     y 0
//   launch   sum<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void sum(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(y, x[i]);
}
"""

COMPACTION = """
// cuda-lsp: workload
//   size     n = 30000
//   buffer   x: i32[n] in integers(-100, 100)
//   buffer   y: i32[n] out
//   buffer   count: i32[1] out
//   fill     count 0
//   launch   keep<<<(n + 255) / 256, 256>>>(x, y, count, n)
//   compare  y multiset
__global__ void keep(const int* x, int* y, int* count, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && x[i] > 0) y[atomicAdd(count, 1)] = x[i];
}
"""

MATMUL = """
// cuda-lsp: workload
//   size     m = 512, n = 512, k = 512
//   buffer   a: f32[m * k] in
//   buffer   b: f32[k * n] in
//   buffer   c: f32[m * n] out
//   launch   mm<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)
__global__ void mm(const float* a, const float* b, float* c, int m, int n, int k) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= n || y >= m) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
    c[y * n + x] = sum;
}
"""

SPMV = """
// cuda-lsp: workload
//   size     rows = 20000, nnz = 100000
//   buffer   offsets: i32[rows + 1] in offsets(0, nnz)
//   buffer   columns: i32[nnz] in index(0, rows)
//   buffer   values: f32[nnz] in
//   buffer   x: f32[rows] in
//   buffer   y: f32[rows] out
//   launch   spmv<<<(rows + 127) / 128, 128>>>(offsets, columns, values, x, y, rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
}
"""

SYMBOL = """
__constant__ float weights[5];
// cuda-lsp: workload
//   size     n = 30000
//   symbol   weights: f32[5] in
//   buffer   x: f32[n + 4] in
//   buffer   y: f32[n] out
//   launch   filter<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void filter(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 5; ++k) sum += weights[k] * x[i + k];
    y[i] = sum;
}
"""

TEMPLATE = """
// cuda-lsp: workload
//   size     n = 30000
//   const    alpha = 0.3
//   buffer   x: f32[n] in
//   buffer   y: f32[n] inout
//   launch   axpy<float><<<(n + 255) / 256, 256>>>(alpha, x, y, n)
template <typename T>
__global__ void axpy(T alpha, const T* x, T* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
}
"""

HALF = """
#include <cuda_fp16.h>
// cuda-lsp: workload
//   size     n = 30000
//   buffer   x: f16[n] in
//   buffer   y: f16[n] out
//   launch   square<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void square(const half* x, half* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = __hmul(x[i], x[i]);
}
"""

DOUBLE = """
// cuda-lsp: workload
//   size     n = 30000
//   buffer   x: f64[n] in
//   buffer   y: f64[n] out
//   launch   cube<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void cube(const double* x, double* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] * x[i];
}
"""

TRANSPOSE = """
// cuda-lsp: workload
//   size     rows = 1000, cols = 600
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   t<<<dim3((cols + 31) / 32, (rows + 7) / 8), dim3(32, 8)>>>(x, y, rows, cols)
__global__ void t(const float* x, float* y, int rows, int cols) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c < cols && r < rows) y[c * rows + r] = x[r * cols + c];
}
"""

ARGMAX = """
// cuda-lsp: workload
//   size     rows = 500, cols = 300
//   buffer   x: f32[rows * cols] in
//   buffer   y: i32[rows] out
//   launch   best<<<(rows + 63) / 64, 64>>>(x, y, rows, cols)
//   compare  y argmax
__global__ void best(const float* x, int* y, int rows, int cols) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= rows) return;
    int at = 0;
    for (int i = 1; i < cols; ++i)
        if (x[row * cols + i] > x[row * cols + at]) at = i;
    y[row] = at;
}
"""


def contract(text: str) -> Contract:
    program, workload = original(text)
    prepared = prepare(program, workload, setting())
    assert isinstance(prepared, Prepared)
    return prepared.contract


def test_a_float_sum_of_atomics_depends_on_the_order_of_blocks() -> None:
    found = contract(ATOMIC_SUM)
    assert not found.deterministic
    assert "not deterministic" in found.summary


def test_integers_in_changing_order_are_proposed_as_a_multiset() -> None:
    found = contract(COMPACTION.replace("//   compare  y multiset\n", ""))
    assert found.kinds == {"y": "multiset", "count": "exact"}
    assert not found.deterministic


@pytest.mark.parametrize("text", [HEAT, TWO_LAUNCHES, MATMUL, TRANSPOSE])
def test_ordinary_kernels_are_deterministic(text: str) -> None:
    assert contract(text).deterministic


ALL = {
    "heat": HEAT, "two launches": TWO_LAUNCHES, "atomic sum": ATOMIC_SUM, "compaction": COMPACTION, "matmul": MATMUL,
    "spmv": SPMV, "symbol": SYMBOL, "template": TEMPLATE, "half": HALF, "double": DOUBLE, "transpose": TRANSPOSE,
    "argmax": ARGMAX,
}  # fmt: skip

TWIN = "original promoted to float64"
ORACLES = dict.fromkeys(ALL, TWIN) | {
    "compaction": "not needed",
    "argmax": "not needed",
    "half": "the emulator's float64 shadow (it uses types narrower than float)",
    "double": "none: it computes in float64 itself",
}


@pytest.mark.parametrize("name", ALL)
def test_itself(name: str) -> None:
    program, workload = original(ALL[name])
    prepared = prepare(program, workload, setting())
    assert isinstance(prepared, Prepared), prepared
    assert not prepared.contract.broken, prepared.contract.summary
    assert prepared.oracle.startswith(ORACLES[name])
    assert not prepared.selftest.survived
    for depth in ("screen", "full"):
        deep = evolve(prepared, setting=evolve(prepared.setting, depth=depth))
        found = judge(deep, rewrite(ALL[name], program.plan))
        assert found.correctness.state == "right", (depth, found.correctness)
        assert found.precision.state == "same"
        assert found.shown
