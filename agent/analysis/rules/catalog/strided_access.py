"""M1: neighbouring threads a known distance apart in global memory."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import Request, requests
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void first_channel(const float* image, float* red, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) red[i] = image[i * 4];  // M1
}
"""
LATTICE = """\
const int Q = 9;
__global__ void speed(const float* f, float* u, int cells) {
    int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float sum = 0.0f;
    for (int q = 0; q < Q; ++q) sum += f[cell * Q + q];  // M1
    u[cell] = sum;
}
"""
SIDE_BY_SIDE = """\
__global__ void first_plane(const float* planes, float* red, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) red[i] = planes[i];
}
"""
WHOLE_SECTORS = """\
// All eight floats of a sector are read by the thread that wanted the first: what is loaded is used.
__global__ void norms(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += x[i * 8 + k] * x[i * 8 + k];
    y[i] = sum;
}
"""
BY_FOUR = """\
// The macro loads four elements at once; so may one of a header.
#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])
__global__ void add(const float* a, const float* b, float* c) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    float4 one = FLOAT4(a[i]), two = LDST128(b[i]);
    FLOAT4(c[i]) = make_float4(one.x + two.x, one.y + two.y, one.z + two.z, one.w + two.w);
}
"""
ONE_THREAD = """\
__global__ void last_of_block(const float* x, float* y) {
    if (threadIdx.x == 0) y[blockIdx.x * 32] = x[threadIdx.x * 32];
}
"""


@rule(
    id="M1",
    name="strided-access",
    title="Neighbouring threads are some elements apart in global memory",
    why="A warp's request is served in sectors of 32 bytes; with a stride a few bytes of each sector are used.",
    cost=Cost.TRAFFIC,
    severity=Severity.WARNING,
    silent_when=(
        "the index, the element's size or the block cannot be followed",
        "the stride is a name and not a number (see M2)",
        "each thread uses the whole of a sector by itself (up to 32 bytes side by side)",
        "fewer than 8 lanes of a warp come to the access",
        "fewer than twice the necessary sectors are touched",
    ),
    fires=(FIRES, LATTICE),
    silent=(SIDE_BY_SIDE, WHOLE_SECTORS, ONE_THREAD, BY_FOUR),
)
def strided_access(view: View) -> Iterator[Hit]:
    bad = [found for found in requests(view) if _strided(found) and not _uses_sectors(found, view)]
    for name in dict.fromkeys(found.access.name for found in bad):
        first, *others = [found for found in bad if found.access.name == name]
        slope = first.slope.constant if first.slope is not None else 0
        yield hit(
            first.access.node,
            f"neighbouring threads are {abs(slope or 0)} elements of {name} apart",
            f"{first.words} ({first.ideal} would do)",
            tuple((other.access.node, f"{other.sectors} sectors here ({text(other.access.node)})") for other in others),
        )


def _strided(found: Request) -> bool:
    slope = None if found.slope is None else found.slope.constant
    return slope is not None and abs(slope) > 1 and found.sectors >= 2 * found.ideal


def _uses_sectors(found: Request, view: View) -> bool:
    """Whether the thread's own accesses fill the stride, and the stride is a sector or less."""
    slope = abs((found.slope.constant or 0) if found.slope is not None else 0)
    if slope * found.element_bytes > 32:
        return False
    for loop in view.facts.loops_around(found.access.node):
        step = found.access.index.coefficient(loop.atom.name) if found.access.index is not None else None
        if step is not None and loop.step.constant is not None and step.constant in (1, -1):
            return True
    same = [other for other in requests(view) if other.access.name == found.access.name]
    offsets = {(other.index - found.index).constant for other in same} - {None}
    return len(offsets) >= slope
