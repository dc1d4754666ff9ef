"""Find the block's greatest value and its place by warp shuffles instead of a tree in shared memory."""

from math import log2

from agent.ideas.idea import Expectation, Scope
from agent.ideas.reduction.pairs import PairSite, by_shuffles, pair_site
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 262144, cols = 512
//   buffer   x: f32[rows * cols] in normal
//   buffer   index: i32[rows] out
//   launch   argmax<<<rows, 256>>>(x, index, cols)
__global__ void argmax(const float* x, int* index, int cols) {
    __shared__ float best[256];
    __shared__ int where[256];
    int t = threadIdx.x;
    float peak = -INFINITY;
    int at = cols;
    for (int i = t; i < cols; i += blockDim.x) {
        float value = x[blockIdx.x * cols + i];
        if (value > peak) {
            peak = value;
            at = i;
        }
    }
    best[t] = peak;
    where[t] = at;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            float other = best[t + stride];
            if (other > best[t] || (other == best[t] && where[t + stride] < where[t])) {
                best[t] = other;
                where[t] = where[t + stride];
            }
        }
        __syncthreads();
    }
    if (t == 0) index[blockIdx.x] = where[0];
}
"""


@catalogued(
    name="argmax-by-shuffles",
    title="Find the greatest value and its place by warp shuffles",
    rationale=(
        "A tree over pairs has a barrier in each of its log2(n) rounds, and compares and moves two arrays through "
        "shared memory, half of the threads idle in the first round and all but one in the last. The lanes of a warp "
        "can exchange both values in registers; one pair a warp goes through shared memory."
    ),
    needs=(
        "one tree over all threads of a block, whose size is a fixed power of two from 32 to 1024, outside loops",
        "of two pairs the greater (or lesser) value wins, and of equal values the lower (or higher) place: then the "
        "winner does not hang on the order of the comparisons",
        "each thread stores its own pair right before the tree, and only elements 0 are read after it",
    ),
    effect="barriers from log2(n) + 1 to two for each tree",
    risk="where values may be NaN, which of them wins hangs on the order, before and after",
    example=EXAMPLE,
)
def argmax_by_shuffles(view: View) -> Match | Refusal:
    found = pair_site(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: PairSite) -> Match:
    tree = found.tree
    rounds = int(log2(tree.width))
    names = f"{tree.value.name} and {tree.place.name}"
    return Match(
        line=view.document.line(tree.statement.start_byte),
        title=f"find the {'greatest' if tree.greater else 'least'} value and its place by warp shuffles",
        why=(
            f"the tree over {names} takes {rounds} rounds with a barrier each, where a block of {tree.width} threads "
            "needs shuffles within its warps and one exchange between them"
        ),
        expects=(
            Expectation("barriers", round(2 / (rounds + 1), 2), f"barriers for the tree {rounds + 1} -> 2"),
            Expectation("shared passes", 0.3, "shared passes to less than half"),
        ),
        variants=(
            Variant(
                "first warp finishes",
                "each warp finds its own winner in registers, the first warp that of all; all reads stay",
                Scope.DROP_IN,
                lambda: by_shuffles(view, found),
            ),
        ),
    )
