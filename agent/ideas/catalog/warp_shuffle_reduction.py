"""Replace a reduction tree in shared memory by shuffles within each warp and one shared slot a warp."""

from math import log2

from agent.analysis.patterns.tree_reduction import tree_reductions
from agent.ideas.idea import Expectation, Scope
from agent.ideas.reduction.site import Site, site
from agent.ideas.reduction.write import in_every_thread, in_first_element, in_first_thread
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   x: f32[n] in normal
//   buffer   partial: f32[(n + 255) / 256] out
//   launch   partial_sums<<<(n + 255) / 256, 256>>>(x, partial, n)
__global__ void partial_sums(const float* x, float* partial, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}
"""


@catalogued(
    name="warp-shuffle-reduction",
    title="Reduce by warp shuffles instead of a tree in shared memory",
    rationale=(
        "A tree of log2(n) rounds has a barrier in each, leaves half of the remaining threads idle, and sends every "
        "value through shared memory. The 32 lanes of a warp can exchange registers with no barrier at all: five "
        "shuffles reduce a warp, one shared element a warp carries the partial results across, and a few more finish."
    ),
    needs=(
        "a tree over all threads of the block, whose size is a fixed power of two from 32 to 1024",
        "all threads of the block reach the tree: no return or branch before it that may differ between them",
        "afterwards only element 0 is read until the array is written anew",
        "a type that shuffles take; sum, product, maximum, minimum or a bitwise operation",
    ),
    effect="barriers from log2(n) + 1 to one or two for each reduction; shared accesses to a few for each warp",
    risk="a sum of floats is added up in another order, so its last bits change",
    example=EXAMPLE,
    enables=("fused-row-passes",),
)
def warp_shuffle_reduction(view: View) -> Match | Refusal:
    trees = tree_reductions(view.facts)
    if not trees:
        return Refusal("it has no reduction tree in shared memory (of a form that is recognised)")
    found = [site(tree, view) for tree in trees]
    sites = [one for one in found if isinstance(one, Site)]
    if not sites:
        return Refusal(next(reason for reason in found if isinstance(reason, str)))
    return _match(view, sites)


def _first_thread(view: View, sites: list[Site]) -> tuple[Variant, ...]:
    if not all(one.first_thread for one in sites):
        return ()
    return (
        Variant(
            "first thread has it",
            "thread 0 alone reads the result, so after one barrier only the first warp goes on",
            Scope.DROP_IN,
            lambda: in_first_thread(view, sites),
        ),
    )


def _match(view: View, sites: list[Site]) -> Match:
    old = len(view.facts.barriers) + sum(int(log2(one.tree.width)) - 1 for one in sites)
    new = old - sum(int(log2(one.tree.width)) + (1 if one.store is not None and one.quiet else 0) - 1 for one in sites)
    names = " and ".join(dict.fromkeys(one.array.name for one in sites))
    rounds = int(log2(sites[0].tree.width))
    trees = "the tree" if len(sites) == 1 else f"the {len(sites)} trees"
    return Match(
        line=view.document.line(sites[0].tree.statement.start_byte),
        title=f"reduce by warp shuffles instead of {trees} in shared memory",
        why=(
            f"{trees} in {names} take{'s' if len(sites) == 1 else ''} {rounds} rounds with a barrier each, where a "
            f"block of {sites[0].tree.width} threads needs shuffles within its warps and one exchange between them"
        ),
        expects=(
            Expectation("barriers", round(new / old, 2), f"barriers per block {old} -> {new}"),
            Expectation("shared passes", 0.4, "shared passes to less than half"),
        ),
        variants=(
            *_first_thread(view, sites),
            Variant(
                "every warp finishes",
                "each warp folds the warps' partial results itself, so every thread has the result after one barrier",
                Scope.DROP_IN,
                lambda: in_every_thread(view, sites),
            ),
            Variant(
                "first warp finishes",
                "the first warp folds the partial results and leaves the result where the tree left it; all reads stay",
                Scope.DROP_IN,
                lambda: in_first_element(view, sites),
            ),
        ),
    )
