"""Scan over a block by warp shuffles instead of doubling in shared memory."""

from math import log2

from agent.analysis.affine import Atom, unknown
from agent.analysis.patterns.block_scan import BlockScan, block_scans
from agent.ideas.idea import Expectation, Scope
from agent.ideas.reduction.site import SHUFFLED, block_fits, participation
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.scan.block import by_shuffles, used_around
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 16777216
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scan_tiles<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scan_tiles(const float* x, float* y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        float v = t >= d ? s[t - d] : 0.0f;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (i < n) y[i] = s[t];
}
"""


@catalogued(
    name="block-scan-by-shuffles",
    title="Scan over a block by warp shuffles instead of doubling in shared memory",
    rationale=(
        "Doubling over a block takes log2(n) rounds, with two barriers and three passes through shared memory in each. "
        "The lanes of a warp scan their 32 values by five shuffles and no barrier; the warps' totals go through shared "
        "memory once, and every warp scans them itself."
    ),
    needs=(
        "a loop in which each thread's element becomes its own and the one 1, 2, 4, ... places before it, with a "
        "barrier between reading and writing",
        "all threads of a one-dimensional block, whose size is a fixed power of two from 64 to 1024, take part",
        "a type that shuffles take; sums",
    ),
    effect="barriers from 2 log2(n) to three for each scan, shared accesses to a few for each thread",
    risk="a sum of floats is added up in another order, so its last bits change",
    example=EXAMPLE,
)
def block_scan_by_shuffles(view: View) -> Match | Refusal:
    thread = unknown(Atom("threadIdx.x"))
    found = block_scans(view.facts, thread)
    if not found:
        return Refusal("it has no loop that scans a shared array by doubling (of a form that is recognised)")
    reasons = [_obstacle(one, view) for one in found]
    fine = [one for one, reason in zip(found, reasons, strict=True) if reason is None]
    if not fine:
        return Refusal(next(reason for reason in reasons if reason is not None))
    return _match(view, fine)


def _obstacle(one: BlockScan, view: View) -> str | None:
    if view.block[1:] != (1, 1):
        return "the block has more than one dimension"
    if one.array.type not in SHUFFLED:
        return f"a warp cannot shuffle values of type {one.array.type}"
    if one.width < 64:
        return f"{one.width} threads are a single warp, or less"
    return block_fits(one.width, one.thread, view) or participation(one.statement, view.facts) or used_around(one, view)


def _match(view: View, found: list[BlockScan]) -> Match:
    rounds = int(log2(found[0].width))
    names = " and ".join(dict.fromkeys(one.array.name for one in found))
    return Match(
        line=view.document.line(found[0].statement.start_byte),
        title=f"scan {names} by warp shuffles",
        why=(
            f"the scan of {names} takes {rounds} rounds with two barriers each; shuffles within the warps and one "
            "exchange between them take three barriers"
        ),
        expects=(
            Expectation("barriers", round(3 / (2 * rounds), 2), f"barriers for the scan {2 * rounds} -> 3"),
            Expectation("shared passes", 0.2, "shared passes to a fifth"),
        ),
        variants=(
            Variant(
                "warps, then totals",
                "each warp scans in registers, then the warps' totals; the array holds the result as before",
                Scope.DROP_IN,
                lambda: by_shuffles(view, found),
            ),
        ),
    )
