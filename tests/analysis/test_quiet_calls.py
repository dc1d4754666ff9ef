"""Which device functions do nothing but compute."""

import pytest

from agent.analysis.facts import analyse
from agent.analysis.patterns.quiet_calls import is_quiet
from agent.source.document import parse

FUNCTIONS = {
    "__device__ float f(float x) { float y = x * x; y += 1; return y; }": True,
    "__device__ __forceinline__ float f(float x) { float a[2]; a[0] = x; a[1] = sqrtf(a[0]); return a[1]; }": True,
    "__device__ float g(float x) { return expf(x); }\n__device__ float f(float x) { return g(x) + g(-x); }": True,
    "__device__ float h(const float* p, int i) { return p[i]; }\n__device__ float f(float x) { return x; }": True,
    "template <typename T> __device__ T f(T x) { return x < 0 ? -x : x; }": True,
    "__device__ float f(float x) { return x * threadIdx.x; }": False,
    "__device__ float last;\n__device__ float f(float x) { last = x; return x; }": False,
    "__device__ float* hidden;\n__device__ float f(float x) { hidden[0] = x; return x; }": False,
    "__device__ float f(float& x) { x += 1; return x; }": False,
    "__device__ float g(float* p) { return p[0]; }\n__device__ float f(float x) { return g(&x); }": False,
    "__device__ float f(float x) { __shared__ float s; s = x; return s; }": False,
    "__device__ float f(float x) { static float s; s += x; return s; }": False,
    '__device__ float f(float x) { printf("%f", x); return x; }': False,
    "__device__ float f(float x) { int* p = (int*)&x; *p = 3; return x; }": False,
    "__device__ float f(float x) { return f(x - 1); }": False,
    "float f(float x) { return x; }": False,
    "": False,
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text: str) -> None:
    document = parse(f"{text}\n__global__ void k(float* y, float x) {{ y[0] = f(x); }}\n".encode(), "test.cu")
    facts = analyse(document, document.kernel("k"))
    (call,) = facts.calls
    assert is_quiet(call, facts) is FUNCTIONS[text]
