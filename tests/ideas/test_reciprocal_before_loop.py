"""One division before a loop for those of its turns; a divisor that a turn may change stays."""

import numpy as np
import pytest

from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "reciprocal-before-loop"


def kernel(body: str, float_: str = "float", dtype: str = "f32") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 300
//   size     m = 5
//   buffer   x: {dtype}[n * m] in uniform(0.5, 2)
//   buffer   y: {dtype}[n] out
//   launch   wave<<<(n + 127) / 128, 128>>>(x, y, n, m, 1.7)
__global__ void wave(const {float_}* x, {float_}* y, int n, int m, {float_} h) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {float_} sum = 0;
    {body}
    y[i] = sum;
}}
"""


def added(body: str) -> list[str]:
    request = ask(kernel(body))
    (candidate,) = candidates(request, NAME)
    changed = diff(request, candidate).split("\n")
    return [line[1:].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]


WRITTEN = {
    "for (int k = 0; k < m; ++k) sum += x[i * m + k] / h;": [
        "const float inverse_h = 1.0f / h;",
        "for (int k = 0; k < m; ++k) sum += x[i * m + k] * inverse_h;",
    ],
    "for (int k = 0; k < m; ++k) sum += 1.0f / (2.0f * h) * x[i * m + k];": [
        "const float inverse_h = 1.0f / (2.0f * h);",
        "for (int k = 0; k < m; ++k) sum += inverse_h * x[i * m + k];",
    ],
    "#pragma unroll 1\n    for (int k = 0; k < m; ++k) sum += k / h + x[i * m + k] / h / h;": [
        "const float inverse_h = 1.0f / h;",
        "for (int k = 0; k < m; ++k) sum += k * inverse_h + x[i * m + k] * inverse_h * inverse_h;",
    ],
    "for (int k = 0; k < m; ++k) { sum += x[i * m + k]; sum /= h; }": [
        "const float inverse_h = 1.0f / h;",
        "for (int k = 0; k < m; ++k) { sum += x[i * m + k]; sum *= inverse_h; }",
    ],
    "#ifdef UNROLL\n    #pragma unroll\n    #endif\n    for (int k = 0; k < m; ++k) sum += x[k] / h;": [
        "const float inverse_h = 1.0f / h;",
        "for (int k = 0; k < m; ++k) sum += x[k] * inverse_h;",
    ],
    # the outermost loop that leaves it alone
    "for (int j = 0; j < 2; ++j) {\n        float g = h + j;\n        for (int k = 0; k < m; ++k) {\n"
    "            sum += x[i * m + k] / g + x[k] / (h * n);\n        }\n    }": [
        "const float inverse = 1.0f / (h * n);",
        "const float inverse_g = 1.0f / g;",
        "sum += x[i * m + k] * inverse_g + x[k] * inverse;",
    ],
    "for (int k = 0; k < m; ++k) sum += x[k] / (1.0f / h);": [
        "const float inverse_h = 1.0f / (1.0f / h);",
        "for (int k = 0; k < m; ++k) sum += x[k] * inverse_h;",
    ],
    "int k = 0;\n    while (k < m) { sum += x[k++] / expf(h); }": [
        "const float inverse_h = 1.0f / expf(h);",
        "while (k < m) { sum += x[k++] * inverse_h; }",
    ],
}


@pytest.mark.parametrize("body", WRITTEN)
def test_what_is_written(body: str) -> None:
    assert added(body) == WRITTEN[body]


def test_pragmas_stay_at_their_loop() -> None:
    body = "#ifdef UNROLL\n    #pragma unroll\n#endif\n    for (int k = 0; k < m; ++k) sum += x[k] / h;"
    request = ask(kernel(body))
    (candidate,) = candidates(request, NAME)
    head = "    const float inverse_h = 1.0f / h;\n    #ifdef UNROLL\n    #pragma unroll\n#endif\n    for"
    assert head in rewritten(request, candidate).document.text.decode()


@pytest.mark.parametrize(("float_", "dtype", "close"), [("float", "f32", 1e-6), ("double", "f64", 1e-15)])
def test_what_it_computes(float_: str, dtype: str, close: float) -> None:
    body = "for (int k = 0; k < m; ++k) { sum += x[i * m + k] / (h * n) + k / h; sum /= h; }"
    request = ask(kernel(body, float_, dtype))
    kind = np.float32 if dtype == "f32" else np.float64
    x = np.random.default_rng(3).uniform(0.5, 2, 1500).astype(kind)
    total, h = np.zeros(300, np.longdouble), np.longdouble(kind(1.7))
    for k in range(5):
        total = (total + x.reshape(300, 5)[:, k] / (h * 300) + k / h) / h
    (candidate,) = candidates(request, NAME)
    found = run(rewritten(request, candidate), request.workload, {"x": x}, n=300, m=5)["y"]
    np.testing.assert_allclose(found, total.astype(np.float64), rtol=close)
    assert refusal(after(request, candidate), NAME)


STAYS = {
    "for (int k = 0; k < m; ++k) sum += x[k] / (h + k);": "may change in each turn",
    "for (int k = 0; k < m; ++k) { sum += x[k] / h; h = h * 0.5f; }": "may change in each turn",
    "for (int k = 0; k < m; ++k) sum += x[k] / x[i];": "no loop divides",  # that value is memory's
    "for (int k = 0; k < m; ++k) { float g = x[k]; sum += x[i] / g; }": "may change in each turn",
    "for (int k = 0; k < m; ++k) sum += n / h;": "no loop divides",  # the compiler does that before the loop
    "for (int k = 0; k < m; ++k) sum += x[k] / 3.0f;": "no loop divides",
    "for (int k = 0; k < m; ++k) sum += (k + n) / m;": "no loop divides",
    "for (int k = 0; k < m; ++k) { int s = i; s /= h; sum += s; }": "no loop divides",
    "sum = x[i] / h;": "no loop divides",
    "float g = h; float* p = &g;\n    for (int k = 0; k < m; ++k) { sum += x[k] / g; p[0] += 1.0f; }": "may change",
    "if (h > 0) for (int k = 0; k < m; ++k) sum += x[k] / h;": "no place for the reciprocal",
}


@pytest.mark.parametrize("body", STAYS)
def test_what_stays(body: str) -> None:
    assert STAYS[body] in refusal(ask(kernel(body)), NAME)
