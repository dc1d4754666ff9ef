"""An element that a loop keeps coming back to goes to a register; where another may see it in between, it stays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ideas.running import after, ask, candidates, refusal, rewritten, run

NAME = "register-accumulator"
LOOP = """\
y[row] = 1.0f;
    for (int k = 0; k < n; ++k) {
        y[row] += a[k * n + row] * x[k];
    }"""


def matvec(body: str = LOOP, arguments: str = "a, x, y, n", minimum: str = "") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 70{minimum}
//   buffer   a: f32[n * n] in integers(-3, 3)
//   buffer   x: f32[n] inout integers(-3, 3)
//   buffer   y: f32[n] inout integers(-3, 3)
//   launch   matvec<<<(n + 31) / 32, 32>>>({arguments})
__global__ void matvec(const float* a, float* x, float* y, int n) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    {body}
}}
"""


Expected = Callable[[Any, Any, Any], Any]
BODIES: dict[str, tuple[str, Expected]] = {
    "set before": (LOOP, lambda a, x, y: 1 + a.T @ x),
    "a turn at least": (
        "for (int k = 0; k < n; ++k) {\n        y[row] += a[k * n + row] * x[k];\n    }",
        lambda a, x, y: y + a.T @ x,
    ),
    "no braces": (
        "if (n > 2)\n        for (int k = 0; k < n; ++k) y[row] += a[k * n + row] * x[k];",
        lambda a, x, y: y + a.T @ x,
    ),
    "a branch inside": (
        "#pragma unroll 2\n    for (int k = 0; k < n; ++k) {\n        float v = y[row];\n"
        "        if (a[k * n + row] > v) y[row] = a[k * n + row];\n    }",
        lambda a, x, y: np.maximum(y, a.max(axis=0)),
    ),
    "two loops": (
        "for (int j = 0; j < 2; ++j)\n        for (int k = 0; k < n; ++k) y[row] += a[k * n + row] * x[k];",
        lambda a, x, y: y + 2 * (a.T @ x),
    ),
    "left early": (
        "for (int k = 0; k < n; ++k) {\n        y[row] += x[k];\n        if (k == 3) break;\n    }",
        lambda a, x, y: y + x[:4].sum(),
    ),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_sum_is_the_same(body: str, line_end: str) -> None:
    written, expected = BODIES[body]
    request = ask(matvec(written).replace("\n", line_end))
    (candidate,) = candidates(request, NAME)
    assert candidate.code.count("y_value") >= 3
    generator = np.random.default_rng(4)
    a, x, y = (generator.integers(-3, 4, shape).astype(np.float32) for shape in ((45, 45), (45,), (45,)))
    found = run(rewritten(request, candidate), request.workload, {"a": a, "x": x, "y": y}, n=45)["y"]
    np.testing.assert_array_equal(found, expected(a, x, y))


def test_the_outermost_loop_is_taken() -> None:
    (candidate,) = candidates(ask(matvec(BODIES["two loops"][0])), NAME)
    assert candidate.code.index("float y_value = y[row];") < candidate.code.index("for (int j")


REFUSED = {
    "one buffer": (matvec(arguments="a, y, y, n"), "may lie in the same buffer"),
    "a barrier": (matvec(LOOP.replace("y[row] +=", "__syncthreads();\n        y[row] +=")), "barrier"),
    "a return": (matvec(LOOP.replace("y[row] +=", "if (x[k] > 2.0f) return;\n        y[row] +=")), "left by more"),
    "maybe no turn": (
        matvec("for (int k = 0; k < n - 60; ++k) y[row] += x[k];"),
        "the loop may have no turn",
    ),
    "another element each turn": (matvec("for (int k = 0; k < n; ++k) y[k] += 1.0f;"), "no loop comes back"),
    "an index that is worked out in a turn": (
        matvec("int at = row;\n    for (int k = 0; k < n; ++k) { y[at] += x[k]; at = (at + 1) % n; }"),
        "no loop comes back",
    ),
    "hidden in a function": (matvec("for (int k = 0; k < n; ++k) y[abs(k - n)] += x[k];"), "no loop comes back"),
    "two elements": (matvec(LOOP.replace("x[k];", "x[k] + y[0];")), "no loop comes back"),
    "an atomic": (matvec("for (int k = 0; k < n; ++k) atomicAdd(&y[row], x[k]);"), "no loop comes back"),
    "only written": (matvec("for (int k = 0; k < n; ++k) y[row] = x[k];"), "no loop comes back"),
    "volatile": (matvec().replace("float* y", "volatile float* y"), "volatile"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(matvec())
    (candidate,) = candidates(request, NAME)
    assert "no loop comes back" in refusal(after(request, candidate), NAME)
