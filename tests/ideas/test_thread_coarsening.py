"""Several outputs a thread where neighbours load the same; one each where they do not, or where it is not proved."""

import re

import numpy as np
import pytest

from agent.execution.compiler import CompileFailure, Options, build
from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, idea_of, refusal, rewritten, run

NAME = "thread-coarsening"
CLAMPED = """\
if (x >= w || y >= h) return;
    float sum = 0.0f;
    // five rows
    for (int d = -2; d <= 2; ++d) {
        sum += in[min(max(y + d, 0), h - 1) * w + x];
    }
    out[y * w + x] = sum;"""
INNER = """\
if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {
        out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x]
            + in[y * w + x];
    }"""
OUTSIDE = INNER.replace("if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {", "").replace("    }", "")


def stencil(
    work: str = CLAMPED, launch: str = "<<<dim3((w + 31) / 32, (h + 3) / 4), dim3(32, 4)>>>(in, out, w, h)"
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     w = 64, h = 48
//   buffer   in: f32[w * h] inout integers(-9, 9)
//   buffer   out: f32[w * h] inout integers(-9, 9)
//   launch   stencil{launch}
__global__ void stencil(const float* in, float *out, int w, int h) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    {work}
}}
"""


def expected(work: str, given, before):  # type: ignore[no-untyped-def]
    h = given.shape[0]
    if work == CLAMPED:
        return sum(given[np.clip(np.arange(h) + d, 0, h - 1)] for d in range(-2, 3))
    result = before.copy()
    if min(given.shape) > 2:
        inner = given[1:-1, :-2] + given[1:-1, 2:] + given[:-2, 1:-1] + given[2:, 1:-1] + given[1:-1, 1:-1]
        result[1:-1, 1:-1] = inner
    return result


LEAVES = OUTSIDE.replace("\n", "if (x == 0 || y <= 0 || x >= w - 1 || y >= h - 1) return;\n", 1)


@pytest.mark.parametrize("work", [CLAMPED, INNER, LEAVES], ids=["clamped", "inner", "leaves"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_outputs_are_the_same(work: str, line_end: str) -> None:
    request = ask(stencil(work).replace("\n", line_end))
    (first,) = candidates(request, NAME)
    assert first.scope is Scope.RELAUNCH
    for outputs in (2, 4, 8) if line_end == "\n" else (4,):
        candidate = retune(first, request, {"outputs": outputs})
        assert candidate is not None
        for h, w in ((48, 40), (37, 33), (3, 3), (1, 5)):
            given = np.random.default_rng(h).integers(-9, 9, (h, w)).astype(np.float32)
            before = np.full_like(given, 7.0)
            inputs = {"in": given, "out": before}
            found = run(rewritten(request, candidate), request.workload, inputs, w=w, h=h)["out"].reshape(h, w)
            np.testing.assert_array_equal(found, expected(work, given, before))


@pytest.mark.parametrize(("work", "loads"), [(CLAMPED, 8), (INNER, 14)], ids=["clamped", "inner"])
def test_the_compiler_finds_what_was_counted(work: str, loads: int) -> None:
    """Four outputs read 5 + 3 rows; of the cross, 4 x 3 + 2 elements."""
    request = ask(stencil(work))
    (candidate,) = candidates(request, NAME)
    built = build(rewritten(request, candidate), Options(arch="sm_90"))
    assert not isinstance(built, CompileFailure)
    ptx = built.ptx if isinstance(built.ptx, str) else built.ptx.decode()
    assert len(re.findall(r"\bld\.global", ptx)) == loads
    assert f"{loads / 4:.3g} each" in idea_of(request, NAME).why


def test_what_it_looks_like() -> None:
    request = ask(stencil())
    (candidate,) = candidates(request, NAME)
    assert "const float* __restrict__ in, float *__restrict__ out" in candidate.code
    assert "int y_first = 4 * (blockIdx.y * blockDim.y + threadIdx.y);" in candidate.code
    assert "// five rows" in candidate.code and candidate.code.count("#pragma unroll") == 2
    (launch,) = candidate.plan.launches()
    assert [str(extent) for extent in launch.grid] == ["(w + 31) / 32", "(h + 15) / 16", "1"]


def test_planes_of_a_volume() -> None:
    text = """\
// cuda-lsp: workload
//   size     n = 40, m = 12
//   buffer   in: f32[n * n * m] in
//   buffer   out: f32[n * n * m] out
//   launch   column<<<dim3((n + 15) / 16, (n + 3) / 4, m), dim3(16, 4, 1)>>>(in, out, n, m)
__global__ void column(const float* in, float* out, unsigned int n, unsigned int m) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < n && y < n) {
        if (z < m) {
            float below = z == 0 ? 0.0f : 1.0f;
            out[(z * n + y) * n + x] = below + in[(min(z + 1, m - 1) * n + y) * n + x] + in[(z * n + y) * n + x];
        }
    }
}
"""
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    (launch,) = candidate.plan.launches()
    assert str(launch.grid[2]) == "(m + 3) / 4"
    for n, m in ((17, 6), (4, 1)):
        given = np.random.default_rng(n).integers(0, 9, (m, n, n)).astype(np.float32)
        found = run(rewritten(request, candidate), request.workload, {"in": given}, n=n, m=m)["out"]
        above = given[np.minimum(np.arange(m) + 1, m - 1)]
        below = (np.arange(m) > 0).astype(np.float32)[:, None, None]
        np.testing.assert_array_equal(found.reshape(m, n, n), above + given + below)


REFUSED = {
    "nothing in common": (stencil("if (x >= w || y >= h) return;\n    out[y * w + x] = in[y * w + x];"), "in common"),
    "in place": (
        stencil(launch="<<<dim3((w + 31) / 32, (h + 3) / 4), dim3(32, 4)>>>(out, out, w, h)"),
        "may be handed the same buffer",
    ),
    "a grid that may fall short": (
        stencil(launch="<<<dim3((w + 31) / 32, h / 4), dim3(32, 4)>>>(in, out, w, h)"),
        "no test keeps y below",
    ),
    "every other row": (stencil(INNER.replace("y > 0", "y % 2 == 1")), "asks more of y than bounds"),
    "the thread's own row": (stencil(CLAMPED.replace("sum;", "sum + threadIdx.y;")), "one coordinate alone"),
    "a barrier": (stencil(CLAMPED.replace("float sum", "__syncthreads();\n    float sum")), "work together"),
    "written before the test": (
        stencil("out[0] = 1.0f;\n    " + CLAMPED),
        "no test keeps y below",
    ),
    "in a branch": (
        stencil(INNER.replace("out[y * w + x] =", "if (in[x] > 0.0f) out[y * w + x] =")),
        "in common",
    ),
    "a loop of unknown length": (stencil(CLAMPED.replace("d <= 2", "d <= w")), "in common"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(stencil())
    (candidate,) = candidates(request, NAME)
    assert refusal(after(request, candidate), NAME)
