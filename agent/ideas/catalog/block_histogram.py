"""Count in shared memory, and add each block's counts to the global ones once."""

from agent.ideas.atomics.histogram import Histogram, counted_in_blocks, histogram, spelled_plainly
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View, evaluate

BLOCKS = (264, 528, 1056, 2112)
"""Multiples of 132, the multiprocessors of an H100 or H200: two to sixteen blocks for each."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 16777216
//   buffer   data: u8[n] in
//   buffer   bins: u32[256] inout zeros
//   launch   count_bytes<<<(n + 255) / 256, 256>>>(data, bins, n)
__global__ void count_bytes(const unsigned char* data, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i]], 1u);
}
"""


@catalogued(
    name="block-histogram",
    title="Count in shared memory, and add each block's counts to the global ones once",
    rationale=(
        "Atomics to one address of global memory are done one after the other, in the L2 cache, for the whole card. "
        "Counters in shared memory are a block's own and an order of magnitude nearer. With threads that take many "
        "elements each there are few blocks, so that adding their counts up at the end costs little; several "
        "interleaved copies keep neighbouring lanes from meeting at one counter."
    ),
    needs=(
        "32-bit integer counters that are only added to, at loaded places, by atomics whose results are not used",
        "a fixed number of counters that fits into shared memory",
        "one element a thread behind a test of its index against a bound, or a loop over the grid; nothing else that "
        "depends on which thread does an element",
    ),
    effect="atomics on global memory from one for each element to one for each counter and block",
    risk="with very few elements for each counter, clearing and adding up cost more than they save",
    example=EXAMPLE,
)
def block_histogram(view: View) -> Match | Refusal:
    found = histogram(view)
    if isinstance(found, str):
        return Refusal(found)
    if not spelled_plainly(view, found):
        return Refusal(f"an update of {found.updates.root.name} is not spelled as an element of it")
    return _match(view, found)


def _match(view: View, found: Histogram) -> Match:
    name = found.updates.root.name
    work = (evaluate(view.launches[0].grid[0], view.sizes) or 0) * (view.block[0] or 0)
    blocks = Tunable("blocks", BLOCKS, 1056, "blocks at most")
    copies = Tunable("copies", found.copies, max(one for one in found.copies if one <= 8), "copies of each counter")
    return Match(
        line=view.document.line(found.updates.calls[0].node.start_byte),
        title=f"count {name} in shared memory, and add each block's counts up once",
        why=(
            f"{work:.0f} threads send their atomics to {found.bins} addresses of global memory, where they wait for "
            "each other; a block's own counters lie in shared memory"
        ),
        expects=(
            Expectation("atomics", 0.05, f"global atomics to {found.bins} a block at most"),
            Expectation("time", 0.1, "no queue at the counters"),
        ),
        variants=(
            Variant(
                "interleaved copies",
                "each block counts in shared memory, in several copies of each counter side by side",
                Scope.RELAUNCH,
                lambda copies, blocks: counted_in_blocks(view, found, copies, blocks),
                (copies, blocks),
            ),
        ),
    )
