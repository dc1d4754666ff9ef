"""Scans by doubling become scans in tiles: both buffers end up as they did, for every spelling; refused for anything
that is no such scan."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, refusal, rewritten, run

NAME = "scan-in-tiles"
SIZES = (1, 2, 3, 4, 5, 1000, 1024, 1025, 2049, 5000)
LOOP = "repeat d = 1; d < n; d *= 2"


def kernel(
    body: str, *, loop: str = LOOP, type: str = "int", dtype: str = "i32", launch: str = "", given: str = "d"
) -> str:
    launch = launch or f"launch step<<<(n + 63) / 64, 64>>>(a, b, n, {given})"
    return f"""\
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   a: {dtype}[n] inout
//   buffer   b: {dtype}[n] out
//   {loop} {{
//     {launch}
//     swap a b
//   }}
__global__ void step(const {type}* in, {type}* out, int n, int distance) {{
    {body}
}}
"""


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    "
BRANCHES = (
    INDEX + "if (i >= distance) {\n        out[i] = in[i] + in[i - distance];\n    } else {\n"
    "        out[i] = in[i];\n    }"
)

SPELLINGS = {
    "two branches": BRANCHES,
    "a condition": "const int i = threadIdx.x + blockDim.x * blockIdx.x;\n"
    "    if (i < n) out[i] = i < distance ? in[i] : in[i - distance] + in[i];",
    "a local that grows": INDEX + "int v = in[i];\n    if (distance <= i) v += in[i - distance];\n    out[i] = v;",
    "nothing before the start": INDEX + "int more = (i - distance) < 0 ? 0 : in[i - distance];\n"
    "    out[i] = in[i] + more;",
    "a local assigned": INDEX + "int v;\n    if (i < distance) v = in[i];\n    else v = in[i - distance] + in[i];\n"
    "    out[i] = v;",
}


def by_doubling(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The result, and what the buffer before it holds (None where no step was made)."""
    before, now, distance = None, x, 1
    while distance < x.size:
        moved = now.copy()
        moved[distance:] += now[:-distance]
        before, now, distance = now, moved, 2 * distance
    return now, before


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_both_buffers_are_as_doubling_leaves_them(spelling: str) -> None:
    request = ask(kernel(SPELLINGS[spelling]))
    (first,) = candidates(request, NAME)
    for items in (4, 16):
        candidate = retune(first, request, {"items": items})
        assert candidate is not None
        for n in SIZES:
            x = np.random.default_rng(n).integers(-(2**31), 2**31, n).astype(np.int32)  # sums wrap
            made = run(rewritten(request, candidate), request.workload, {"a": x}, n=n)
            result, before = by_doubling(x)
            turns = (n - 1).bit_length()
            ends = ("a", "b") if turns % 2 == 0 else ("b", "a")  # the buffers have changed places so often
            np.testing.assert_array_equal(made[ends[0]], result)
            if before is not None:
                np.testing.assert_array_equal(made[ends[1]], before)


@pytest.mark.parametrize(
    ("loop", "given"),
    [("repeat d = 1; d < n; d <<= 1", "d"), ("repeat k = 0; (1 << k) < n; k += 1", "1 << k"), (LOOP, "1 * d")],
)
def test_other_ways_to_double(loop: str, given: str) -> None:
    request = ask(kernel(BRANCHES, loop=loop, given=given))
    (candidate,) = candidates(request, NAME)
    x = np.arange(3000, dtype=np.int32)
    made = run(rewritten(request, candidate), request.workload, {"a": x}, n=3000)
    np.testing.assert_array_equal(made["a"], by_doubling(x)[0])


def test_wide_integers() -> None:
    text = kernel(BRANCHES, type="unsigned long long", dtype="u64")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    x = np.random.default_rng(2).integers(0, 2**63, 4096).astype(np.uint64)
    made = run(rewritten(request, candidate), request.workload, {"a": x}, n=4096)
    np.testing.assert_array_equal(made["a"], np.cumsum(x, dtype=np.uint64))


def test_three_launches_whatever_the_length() -> None:
    (candidate,) = candidates(ask(kernel(BRANCHES)), NAME)
    assert len(candidate.plan.launches()) == 3
    assert [scratch.zeroed for scratch in candidate.plan.scratch] == [False, False]


REFUSED = {
    "another distance": (kernel(BRANCHES.replace("in[i - distance]", "in[i - distance - 1]")), "is not shown to add"),
    "a difference": (kernel(BRANCHES.replace("in[i] + in", "in[i] - in")), "is not shown to add"),
    "twice": (kernel(BRANCHES.replace("in[i] + in", "in[i] + in[i] + in")), "is not shown to add"),
    "exclusive": (kernel(BRANCHES.replace("out[i] = in[i];", "out[i] = 0;")), "is not shown to add"),
    "off by one": (kernel(BRANCHES.replace("i >= distance", "i > distance")), "is not shown to add"),
    "writes more": (kernel(BRANCHES + "\n    out[0] = 7;"), "is not shown to add"),
    "no bound": (kernel(BRANCHES.replace("if (i >= n) return;", "")), "is not shown to add"),
    "floats": (kernel(BRANCHES, type="float", dtype="f32"), "depend on the order"),
    "tripling": (kernel(BRANCHES, loop="repeat d = 1; d < n; d *= 3"), "are not 1, 2, 4"),
    "stops early": (kernel(BRANCHES, loop="repeat d = 1; d < n / 2; d *= 2"), "are not 1, 2, 4"),
    "one loop of one": (kernel(BRANCHES, loop="repeat 5", given="1"), "are not 1, 2, 4"),
    "too few threads": (
        kernel(BRANCHES, launch="launch step<<<n / 64, 64>>>(a, b, n, d)"),
        "fewer threads than there are elements",
    ),
    "no swap": (kernel(BRANCHES).replace("swap a b", "copy a b"), "does more than launch"),
    "no loop": (
        kernel(BRANCHES).replace(f"//   {LOOP} {{\n", "").replace("//     swap a b\n//   }\n", "")
        .replace("n, d)", "n, 1)"),
        "no loop of launches",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_a_narrow_scope_is_not_enough() -> None:
    assert "needs plan" in refusal(ask(kernel(BRANCHES), Scope.RELAUNCH), NAME)


def test_tabs_and_carriage_returns_stay() -> None:
    text = kernel(BRANCHES).replace("    ", "\t").replace("\n", "\r\n")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    written = rewritten(request, candidate).document.text
    assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
