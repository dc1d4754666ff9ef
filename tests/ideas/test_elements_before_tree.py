"""Several elements a thread before the tree: right for every way to take an element, refused where blocks have results
of their own."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, refusal, rewritten, run

NAME = "elements-before-tree"
SIZES = (1, 100, 4097)


def kernel(
    take: str,
    *,
    tree: str = "s[t] += s[t + h];",
    end: str = "if (t == 0) atomicAdd(&y[1], s[0]);",
    type: str = "float",
    dtype: str = "f32",
    grid: str = "(n + 127) / 128",
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 4194304
//   buffer   x: {dtype}[n] in
//   buffer   y: {dtype}[3] inout zeros
//   launch   gather<<<{grid}, 128>>>(x, y, n)
__global__ void gather(const {type}* x, {type}* y, int n) {{
    __shared__ {type} s[128];
    int t = threadIdx.x;
    {take}
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {{
        if (t < h) {tree}
        __syncthreads();
    }}
    {end}
}}
"""  # fmt: skip


INDEX = "int i = blockIdx.x * blockDim.x + t;\n    "
TAKES = {
    "a choice": INDEX + "s[t] = i < n ? x[i] * 2 : 0.0f;",
    "mirrored": "const int i = t + blockDim.x * blockIdx.x;\n    s[threadIdx.x] = (n > i) ? 2 * x[i] : 0;",
    "through a local": INDEX + "float mine = (i < n) ? x[i] + x[i] : 0.f;\n    s[t] = mine;",
    "a statement": INDEX + "float v = 0;\n    if (i < n) v = 2 * x[i];\n    s[t] = v;",
    "a statement in braces": INDEX + "float v = 0.0f;\n    if (i < n) {\n        float a = x[i];\n"
    "        v += a + a;\n    }\n    s[t] = v;",
    "by turns already": "float v = 0;\n    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * "
    "blockDim.x) v += 2 * x[i];\n    s[t] = v;",
}  # fmt: skip


@pytest.mark.parametrize("case", TAKES)
def test_sums_are_what_numpy_says(case: str) -> None:
    request = ask(kernel(TAKES[case]))
    (candidate,) = candidates(request, NAME)
    assert candidate.plan != request.plan
    few = retune(candidate, request, {"blocks": 264})
    assert few is not None and few.plan.launches()[0].grid[0].integer({"n": 10**6}) == 264
    for n in SIZES:
        x = np.random.default_rng(n).integers(-9, 10, n).astype(np.float32)
        made = run(rewritten(request, few), request.workload, {"x": x, "y": np.ones(3, np.float32)}, n=n)["y"]
        np.testing.assert_array_equal(made, [1, 1 + 2 * x.sum(), 1])


def test_many_blocks_worth_of_elements_for_few() -> None:
    """With a grid that is smaller than the elements, threads come back for more."""
    request = ask(kernel(TAKES["a statement in braces"]))
    (candidate,) = candidates(request, NAME)
    few = retune(candidate, request, {"blocks": 264})
    assert few is not None
    n = 264 * 128 * 2 + 5
    x = np.random.default_rng(0).integers(-2, 3, n).astype(np.float32)
    made = run(rewritten(request, few), request.workload, {"x": x, "y": np.zeros(3, np.float32)}, n=n)["y"]
    np.testing.assert_array_equal(made, [0, 2 * x.sum(), 0])


def test_a_maximum_of_integers() -> None:
    take = INDEX + "s[t] = i < n ? x[i] : -2147483647;"
    text = kernel(
        take, tree="s[t] = max(s[t], s[t + h]);", end="if (t == 0) atomicMax(y, s[0]);", type="int", dtype="i32"
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    for n in SIZES:
        x = np.random.default_rng(n).integers(-900, 900, n).astype(np.int32)
        made = run(rewritten(request, candidate), request.workload, {"x": x, "y": np.full(3, -5000, np.int32)}, n=n)[
            "y"
        ]
        np.testing.assert_array_equal(made, [x.max(), -5000, -5000])


def test_shuffles_follow() -> None:
    request = ask(kernel(TAKES["a choice"]))
    following = after(request, candidates(request, NAME)[0])
    x = np.arange(1000, dtype=np.float32) % 7
    for candidate in candidates(following, "warp-shuffle-reduction"):
        made = run(rewritten(following, candidate), request.workload, {"x": x, "y": np.zeros(3, np.float32)}, n=1000)
        assert made["y"][1] == 2 * x.sum()


CHOICE = TAKES["a choice"]
REFUSED = {
    "its own element": (kernel(CHOICE, end="if (t == 0) y[blockIdx.x % 3] = s[0];"), "another block's own element"),
    "another operation": (kernel(CHOICE, tree="s[t] = fmaxf(s[t], s[t + h]);"), "no fold of the tree's result"),
    "an element that moves": (
        kernel(CHOICE, end="if (t == 0) atomicAdd(&y[blockIdx.x % 3], s[0]);"), "the same element in all blocks"),
    "more than the result": (kernel(CHOICE, end="if (t == 0) atomicAdd(y, s[0] + 1);"), "more than the tree's result"),
    "not neutral": (kernel(INDEX + "s[t] = i < n ? x[i] : 1.0f;"), "does not take one element"),
    "index used elsewhere": (kernel(INDEX + "s[t] = i < n ? x[i] : 0;\n    s[t] *= i;"), ""),
    "few blocks": (kernel(CHOICE, grid="100"), "few already"),
    "no tree": (
        kernel(CHOICE).replace("h /= 2", "h -= 1"), "does not have one reduction tree"),
    "another bound a thread": (kernel(INDEX + "s[t] = i < t ? x[i] : 0;"), "not the same for all threads"),
    "the block's number": (
        kernel(INDEX + "float f = blockIdx.x;\n    s[t] = i < n ? f * x[i] : 0;"), "used for something else"),
    "read by all": (
        kernel(CHOICE, end="float q = s[0];\n    if (t == 0) atomicAdd(y, s[0]);\n    if (q > 1) y[2] = q;"), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_tabs_carriage_returns_and_scope() -> None:
    text = kernel(TAKES["a statement in braces"])
    assert "needs relaunch" in refusal(ask(text, Scope.DROP_IN), NAME)
    request = ask(text.replace("    ", "\t").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    written = rewritten(request, candidate).document.text
    assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
