"""Half of one plus a tanh is a logistic function, wherever the factors stand; anything else stays."""

import numpy as np
import pytest

from tests.ideas.running import Array, ask, candidates, diff, refusal, rewritten, run

NAME = "sigmoid-for-tanh"


def kernel(value: str, element: str = "float", dtype: str = "f32") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 300
//   buffer   x: {dtype}[n] in normal
//   buffer   y: {dtype}[n] out
//   launch   gate<<<(n + 127) / 128, 128>>>(x, y, n, 0.7)
__global__ void gate(const {element}* x, {element}* y, int n, {element} scale) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {element} v = x[i];
    y[i] = {value};
}}
"""


WRITTEN = {
    "0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)))": (
        "v / (1.0f + expf(-1.59576912f * (v + 0.044715f * v * v * v)))"
    ),
    "(tanhf(scale * v) + 1.f) * v * 0.5f": "v / (1.0f + expf(-2.0f * (scale * v)))",
    "v * (0.5f * (1 + tanh(v)))": "v / (1.0f + expf(-2.0f * v))",
    "0.5f * (1.0f + tanhf(0.5f * v)) - 1.0f": "(1.0f / (1.0f + expf(-1.0f * v))) - 1.0f",
    "v * scale * 0.5f * (1.0f + tanhf(-v))": "(v * scale) / (1.0f + expf(-2.0f * (-v)))",
}


@pytest.mark.parametrize("value", WRITTEN)
def test_what_is_written(value: str) -> None:
    request = ask(kernel(value))
    fast, exact = candidates(request, NAME)
    assert (fast.variant, exact.variant) == ("fast division", "one exponential")
    assert f"+    y[i] = {WRITTEN[value]};" in diff(request, exact)
    assert "__fdividef(" in diff(request, fast)


def gelu(x: Array) -> Array:
    """In double precision, by the tanh."""
    wide = x.astype(np.float64)
    return np.asarray(0.5 * wide * (1 + np.tanh(0.79788456 * (wide + 0.044715 * wide**3))))


def test_values_over_the_whole_range() -> None:
    x = np.concatenate([np.linspace(-6, 6, 200), np.linspace(-90, 90, 80), [0, -0.0, 1e-30, -1e-30, 3e38, -3e38]])
    x = x.astype(np.float32)
    request = ask(kernel(next(iter(WRITTEN))))
    for candidate in candidates(request, NAME):
        found = run(rewritten(request, candidate), request.workload, {"x": x}, n=len(x))["y"]
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_allclose(found, gelu(x), rtol=3e-6, atol=2e-7)


def test_infinite_values_come_out_as_before() -> None:
    x = np.array([np.inf, -np.inf, np.nan], np.float32)
    request = ask(kernel(next(iter(WRITTEN))))
    for candidate in candidates(request, NAME):
        found = run(rewritten(request, candidate), request.workload, {"x": x}, n=3)["y"]
        np.testing.assert_array_equal(found, [np.inf, np.nan, np.nan])


def test_doubles_keep_their_division() -> None:
    value = "0.5 * v * (1.0 + tanh(0.79788456 * (v + 0.044715 * v * v * v)))"
    request = ask(kernel(value, "double", "f64"))
    (made,) = candidates(request, NAME)
    assert "v / (1.0 + exp(-1.59576912 * (v + 0.044715 * v * v * v)))" in made.code
    x = np.linspace(-30, 30, 256)
    found = run(rewritten(request, made), request.workload, {"x": x}, n=256)["y"]
    np.testing.assert_allclose(found, gelu(x), rtol=1e-12, atol=1e-14)


REFUSED = (
    "0.25f * v * (1.0f + tanhf(v))",
    "0.5f * v * (1.0f - tanhf(v))",
    "0.5f * v * (2.0f + tanhf(v))",
    "0.5f + v * (1.0f + tanhf(v))",
    "0.5f * v / (1.0f + tanhf(v))",
    "0.5 * v * (1.0f + tanhf(v))",
    "0.5f * tanhf(scale) * (1.0f + tanhf(v))",
)


@pytest.mark.parametrize("value", REFUSED)
def test_what_is_left_alone(value: str) -> None:
    assert "no product holds" in refusal(ask(kernel(value)), NAME)
