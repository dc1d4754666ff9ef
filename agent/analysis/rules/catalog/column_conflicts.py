"""S1: lanes of a warp in one bank of a shared array of several dimensions."""

from collections.abc import Iterator

from agent.analysis.rules.conflicts import Conflict, conflicts
from agent.analysis.rules.finding import Cost, Hit, Mend, Severity, hit
from agent.analysis.rules.mending import padded
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import contains, descendants

FIRES = """\
#define TILE 32
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];  // S1
}
void run(const float* in, float* out, int n) {
    transpose<<<dim3((n + 31) / 32, (n + 31) / 32), dim3(32, 32)>>>(in, out, n);
}
"""
PADDED = FIRES.replace("[TILE][TILE]", "[TILE][TILE + 1]").replace("  // S1", "")
OPEN_TYPE = FIRES.replace("__global__", "template <typename T>\n__global__").replace(
    "const float* in, float* out, int n) {\n    __shared__ float", "const T* in, T* out, int n) {\n    __shared__ T"
)
NARROW = """\
// 8 lanes in a row of 8: each of the 32 banks is asked once.
__global__ void rows(const float* in, float* out) {
    __shared__ float s[4][8];
    s[threadIdx.y][threadIdx.x] = in[threadIdx.y * 8 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 8 + threadIdx.x] = s[threadIdx.y][threadIdx.x];
}
void run(const float* in, float* out) {
    rows<<<1, dim3(8, 4)>>>(in, out);
}
"""


@rule(
    id="S1",
    name="column-conflicts",
    title="A warp goes down a column of a shared array",
    why="Shared memory has 32 banks of 4 bytes; lanes that want different words of one bank are served one by one.",
    cost=Cost.PASSES,
    severity=Severity.WARNING,
    silent_when=(
        "an index, an extent of the array, the element's size or the block cannot be followed",
        "elements are not 1, 2, 4 or 8 bytes wide",
        "fewer than 8 lanes of a warp come to the access",
    ),
    fires=(FIRES, OPEN_TYPE),
    silent=(PADDED, NARROW),
)
def column_conflicts(view: View) -> Iterator[Hit]:
    for found in conflicts(view, flat=False):
        advice = "; one more element in the inner extent spreads them" if found.padding else ""
        yield hit(
            found.access.node,
            f"the lanes of a warp meet in the same banks of {found.access.name}: {found.passes} passes where "
            f"{found.ideal} would do{advice}",
            f"{found.passes} passes over shared memory per access ({found.ideal} would do)",
            tuple((other.access.node, f"{other.passes} passes here") for other in found.others),
            mend=_mend(found, view) if found.padding else None,
        )


def _mend(found: Conflict, view: View) -> Mend | None:
    array, width = found.access.root, view.element_bytes(found.access)
    if array is None or width is None or array.extern:
        return None
    named = descendants(view.facts.node, "identifier")
    uses = [one for one in named if view.facts.symbols.resolve(one) is array and not contains(array.declarator, one)]
    return padded(array.name, uses, array.dims, width, view)
