"""f(-d) from f(d), where the function's own text or the library's definition says that they add up to a constant."""

import math

import numpy as np
import pytest

from tests.ideas.running import Array, after, ask, candidates, refusal, rewritten, run

NAME = "complement-reuse"
CDF = "__device__ float cdf(float d) { return 0.5f * erfcf(-d * 0.70710678f); }"


def tails(body: str, function: str = CDF) -> str:
    return f"""\
{function}

// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in uniform(-3, 3)
//   buffer   y: f32[n] out
//   launch   tails<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void tails(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float d = x[i];
    {body}
}}
"""


def phi(d: Array) -> Array:
    """The normal distribution function, in double."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in d.astype(np.float64)])


FUNCTIONS = {
    "complementary error function": CDF,
    "error function": "__device__ float cdf(float d) { return 0.5f * (1.0f + erff(d * 0.70710678f)); }",
    "a named constant": "#include <math.h>\n__device__ float cdf(float d) { return 0.5f * erfcf(-d * M_SQRT1_2); }",
    "a root": "__device__ float cdf(float d) { return 0.5f * (1.0f + erff(d / sqrtf(2.0f))); }",
    "the library's": "__device__ float cdf(float d) { return normcdff(d); }",
    "a sum": "__device__ float cdf(float d) { return 0.25f * erfcf(-0.70710678f * d) + normcdff(+d) / 2.0f; }",
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_difference_is_the_value(function: str, line_end: str) -> None:
    body = "float a = 3.0f * cdf(d);\n    y[i] = a - cdf(-d) * d;"
    request = ask(tails(body, FUNCTIONS[function]).replace("\n", line_end))
    (candidate,) = candidates(request, NAME)
    assert "const float cdf_d = cdf(d);" in candidate.code and "(1.0f - cdf_d) * d" in candidate.code
    x = np.random.default_rng(1).uniform(-3, 3, 300).astype(np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x}, n=300)["y"]
    np.testing.assert_allclose(found, 3 * phi(x) - phi(-x) * x, atol=2e-6)


def test_a_function_of_the_library() -> None:
    request = ask(tails("y[i] = erfcf(-d) + 2.0f * erfcf(d) + erff(d) + erff(-d);"))
    (candidate,) = candidates(request, NAME)
    assert "y[i] = (2.0f - erfcf_d) + 2.0f * erfcf_d + erff_d + -erff_d;" in candidate.code
    x = np.linspace(-2, 2, 300).astype(np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x}, n=300)["y"]
    expected = [2 + math.erfc(value) for value in x.astype(np.float64)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


REFUSED = {
    "no negative": tails("y[i] = cdf(d) + cdf(d + 1.0f);"),
    "another variable": tails("float e = d * d;\n    y[i] = cdf(d) + cdf(-e);"),
    "it changes in between": tails("float a = cdf(d);\n    d += 1.0f;\n    y[i] = a + cdf(-d);"),
    "no such sum": tails("y[i] = cdf(d) + cdf(-d);", "__device__ float cdf(float d) { return erfcf(d * d); }"),
    "another name": tails(
        "y[i] = cdf(d) + cdf(-d);",
        "__device__ float s;\n__device__ float cdf(float d) { return 0.5f * erfcf(-d * s); }",
    ),
    "a factor of d": tails("y[i] = cdf(d) + cdf(-d);", "__device__ float cdf(float d) { return d * erfcf(d); }"),
    "several statements": tails(
        "y[i] = cdf(d) + cdf(-d);", "__device__ float cdf(float d) { if (d > 1.0f) return 1.0f; return erfcf(d); }"
    ),
    "of an integer": tails("int k = i;\n    y[i] = cdf(k) + cdf(-k);", "__device__ int cdf(int d) { return 2 * d; }"),
    "other blocks": tails("if (d > 0.0f) { y[i] = cdf(d); } else { y[i] = cdf(-d); }"),
    "no braces": tails("if (d > 0.0f) y[i] = cdf(d) + cdf(-d);"),
    "the file's own meaning": tails(
        "y[i] = erfcf(d) + erfcf(-d);",
        "__device__ float erfcf(float d, int k);\n__device__ float erfcf(float d) { return d * d; }",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    assert "no function is called with a value and its negative" in refusal(ask(REFUSED[case]), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(tails("y[i] = cdf(d) * cdf(-d);"))
    (candidate,) = candidates(request, NAME)
    assert refusal(after(request, candidate), NAME)
