"""M3: threadIdx.x walks down columns where it could run along rows."""

from collections.abc import Iterator
from functools import lru_cache

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import Request, moved, rare, requests
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void scale(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) y[row * cols + col] = 2.0f * x[row * cols + col];  // M3
}
"""
RIGHT = """\
__global__ void scale(const float* x, float* y, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) y[row * cols + col] = 2.0f * x[row * cols + col];
}
"""
TRANSPOSE = """\
// One side of a transposition goes down columns whichever way round.
__global__ void transpose(const float* in, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[col * rows + row] = in[row * cols + col];
}
"""
ONE_SIDED = """\
// What x alone selects is no row of anything.
__global__ void weigh(const float* w, float* x) {
    if (threadIdx.y == 0) x[threadIdx.x] *= w[threadIdx.x];
}
"""
COLUMN_BLOCK = """\
__global__ void scale(float* x, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) x[row * cols + col] *= 2.0f;
}
void run(float* x, int rows, int cols) {
    dim3 block(1, 128);
    scale<<<dim3(rows, (cols + 127) / 128), block>>>(x, rows, cols);
}
"""


@rule(
    id="M3",
    name="swapped-indices",
    title="threadIdx.x runs down columns and threadIdx.y along rows",
    why="The lanes of a warp differ in threadIdx.x first; if that selects the row, each lane touches another sector.",
    cost=Cost.TRAFFIC,
    severity=Severity.WARNING,
    silent_when=(
        "an index, an element's size or the block cannot be followed",
        "the block has one column, or one row",
        "exchanging x and y would not save a quarter of the sectors, or would make another access run down columns",
    ),
    fires=(FIRES,),
    silent=(RIGHT, TRANSPOSE, ONE_SIDED, COLUMN_BLOCK),
    fix="index-exchange",
)
def swapped_indices(view: View) -> Iterator[Hit]:
    found = swapped(view)
    if not found:
        return
    first, *others = found
    yield hit(
        first.access.node,
        f"threadIdx.x selects the row of {first.access.name} and threadIdx.y the column: {first.words}"
        f", {first.exchanged} with x and y exchanged",
        related=tuple(
            (other.access.node, f"{other.sectors} sectors here ({text(other.access.node)})") for other in others
        ),
    )


@lru_cache(maxsize=2)
def swapped(view: View) -> tuple[Request, ...]:
    """The accesses that an exchange of x and y would mend, where it would mend the kernel; else none."""
    if not {"x", "y"} <= view.axes:
        return ()
    found = [one for one in requests(view) if one.exchanged is not None]
    followed = sum(1 for one in moved(view) if not rare(view.guards(one), view))
    # an access that cannot be followed may be the one that the present order serves
    if len(found) < followed or not found:
        return ()
    now = sum(one.sectors * _weight(one, view) for one in found)
    then = sum((one.exchanged or 0) * _weight(one, view) for one in found)
    worse = any(one.element_bytes < (one.exchanged or 0) >= 2 * one.sectors for one in found)
    if then * 4 > now * 3 or worse:
        return ()
    mended = tuple(one for one in found if _runs_down(one))
    return mended if any("threadIdx.y" in one.index.depends for one in mended) else ()


def _runs_down(found: Request) -> bool:
    """Whether x selects the row, or may, and an exchange would halve the sectors."""
    beside = found.slope is not None and found.slope.constant in (0, 1)
    return not beside and (found.exchanged or 0) * 2 <= found.sectors


def _weight(found: Request, view: View) -> int:
    return int(16 ** len(view.facts.loops_around(found.access.node)))
