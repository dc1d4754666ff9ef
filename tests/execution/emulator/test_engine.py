"""Whole kernels through the emulator against NumPy."""

import numpy as np
import pytest

from agent.execution.emulator import engine
from tests.execution.emulator.building import build, launch, run

RNG = np.random.default_rng(7)

MATMUL = """
extern "C" __global__ void naive(const float* a, const float* b, float* c, int n) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, q = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n && q < n) { float s = 0; for (int k = 0; k < n; k++) s += a[r * n + k] * b[k * n + q]; c[r * n + q] = s; }
}
#define T 16
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float sa[T][T], sb[T][T];
    int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * T + ty, q = blockIdx.x * T + tx;
    float s = 0;
    for (int t = 0; t < n; t += T) {
        sa[ty][tx] = (r < n && t + tx < n) ? a[r * n + t + tx] : 0.f;
        sb[ty][tx] = (q < n && t + ty < n) ? b[(t + ty) * n + q] : 0.f;
        __syncthreads();
        for (int k = 0; k < T; k++) s += sa[ty][k] * sb[k][tx];
        __syncthreads();
    }
    if (r < n && q < n) c[r * n + q] = s;
}
"""


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_vector_add_is_exact_up_to_the_ragged_end() -> None:
    built = build("""extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }""")
    for n in (1, 31, 255, 1000, 70_001):
        a, b = floats(n), floats(n)
        answer, out = run(built, launch("add", -(-n // 256), 256, "a", "b", "c", n), {"a": a, "b": b, "c": 4 * n})
        assert answer.status == "ok" and answer.complete
        np.testing.assert_array_equal(out["c"].view(np.float32), a + b)
        assert answer.written is not None and answer.written["c"].all() and not answer.written["a"].any()


def test_matrix_products_agree_with_float64() -> None:
    built = build(MATMUL)
    for n in (16, 33, 64):
        a, b = floats(n, n), floats(n, n)
        for kernel in ("naive", "tiled"):
            blocks = -(-n // 16)
            step = launch(kernel, (blocks, blocks, 1), (16, 16, 1), "a", "b", "c", n)
            answer, out = run(built, step, {"a": a, "b": b, "c": np.zeros((n, n), np.float32)})
            assert answer.status == "ok"
            np.testing.assert_allclose(out["c"], a.astype(np.float64) @ b, rtol=0, atol=1e-4)


def test_a_fault_of_the_emulator_says_where_and_not_what(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("operands could not be broadcast")

    monkeypatch.setattr(engine, "_step", broken)
    answer, _ = run(build('extern "C" __global__ void k(float* y) { y[0] = 1.0f; }'), launch("k", 1, 1, "y"), {"y": 4})
    assert answer.status == "refused" and "broadcast" not in answer.message and "ValueError" not in answer.message
    assert "test_engine.py, line" in answer.message and "report" in answer.message
