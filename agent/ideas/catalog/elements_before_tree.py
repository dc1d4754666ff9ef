"""Let each thread fold several elements before the block's reduction tree, in fewer blocks."""

from agent.ideas.catalog.block_histogram import BLOCKS
from agent.ideas.coarse.site import Coarse, coarse
from agent.ideas.coarse.write import several_each
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View, evaluate

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 67108864
//   buffer   x: f32[n] in normal
//   buffer   total: f32[1] inout zeros
//   launch   add_up<<<(n + 255) / 256, 256>>>(x, total, n)
__global__ void add_up(const float* x, float* total, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(total, s[0]);
}
"""


@catalogued(
    name="elements-before-tree",
    title="Several elements for each thread before the reduction tree, in fewer blocks",
    rationale=(
        "A tree over a block takes as many barriers as the block's size has bits, whether each thread brings one "
        "element or a hundred. A thread that adds up many in a register first pays for the tree once, and its loads "
        "are in flight together; with a few blocks for each multiprocessor the trees and the atomics at the end cost "
        "next to nothing."
    ),
    needs=(
        "one reduction tree, whose result thread 0 folds by an atomic of the same operation into an element that is "
        "the same for all blocks; nothing else is written",
        "each thread takes one element below a bound into the tree, or else what changes nothing; or the threads of "
        "the grid take turns already and there are many blocks",
    ),
    effect="barriers and atomics fall as the number of blocks does",
    risk="a sum of floats is added up in another order, as the atomics did before",
    example=EXAMPLE,
    enables=("warp-shuffle-reduction",),
)
def elements_before_tree(view: View) -> Match | Refusal:
    found = coarse(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Coarse) -> Match:
    now = max(evaluate(launch.grid[0], view.sizes) or 0 for launch in view.launches)
    how = "takes one element" if found.each is not None else "takes few elements"
    return Match(
        line=view.document.line(found.tree.tree.statement.start_byte),
        title="let each thread fold several elements before the tree, in fewer blocks",
        why=(
            f"each thread {how} into the tree, and {now:.0f} blocks go through its barriers; the result goes into one "
            "element however many blocks there are"
        ),
        expects=(
            Expectation("barriers", round(1056 / max(now, 1056), 3), f"blocks {now:.0f} -> 1056 at most"),
            Expectation("time", 0.4, "no waiting at barriers for most of a block's life"),
        ),
        variants=(
            Variant(
                "few blocks",
                "threads of a few blocks take the elements of all others by turns",
                Scope.RELAUNCH,
                lambda blocks: several_each(view, found, blocks),
                (Tunable("blocks", BLOCKS, 1056, "blocks at most"),),
            ),
        ),
    )
