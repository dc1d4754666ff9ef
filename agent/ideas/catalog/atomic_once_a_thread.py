"""Add up within a thread before the atomic, where it sends one to the same address in each turn of a loop."""

from agent.ideas.atomics.total import Totals, totals
from agent.ideas.atomics.turns import Turns, once_a_thread, turns
from agent.ideas.catalog.block_histogram import BLOCKS
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 65536, cols = 64
//   buffer   x: f32[rows * cols] in normal
//   buffer   key: i32[rows] in integers(0, 1024)
//   buffer   sums: f32[1024] inout zeros
//   launch   by_key<<<(rows + 255) / 256, 256>>>(x, key, sums, rows, cols)
__global__ void by_key(const float* x, const int* key, float* sums, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const int k = key[row];
    for (int c = 0; c < cols; ++c) {
        atomicAdd(&sums[k], x[c * rows + row]);
    }
}
"""


@catalogued(
    name="atomic-once-a-thread",
    title="Add up in a register, and send one atomic behind a loop that sends one a turn",
    rationale=(
        "An atomic goes to L2 and is done there, one after the other where they meet at an address; the compiler may "
        "not join those of several turns. Where a loop sends all of them to one address, the thread can keep the total "
        "in a register and send that. Where the loop deals out the grid's elements, fewer blocks make each thread's "
        "share larger, and the atomics fewer still."
    ),
    needs=(
        "atomics in a loop whose results are not used, to memory that nothing else in the kernel touches",
        "an address that no turn changes, and one place behind the loop",
        "an addition, or a maximum, minimum or bitwise or of integers",
    ),
    effect="atomics from one a turn to one a thread",
    risk="a sum of floats is added up in another order, as it was at random before",
    example=EXAMPLE,
)
def atomic_once_a_thread(view: View) -> Match | Refusal:
    if isinstance(totals(view), Totals):
        return Refusal("all threads of a block send theirs to one address: the block can add up first")
    found = turns(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Turns) -> Match:
    first = found.kept[0]
    spelled = source_text(view.document, first.calls[0].node)
    here = Variant(
        "one atomic behind the loop",
        "each thread folds into a register while the loop runs; the launch stays",
        Scope.DROP_IN,
        lambda: once_a_thread(view, found, None),
    )
    fewer = Variant(
        "few blocks",
        "threads take further elements until there are few blocks, and send one atomic each",
        Scope.RELAUNCH,
        lambda blocks: once_a_thread(view, found, blocks),
        (Tunable("blocks", BLOCKS, 1056, "blocks at most"),),
    )
    return Match(
        line=view.document.line(first.calls[0].node.start_byte),
        title=f"send one `{first.atomics.function}` a thread behind the loop instead of one a turn",
        why=f"`{spelled}` goes to the same address in every turn of the loop, and each of them goes to L2",
        expects=(Expectation("atomics", 0.2, "atomics from one a turn to one a thread"),),
        variants=(fewer, here) if found.grid else (here,),
    )
