"""Spread an array in shared memory over the banks: padded rows, exchanged columns, or elements left out."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.padding.site import Site, site
from agent.ideas.padding.write import padded, spread, swizzled
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 4096 multiple 32
//   buffer   in: f32[n * n] in normal
//   buffer   out: f32[n * n] out
//   launch   transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(in, out, n)
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = in[(y + i) * n + x + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) out[(x + i) * n + y + threadIdx.x] = tile[threadIdx.x][i];
}
"""


@catalogued(
    name="bank-conflict-padding",
    title="Spread a shared array over the banks",
    rationale=(
        "Shared memory has 32 banks of 4 bytes. Lanes that want different words of one bank are served one after the "
        "other: a warp that walks down a column of rows of 32 floats takes 32 passes for one. One more element in each "
        "row moves every row one bank further; where there is no room for that, an exclusive-or of column and row does "
        "the same; in an array of one dimension (the tree of a scan), one element is left out after every 32."
    ),
    needs=(
        "an array of 4- or 8-byte elements that is used by subscripts alone, so that nobody sees where elements lie",
        "passes counted over the lanes of a warp, for several turns of the loops, fall by a quarter or more",
        "the array is declared in the kernel with fixed extents, or is the only dynamic one",
    ),
    effect="passes over shared memory, down to one a request",
    risk="a little more shared memory for each block, and in one dimension two instructions an access",
    example=EXAMPLE,
)
def bank_conflict_padding(view: View) -> Match | Refusal:
    found = site(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Site) -> Match:
    factor = round(found.after / found.before, 2)
    name = found.array.name
    worst, before, after = found.worst
    variants = []
    if found.pad is not None:
        why = f"{found.pad} more in each row: rows begin in different banks"
        variants.append(Variant("padded rows", why, Scope.DROP_IN, lambda: padded(view, found)))
    if found.swizzled:
        why = "columns exchanged within each row, by exclusive-or with the row's number; no byte more"
        variants.append(Variant("swizzled", why, Scope.DROP_IN, lambda: swizzled(view, found)))
    if found.every is not None:
        scope = Scope.DROP_IN if found.array.dims[0] is not None else Scope.RELAUNCH
        why = f"one element left out after every {found.every}"
        variants.append(Variant("one left out", why, scope, lambda: spread(view, found)))
    return Match(
        line=view.document.line(worst.node.start_byte),
        title=f"spread {name} over the banks of shared memory",
        why=(
            f"`{source_text(view.document, worst.node)}` takes {before:.3g} passes for a warp's request, as its lanes "
            f"meet in the same banks; spread, {after:.3g}"
        ),
        expects=(Expectation("shared passes", factor, f"shared passes -{round(100 * (1 - factor))} %"),),
        variants=tuple(variants),
    )
