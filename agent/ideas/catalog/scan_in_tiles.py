"""A scan in three launches, where one launch for each doubling of the distance does it now."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.scan.site import Scan, scan_loop
from agent.ideas.scan.write import in_three_launches
from agent.ideas.view import View, evaluate

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 16777216
//   buffer   a: i32[n] inout
//   buffer   b: i32[n] out
//   repeat d = 1; d < n; d *= 2 {
//     launch step<<<(n + 255) / 256, 256>>>(a, b, n, d)
//     swap a b
//   }
__global__ void step(const int* in, int* out, int n, int distance) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i >= distance ? in[i] + in[i - distance] : in[i];
}
"""


@catalogued(
    name="scan-in-tiles",
    title="A scan within tiles and over their totals, instead of a launch for each doubling",
    rationale=(
        "A scan by doubling reads and writes the whole array log2(n) times. Blocks can scan a tile each in registers, "
        "by shuffles; one block scans the tiles' totals; a last launch adds to each element what lies before its tile. "
        "The array is read twice and written twice, whatever its length."
    ),
    needs=(
        "a loop of launches with a swap of two buffers, whose distances are 1, 2, 4, ... up to the length",
        "a kernel that is shown to add to each element the one a distance before it, or to copy it",
        "integers, whose sums do not depend on the order: the buffer that is left over is part of the result too",
    ),
    effect="launches from log2(n) to three, traffic from 2 log2(n) arrays to about six",
    risk="scratch memory for one more array",
    example=EXAMPLE,
)
def scan_in_tiles(view: View) -> Match | Refusal:
    found = scan_loop(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Scan) -> Match:
    count = evaluate(found.count, view.sizes) or 2
    turns = max(1, (int(count) - 1).bit_length())
    return Match(
        line=view.kernel.line,
        title="scan within tiles and over their totals, in three launches",
        why=(
            f"{turns} launches read and write all {count} elements each; sums within tiles, their totals' sums, and "
            "one addition take three"
        ),
        expects=(
            Expectation("DRAM bytes", round(6 / (2 * turns), 2), f"arrays read or written {2 * turns} -> about 6"),
            Expectation("launches", round(3 / turns, 2), f"launches {turns} -> 3"),
        ),
        variants=(
            Variant(
                "tiles, totals, sums",
                "each block scans a tile in registers; one block scans the totals; a last launch puts both together",
                Scope.PLAN,
                lambda items: in_three_launches(view, found, items),
                (Tunable("items", (4, 8, 16), 8, "elements of each thread in a tile"),),
            ),
        ),
    )
