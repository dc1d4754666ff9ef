"""Exchange the roles of threadIdx.x and threadIdx.y, so that the lanes of a warp walk along memory and not across
it."""

from agent.ideas.exchange.flat import flat_exchange
from agent.ideas.exchange.plane import plane_exchange
from agent.ideas.registry import Match, Refusal, catalogued
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 4096, cols = 4096
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   scale<<<dim3((rows + 15) / 16, (cols + 15) / 16), dim3(16, 16)>>>(x, y, rows, cols)
__global__ void scale(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) y[row * cols + col] = 2.0f * x[row * cols + col];
}
"""


@catalogued(
    name="index-exchange",
    title="Exchange thread indices so that a warp's accesses coalesce",
    rationale=(
        "The 32 threads of a warp differ first in threadIdx.x. Where threadIdx.x is multiplied by a row's length and "
        "threadIdx.y is not, each access of a warp touches up to 32 32-byte sectors and uses 4 bytes of each. "
        "Exchanging the two indices leaves every thread's work as it is and only hands it to another thread."
    ),
    needs=(
        "every global and shared access has an index that can be evaluated for each lane, seen through local "
        "definitions; up to an offset that all lanes share",
        "counted over a warp at the declared sizes, the sum of sectors and shared passes falls by a quarter or more, "
        "and no access that weighs in gets four times worse",
        "no warp-level operation, and no call or macro that looks at the thread index by itself",
        "one-dimensional kernels: the index is split by `/` and `%` of one extent and guarded by the product of both",
    ),
    effect="sectors per request fall to what the element size needs (4 for float, from up to 32)",
    risk="bank conflicts or the locality between blocks may change; where launches change, both grid extents must fit",
    example=EXAMPLE,
)
def index_exchange(view: View) -> Match | Refusal:
    return plane_exchange(view) if _uses_second_index(view) else flat_exchange(view)


def _uses_second_index(view: View) -> bool:
    return b"threadIdx.y" in view.document.text[view.facts.body.start_byte : view.facts.body.end_byte]
