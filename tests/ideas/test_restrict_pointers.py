"""Pointers are marked as apart where the plan shows it and something may come of it."""

import re

import numpy as np
import pytest

from agent.execution.compiler import CompileFailure, Options, build
from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "restrict-pointers"
LOOP = "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * scale[0];"


def stretch(body: str = LOOP, arguments: str = "x, scale, y, n", signature: str = "") -> str:
    signature = signature or "const float* x, const float *scale, float * y, int n"
    return f"""\
// cuda-lsp: workload
//   size     n = 700
//   buffer   x: f32[n] inout integers(-9, 9)
//   buffer   scale: f32[4] in
//   buffer   y: f32[n] inout integers(-9, 9)
//   launch   stretch<<<1, 64>>>({arguments})
__global__ void stretch({signature}) {{
    {body}
}}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_the_signature_changes(line_end: str) -> None:
    request = ask(stretch().replace("\n", line_end))
    (candidate,) = candidates(request, NAME)
    added = [line[1:].strip() for line in diff(request, candidate).split("\n") if re.match(r"\+[^+]", line)]
    signature = "const float* __restrict__ x, const float *__restrict__ scale, float * __restrict__ y, int n"
    assert " ".join(added) == f"__global__ void stretch({signature}) {{"
    x, scale = np.arange(333, dtype=np.float32), np.array([3, 0, 0, 0], np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x, "scale": scale, "y": x}, n=333)["y"]
    np.testing.assert_array_equal(found, 3 * x)


def test_the_compiler_makes_use_of_it() -> None:
    """The scale is loaded before the loop, not in each turn: fewer loads stand in the code than before."""
    request = ask(stretch("for (int i = 0; i < n; ++i) y[i * 64 + threadIdx.x] = scale[0];"))
    (candidate,) = candidates(request, NAME)

    def loads(program) -> int:  # type: ignore[no-untyped-def]
        built = build(program, Options(arch="sm_90"))
        assert not isinstance(built, CompileFailure)
        return len(re.findall(r"\bld\.global", built.ptx if isinstance(built.ptx, str) else built.ptx.decode()))

    from agent.workload.program import Program

    assert loads(rewritten(request, candidate)) == 1 < loads(Program(request.document, request.plan, "original"))


def test_what_is_marked_is_left_alone() -> None:
    (candidate,) = candidates(
        ask(stretch(signature="const float* x, const float* scale, float* __restrict__ y, int n")), NAME
    )
    assert candidate.code.count("__restrict__") == 3


REFUSED = {
    "one buffer": (stretch(arguments="y, scale, y, n"), "x and y may be handed the same buffer"),
    "a part of it": (stretch(arguments="y + 4, scale, y, n"), "may be handed the same buffer"),
    "one buffer in a struct": (
        "struct P { int n; const float* at; };\n"
        + stretch(
            arguments="{n, x}, scale, x + 1, n - 1", signature="P p, const float* scale, float* y, int n"
        ).replace("x[i]", "p.at[i]"),
        "y and a pointer in a struct may be handed the same buffer",
    ),
    "no store before": (stretch("if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * scale[0];"), "no load"),
    "its own element": (
        stretch("for (int i = 0; i < n; ++i) y[i] += 1.0f;", "y, n", "float* y, int n"),
        "no load of global memory comes after",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(stretch())
    (candidate,) = candidates(request, NAME)
    assert "marked as apart already" in refusal(after(request, candidate), NAME)
