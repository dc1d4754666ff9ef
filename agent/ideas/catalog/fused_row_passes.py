"""Fuse two passes over a row where the second needs a result of the first: online softmax, Welford's variance."""

from itertools import combinations

from agent.analysis.patterns.row_pass import RowPass, row_pass
from agent.analysis.symbols import Symbol
from agent.ideas.registry import Match, Refusal, catalogued
from agent.ideas.rowpass.pair import Pair
from agent.ideas.rowpass.softmax import Online, online, online_match
from agent.ideas.rowpass.welford import squares, squares_match
from agent.ideas.terms import apart_from
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 4096, cols = 512
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   log_sum_exp<<<(rows + 255) / 256, 256>>>(x, y, rows, cols)
__global__ void log_sum_exp(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float m = -INFINITY;
    for (int i = 0; i < cols; ++i) {
        m = fmaxf(m, x[i * rows + row]);
    }
    float s = 0.0f;
    for (int i = 0; i < cols; ++i) {
        s += expf(x[i * rows + row] - m);
    }
    y[row] = m + logf(s);
}
"""


@catalogued(
    name="fused-row-passes",
    title="Fuse two passes over a row into one",
    rationale=(
        "Each pass over a row that does not fit into cache reads it from DRAM once more. A sum of exp(x - m) can be "
        "kept relative to the maximum so far, and squared differences about the mean so far, so that the first pass "
        "does the second one's work; one correction afterwards makes the result relative to the row's own maximum or "
        "mean. How the threads' partial results are then reduced over the block does not matter and stays as it is. In "
        "batches of several elements, their loads are under way together, and one rescaling serves for all of them."
    ),
    needs=(
        "two loops side by side over the same elements of global memory, in the same order",
        "the first takes a maximum and the second adds up exp(x - m), or the first a sum and the second (x - m)^2",
        "nothing written between them could change the elements; the second sum starts at zero",
    ),
    effect="one read of the row less; for stored exponentials, one read and one write less",
    risk=(
        "results differ in their last bits; a row whose maximum is infinite may give another of NaN and infinity where "
        "one thread walks over it alone"
    ),
    example=EXAMPLE,
)
def fused_row_passes(view: View) -> Match | Refusal:
    passes = [found for loop in view.facts.loops if (found := row_pass(loop, view.facts)) is not None]
    reasons: list[str] = []
    for first, second in combinations(passes, 2):
        match = _fused(first, second, view)
        if isinstance(match, str):
            reasons.append(match)
        elif match is not None:
            return match
    if reasons:
        return Refusal(reasons[0])
    if len(passes) < 2:
        return Refusal("it has no two loops that each fold a row into one variable")
    return Refusal("no second pass adds up exp(x - m) or (x - m) squared over what a first pass folded")


def _fused(first: RowPass, second: RowPass, view: View) -> Match | str | None:
    apart = _apart(first, view)
    exponentials = online(first, second, view.facts, apart)
    if isinstance(exponentials, Online):
        return online_match(exponentials, view)
    differences = squares(first, second, view.facts, apart)
    if isinstance(differences, Pair):
        return squares_match(differences, view)
    return exponentials or differences


def _apart(row: RowPass, view: View) -> frozenset[Symbol]:
    """The pointers that never point to where the pass reads its elements."""
    roots = [access.root for access in view.facts.accesses_in(row.node) if access.space == "global" and access.reads]
    known = [frozenset[Symbol]() if root is None else apart_from(root, view) for root in roots]
    return frozenset.intersection(*known) if known else frozenset()
