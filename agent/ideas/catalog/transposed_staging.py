"""Hand elements over through a tile in shared memory where loads run along memory and stores across it, or the other
way round."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.staging.site import Site, site
from agent.ideas.staging.write import can_tile, fits, in_place, tiled
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 4096, cols = 4096
//   buffer   in: f32[rows * cols] in normal
//   buffer   out: f32[rows * cols] out
//   launch   transpose<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(in, out, rows, cols)
__global__ void transpose(const float* in, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = in[row * cols + col];
    }
}
"""


@catalogued(
    name="transposed-staging",
    title="Turn elements round in a tile of shared memory",
    rationale=(
        "In a transposition one side runs along memory and the other across it, however the threads are numbered. "
        "A block that collects a tile in shared memory can read it along rows, meet at a barrier, and write it along "
        "rows as well, each thread writing what another one read. A tile whose rows are padded has no bank conflicts "
        "either way; one of 32 x 32 elements by 32 x 8 threads keeps four loads of each thread in flight."
    ),
    needs=(
        "some accesses take at most half the sectors with the two thread indices exchanged, and others are the other "
        "way round, counted over a warp at the declared sizes",
        "those that are handed over are all stores or all loads, reached under tests of indices alone",
        "what a handed-over store writes lies in no buffer that the kernel touches otherwise; what a handed-over load "
        "reads is written by nobody",
        "for another block shape: each index is used for one coordinate alone, which a test keeps below a bound that "
        "the grid reaches",
    ),
    effect="sectors per request of the striding side fall to what its elements need",
    risk="shared memory for each block, and a barrier; a small grid gets smaller",
    example=EXAMPLE,
)
def transposed_staging(view: View) -> Match | Refusal:
    found = site(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Site) -> Match:
    spelled = source_text(view.document, found.moved[0].node)
    side = "loads" if found.loads else "stores"
    factor = round(found.after / found.before, 2)
    variants = []
    if can_tile(view, found):
        edges = tuple(edge for edge in (16, 32, 64) if fits(view, found, edge))
        variants.append(
            Variant(
                "square tile, several rows a thread",
                "rows of a whole warp on both sides, and several independent loads of each thread in flight",
                Scope.RELAUNCH,
                lambda edge, rows: tiled(view, found, edge, rows),
                (
                    Tunable("edge", edges, 32, "elements along each side of the tile"),
                    Tunable("rows", (4, 8, 16), 8, "rows of threads in a block"),
                ),
            )
        )
    variants.append(
        Variant(
            "tile of the block's own shape",
            "the launch stays, one element a thread; the threads are numbered along the tile's other side in between",
            Scope.DROP_IN,
            lambda: in_place(view, found),
        )
    )
    return Match(
        line=view.document.line(found.moved[0].node.start_byte),
        title=f"turn the {side} round in a tile of shared memory, so that both sides run along memory",
        why=(
            f"`{spelled}` takes {found.worst} sectors per request of a warp, {found.best} with the thread indices "
            "exchanged, while the other side would lose by that; a tile in shared memory serves both"
        ),
        expects=(Expectation("sectors", factor, f"sectors -{round(100 * (1 - factor))} %"),),
        variants=tuple(variants),
    )
