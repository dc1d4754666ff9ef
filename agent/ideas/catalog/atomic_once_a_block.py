"""Add up within a block before the atomic, where all threads send theirs to one address."""

from agent.ideas.atomics.total import Totals, once_a_block, several_threads, totals
from agent.ideas.catalog.block_histogram import BLOCKS
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 16777216
//   buffer   x: f32[n] in normal
//   buffer   norm: f32[1] inout zeros
//   launch   squares<<<(n + 255) / 256, 256>>>(x, norm, n)
__global__ void squares(const float* x, float* norm, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    atomicAdd(norm, v * v);
}
"""


@catalogued(
    name="atomic-once-a-block",
    title="Add up within a block, and send one atomic where every thread sends one",
    rationale=(
        "Atomics to one address are done one after the other. The compiler gathers those of a warp for integers at "
        "most; a sum of floats it must leave alone. A thread can keep its own total in a register, a few shuffles make "
        "the block's, and one thread sends that. With threads that take many elements each there are few blocks, and "
        "the reduction at the end costs next to nothing."
    ),
    needs=(
        "atomics whose results are not used, to an address that is the same for all threads of a block, and that "
        "nothing else touches",
        "an addition, or a maximum, minimum or bitwise or of integers",
        "one element a thread behind a test of its index against a bound, a loop over the grid, or a kernel that all "
        "threads go through to its end",
    ),
    effect="atomics from one for each element to one for each block",
    risk="a sum of floats is added up in another order, as it was at random before",
    example=EXAMPLE,
)
def atomic_once_a_block(view: View) -> Match | Refusal:
    found = totals(view)
    if isinstance(found, str):
        return Refusal(found)
    if not several_threads(view, found.calls):
        return Refusal("its atomics stand where one thread alone comes")
    return _match(view, found)


def _match(view: View, found: Totals) -> Match:
    call = found.calls[0]
    here = Variant(
        "one atomic a block",
        "each thread folds into a register, the block's total goes out once; as many blocks as before",
        Scope.DROP_IN,
        lambda: once_a_block(view, found, None),
    )
    fewer = Variant(
        "few blocks",
        "threads take further elements until there are few blocks, each of which sends one atomic",
        Scope.RELAUNCH,
        lambda blocks: once_a_block(view, found, blocks),
        (Tunable("blocks", BLOCKS, 1056, "blocks at most"),),
    )
    return Match(
        line=view.document.line(call.node.start_byte),
        title=f"send one `{found.updates[0][0].function}` a block instead of one a thread",
        why=(
            f"all threads send `{source_text(view.document, call.node)}` to one address, where they are done one after "
            "the other; a block can add up first"
        ),
        expects=(Expectation("atomics", 1 / (view.block[0] or 1), "atomics from one a thread to one a block"),),
        variants=(here,) if found.elements is None else (fewer, here),
    )
