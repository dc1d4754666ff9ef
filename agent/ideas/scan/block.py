"""Writing a block's scan by shuffles."""

from collections.abc import Sequence

from agent.analysis.patterns.block_scan import BlockScan
from agent.analysis.syntax import contains, descendants, text
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_name, replace
from agent.ideas.view import View
from agent.source.edits import Edit


def used_around(one: BlockScan, view: View) -> str | None:
    """Whether a local that the loop sets is used after it."""
    for symbol in view.facts.symbols.all():
        inside = [write for write in symbol.writes if contains(one.statement, write)]
        if not inside or contains(one.statement, symbol.declarator) or symbol is one.loop.variable:
            continue
        for name in descendants(view.facts.body, "identifier"):
            if name.start_byte >= one.statement.end_byte and view.facts.symbols.resolve(name) is symbol:
                return f"{text(name)} is used after the scan"
    return None


def by_shuffles(view: View, found: Sequence[BlockScan]) -> Rewrite:
    names: dict[tuple[str, int], str] = {}
    edits: list[Edit] = []
    for one in found:
        key = (one.array.type, one.width)
        if key not in names:
            names[key] = fresh_name(styled("block_scan", view), view.document, *names.values())
        edits.append(replace(one.statement, f"{names[key]}({one.array.name});"))
    return Rewrite(tuple(edits), tuple(_helper(kind, width, name) for (kind, width), name in names.items()))


def _helper(kind: str, width: int, name: str) -> str:
    warps = width // 32
    return f"""\
// Each thread's element of `elements` becomes the sum of all up to it: by shuffles within each warp, then every warp
// scans the warps' totals itself. For blocks of {width} threads.
__device__ __forceinline__ void {name}({kind}* elements) {{
    __shared__ {kind} totals[{warps}];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();  // the elements are there, and nobody needs earlier totals
    {kind} value = elements[threadIdx.x];
    for (unsigned offset = 1; offset < 32; offset *= 2) {{
        const {kind} below = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += below;
    }}
    if (lane == 31) totals[warp] = value;
    __syncthreads();
    {kind} total = lane < {warps} ? totals[lane] : 0;
    for (unsigned offset = 1; offset < {warps}; offset *= 2) {{
        const {kind} below = __shfl_up_sync(0xffffffffu, total, offset);
        if (lane >= offset) total += below;
    }}
    const {kind} before = __shfl_sync(0xffffffffu, total, warp == 0 ? 0 : warp - 1);
    elements[threadIdx.x] = warp == 0 ? value : before + value;
    __syncthreads();
}}
"""
