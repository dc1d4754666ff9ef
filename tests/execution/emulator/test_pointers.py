"""Calls through pointers: tables of functions, virtual functions, a pointer that leads nowhere; and recursion."""

import numpy as np
import pytest

from tests.execution.emulator.building import build, launch, run

BOTH = pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])


@BOTH
def test_a_table_of_functions(options: tuple[str, ...]) -> None:
    built = build(
        """typedef float (*Function)(float, int);
        __device__ __noinline__ float plus(float a, int b) { return a + b; }
        __device__ __noinline__ float times(float a, int b) { return a * b; }
        __device__ __noinline__ float loop(float a, int b) { for (int i = 0; i < b; i++) a = a * 0.5f + i; return a; }
        __device__ Function table[3] = {plus, times, loop};
        extern "C" __global__ void k(const float* x, float* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = table[i % 3](x[i], i % 7); }""",
        *options,
    )
    x = np.random.default_rng(4).standard_normal(100).astype(np.float32)
    answer, out = run(built, launch("k", 2, 64, "x", "y", 100), {"x": x, "y": np.zeros(100, np.float32)})
    assert answer.status == "ok", answer

    def loop(a: np.float32, b: int) -> np.float32:
        for i in range(b):
            a = np.float32(np.float32(a * np.float32(0.5)) + np.float32(i))
        return a

    ways = (lambda a, b: a + np.float32(b), lambda a, b: a * np.float32(b), loop)
    np.testing.assert_array_equal(out["y"], [ways[i % 3](x[i], i % 7) for i in range(100)])


@BOTH
def test_virtual_functions(options: tuple[str, ...]) -> None:
    built = build(
        """struct Shape { float s; __device__ virtual float area() const = 0; };
        struct Square : Shape { __device__ float area() const override { return s * s; } };
        struct Circle : Shape { __device__ float area() const override { return 3.0f * s * s; } };
        extern "C" __global__ void k(const float* x, float* y, int n) {
            int i = threadIdx.x; Square square; Circle circle; square.s = x[i]; circle.s = x[i] + 1;
            const Shape* shapes[2] = {&square, &circle};
            y[i] = shapes[i * n % 2]->area(); }""",
        *options,
    )
    x = np.arange(40, dtype=np.float32)
    answer, out = run(built, launch("k", 1, 40, "x", "y", 3), {"x": x, "y": np.zeros(40, np.float32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.where(np.arange(40) % 2, 3 * (x + 1) ** 2, x**2))


def test_a_pointer_that_leads_nowhere_is_told() -> None:
    source = """typedef int (*Function)(int);
        __device__ __noinline__ int one(int a) { return a + 1; }
        __device__ Function kept;
        __device__ __noinline__ int again(int a) { return a > 3 ? a : kept(a + 1); }
        extern "C" __global__ void k(int* y, int how) {
            if (how == 1) kept = one; if (how == 2) kept = again;
            y[threadIdx.x] = kept(threadIdx.x); }"""
    y = np.zeros(4, np.int32)
    answer, out = run(build(source), launch("k", 1, 4, "y", 1), {"y": y})
    assert answer.status == "ok" and out["y"].tolist() == [1, 2, 3, 4], answer
    answer, _ = run(build(source), launch("k", 1, 4, "y", 0), {"y": y})
    (fault,) = answer.faults
    assert fault.kind == "trap" and "pointer" in fault.message and fault.where.line == 7
    answer, out = run(build(source), launch("k", 1, 4, "y", 2), {"y": y})
    assert answer.status == "ok" and out["y"].tolist() == [4, 4, 4, 4], answer


@BOTH
def test_recursion_some_levels_deep_and_no_deeper(options: tuple[str, ...]) -> None:
    source = """__device__ __noinline__ int sum(int a) { return a < 1 ? 0 : a + sum(a - 1) % 17; }
        __device__ __noinline__ int fib(int a) { return a < 2 ? a : fib(a - 1) + fib(a - 2); }
        extern "C" __global__ void k(int* y, int n) {
            y[threadIdx.x] = sum(threadIdx.x + n) * 100 + fib(threadIdx.x); }"""
    built, y = build(source, *options), np.zeros(7, np.int32)
    answer, out = run(built, launch("k", 1, 7, "y", 9), {"y": y})
    assert answer.status == "ok", answer
    sums = [0]
    for a in range(1, 16):
        sums.append(a + sums[-1] % 17)
    assert out["y"].tolist() == [sums[9 + i] * 100 + (0, 1, 1, 2, 3, 5, 8)[i] for i in range(7)]
    answer, _ = run(built, launch("k", 1, 7, "y", 40), {"y": y})
    assert answer.status == "refused" and "recursion deeper" in answer.message
