"""Accidental doubles and dear forms are written otherwise; what is meant to be double stays."""

import numpy as np
import pytest
from attrs import evolve

from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "float-arithmetic"


def kernel(body: str, above: str = "") -> str:
    return f"""\
{above}// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in uniform(0.5, 2)
//   buffer   y: f32[n] out
//   launch   wave<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void wave(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {body}
}}
"""


def lines(body: str, variant: str, lossy: bool = False) -> list[str]:
    request = evolve(ask(kernel(body)), lossy=lossy)
    made = {candidate.variant: candidate for candidate in candidates(request, NAME)}
    changed = diff(request, made[variant]).split("\n")
    return [line[1:].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]


FLOATS = {
    "y[i] = x[i] * 0.1;": "y[i] = x[i] * 0.1f;",
    "y[i] = 0.5 * x[i] * x[i];": "y[i] = 0.5f * x[i] * x[i];",
    "float r = 2.0 * (x[i] + 0.3); y[i] = r;": "float r = 2.0f * (x[i] + 0.3f); y[i] = r;",
    "y[i] = pow(x[i], 2) + 1.0;": "y[i] = (x[i] * x[i]) + 1.0f;",
    "y[i] = pow(x[i] + 1.0f, 3);": "y[i] = ((x[i] + 1.0f) * (x[i] + 1.0f) * (x[i] + 1.0f));",
    "y[i] = pow(2.5 - x[i], 2);": "y[i] = ((2.5f - x[i]) * (2.5f - x[i]));",
    "y[i] = pow(0.1 * pow(x[i], 2) + 0.3, 2);": "y[i] = powf(0.1f * (x[i] * x[i]) + 0.3f, 2);",
    "y[i] = pow(x[i], i);": "y[i] = powf(x[i], i);",
    "y[i] = pow(x[i], 1.7);": "y[i] = powf(x[i], 1.7f);",
    "y[i] = std::exp(-0.1 * x[i]);": "y[i] = expf(-0.1f * x[i]);",
    "float v = x[i]; v += 0.1 / n; y[i] = v;": "float v = x[i]; v += 0.1f / n; y[i] = v;",
    "y[i] = x[i] > 1.0f ? x[i] * 0.3 : 0.7;": "y[i] = x[i] > 1.0f ? x[i] * 0.3f : 0.7f;",
}


@pytest.mark.parametrize("body", FLOATS)
def test_floats_stay_floats(body: str) -> None:
    assert lines(body, "floats stay floats") == [FLOATS[body]]


FORMS = {
    "y[i] = 1.0f / sqrtf(x[i]);": "y[i] = rsqrtf(x[i]);",
    "y[i] = (x[i] + 1.0f) / sqrt(x[i] * 2.0f);": "y[i] = (x[i] + 1.0f) * rsqrtf(x[i] * 2.0f);",
    "y[i] = x[i] / 3.0f;": "y[i] = x[i] * (1.0f / 3.0f);",
    "y[i] = 1.0f / (x[i] * sqrtf(x[i] + 1.0f));": "y[i] = rsqrtf(x[i] + 1.0f) / x[i];",
    "y[i] = 3.0f / (sqrtf(x[i]) * (x[0] + 1.0f));": "y[i] = 3.0f * rsqrtf(x[i]) / (x[0] + 1.0f);",
    "y[i] = powf(x[i], 4.0f);": "y[i] = ((x[i] * x[i]) * (x[i] * x[i]));",
    "y[i] = 2.0f * x[i] / 7.0f / x[0];": "y[i] = 2.0f * x[i] * (1.0f / 7.0f) / x[0];",
}


@pytest.mark.parametrize("body", FORMS)
def test_cheaper_forms(body: str) -> None:
    assert lines(body, "cheaper forms") == [FORMS[body]]


def test_what_it_computes() -> None:
    body = "float r = 0.1 + pow(x[i], 3) * 0.3;\n    float s = exp(-0.7 * r);\n    y[i] = s / sqrtf(r) + r / 3.0f;"
    request = ask(kernel(body))
    x = np.random.default_rng(1).uniform(0.5, 2, 300).astype(np.float32)
    r = 0.1 + x.astype(np.float64) ** 3 * 0.3
    expected = np.exp(-0.7 * r) / np.sqrt(r) + r / 3
    made = candidates(request, NAME)
    assert [candidate.variant for candidate in made] == ["floats stay floats", "cheaper forms"]
    for candidate in made:
        found = run(rewritten(request, candidate), request.workload, {"x": x}, n=300)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_approximations_are_for_those_who_ask() -> None:
    assert lines("y[i] = expf(x[i]) * 0.1;", "approximations", lossy=True) == ["y[i] = __expf(x[i]) * 0.1f;"]
    assert "no float is computed in double" in refusal(ask(kernel("y[i] = expf(x[i]);")), NAME)


REFUSED = [
    "double s = x[i] * 0.1; y[i] = s;",
    "double d = x[i]; y[i] = d * 0.1;",
    "y[i] = (double)x[i] * 0.1;",
    "y[i] = x[i] * 0.5;",  # the compiler rounds to float once and computes in float
    "y[i] = 0.1;",
    "y[i] = sqrt(n);",
    "y[i] = x[i] / 4.0f;",  # a power of two: exact either way
    "y[i] = x[i] / x[0];",
    "y[i] = x[i] * (1.0f / 3.0f);",  # the compiler divides constants itself
    "if (x[i] > 0.1) y[i] = 1.0f;",
    "int k = n / 3; y[i] = k;",
    "y[i] = powf(x[i], 5.0f);",
    "unsigned k = i; y[i] = k / 3u;",
]


@pytest.mark.parametrize("body", REFUSED)
def test_what_stays(body: str) -> None:
    assert "no float is computed in double" in refusal(ask(kernel(body)), NAME)


def test_a_function_of_the_file_keeps_its_name() -> None:
    above = "__device__ float pow(float a, int b) { return a + b; }\n"
    assert refusal(ask(kernel("y[i] = pow(x[i], 2);", above)), NAME)


def test_a_power_with_an_effect_is_not_repeated() -> None:
    above = "__device__ float once(float* p) { return *p; }\n"
    request = ask(kernel("y[i] = powf(once(y + i), 2.0f);", above))
    assert refusal(request, NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(kernel("y[i] = x[i] * 0.1 / sqrtf(x[i]);"))
    for candidate in candidates(request, NAME)[1:]:
        assert refusal(after(request, candidate), NAME)


def test_line_ends_and_comments_stay() -> None:
    request = ask(kernel("y[i] = x[i] * 0.1;  // a tenth").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    changed = rewritten(request, candidate).document.text
    assert changed == request.document.text.replace(b"0.1;", b"0.1f;")
