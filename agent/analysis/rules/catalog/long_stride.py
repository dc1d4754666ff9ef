"""M2: neighbouring threads a row of unknown length apart in global memory."""

from collections.abc import Iterator

from agent.analysis.rules.catalog.swapped_indices import swapped
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import Request, requests
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void matvec(const float* a, const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += a[row * cols + c] * x[c];  // M2
    y[row] = sum;
}
"""
TRANSPOSE = """\
__global__ void transpose(const float* in, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[col * rows + row] = in[row * cols + col];  // M2
}
"""
OPEN_TYPE = """\
template <typename T>
__global__ void sums(const T* a, T* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = 0;
    if (row < rows) for (int c = 0; c < cols; ++c) sum += a[row * cols + c];  // M2
    if (row < rows) y[row] = sum;
}
"""
STEPPED = """\
__global__ void sums(const float* a, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    a += row * cols;
    const float* at = a;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += *at++;
    for (int c = 0; c < cols; ++c) sum += a[c];  // M2
    y[row] = sum;
}
"""
BY_COLUMNS = """\
__global__ void column_sums(const float* a, float* y, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float sum = 0.0f;
    for (int r = 0; r < rows; ++r) sum += a[r * cols + col];
    y[col] = sum;
}
"""
GATHER = """\
// Where the index is loaded, nothing is known of the distance.
__global__ void gather(const float* a, const int* index, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[index[i] * n];
}
"""


@rule(
    id="M2",
    name="long-stride",
    title="Neighbouring threads are whole rows apart in global memory",
    why="Each lane of a warp then reads or writes a sector of its own, and uses one element of its 32 bytes.",
    cost=Cost.TRAFFIC,
    severity=Severity.INFORMATION,
    silent_when=(
        "the index, the element's size or the block cannot be followed",
        "exchanging x and y would mend it (see M3)",
        "the stride is a number (see M1)",
        "a workload says that rows are short",
    ),
    fires=(FIRES, TRANSPOSE, OPEN_TYPE, STEPPED),
    silent=(BY_COLUMNS, GATHER),
)
def long_stride(view: View) -> Iterator[Hit]:
    if swapped(view):
        return
    bad = [found for found in requests(view) if found.bad and not found.by_number]
    if not bad:
        return
    # one for the kernel: the access that is done most often
    worst = max(bad, key=lambda found: (len(view.facts.loops_around(found.access.node)), -found.access.node.start_byte))
    others = [found for found in bad if found is not worst]
    stride = "" if worst.slope is None or worst.slope.constant is not None else str(worst.slope)
    name = worst.access.name
    where = f"{stride} elements of {name} apart" if 0 < len(stride) < 30 else f"in different rows of {name}"
    lengths = sorted(worst.pitches & {atom.name for atom in worst.slope.atoms} if worst.slope else set())
    condition = f" if {lengths[0]} is large" if len(lengths) == 1 else ""
    yield hit(
        worst.access.node,
        f"neighbouring threads are {where}{condition}",
        f"{worst.words} ({worst.ideal} would do)",
        tuple((other.access.node, f"{other.sectors} sectors here ({text(other.access.node)})") for other in others),
        fix=_idea(worst, view),
    )


def _idea(found: Request, view: View) -> str | None:
    """What changes the order: lanes share the rows where each of them walks over one; or a tile is turned round on the
    chip, where the neighbours of an element belong to threads of the next row."""
    index = found.access.index
    if index is None or found.slope is None:
        return None
    for loop in view.facts.loops_around(found.access.node):
        step = index.coefficient(loop.atom.name)
        whole = (loop.bound - loop.start - found.slope).constant == 0
        if whole and step is not None and step.constant == 1 and loop.step.constant == 1:
            return "team-for-each-row"
    across = index.coefficient("threadIdx.y")
    return "transposed-staging" if across is not None and across.constant in (1, -1) else None
