"""M1: neighbouring threads a known distance apart in global memory."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import Request, fills, requests
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
STRUCTS = """\
struct Body { float3 at; float mass; float speed[3]; };
__global__ void weights(const Body* bodies, const float4* v, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = bodies[i].mass;  // M1
    if (i < n) y[i] *= v[i].x;  // M1
}
"""
SPREAD = """\
__global__ void transposed(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = x[i % 32 * 32 + i / 32];  // M1
}
void run(const float* x, float* y) { transposed<<<4, 256>>>(x, y); }
"""
HINTED = """\
__global__ void thin(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) __stcs(y + i, __ldg(x + 4 * i) + __ldcs(&x[4 * i + 2]));  // M1
}
"""
WHOLE_SECTORS = """\
// All eight floats of a sector are read by the thread that wanted the first: what is loaded is used (see M4).
__global__ void norms(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += x[i * 8 + k] * x[i * 8 + k];
    y[i] = sum;
}
"""
VECTORS = """\
// A vector of which parts of both halves are wanted is loaded whole; a row of 8 lanes is a sector.
__global__ void lengths(const float4* v, const float* x, float* y, int w) {
    int i = blockIdx.x * 64 + threadIdx.y * 8 + threadIdx.x;
    y[i] = v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + x[(threadIdx.y * w + threadIdx.x)];
}
void run(const float4* v, const float* x, float* y, int w) { lengths<<<4, dim3(8, 8)>>>(v, x, y, w); }
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
WIDE = """\
// Four elements of each thread are one access, whatever the elements are; a reference moves nothing.
struct Job { float a[16]; };
template <typename T>
__global__ void sum(T* x, const Job* jobs, float* y) {
    int i = 4 * threadIdx.x;
    const Job& job = jobs[threadIdx.x];
    float4 v = *reinterpret_cast<float4*>(x + i);
    y[threadIdx.x] = v.x + v.y + v.z + v.w + first(job);
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
        "each thread uses the whole of a sector by itself (up to 32 bytes side by side, see M4)",
        "fewer than 8 lanes of a warp come to the access",
        "fewer than twice the sectors are touched that as many lanes side by side would need",
    ),
    fires=(FIRES, LATTICE, STRUCTS, SPREAD, HINTED),
    silent=(SIDE_BY_SIDE, WHOLE_SECTORS, ONE_THREAD, BY_FOUR, VECTORS, WIDE),
)
def strided_access(view: View) -> Iterator[Hit]:
    bad = [found for found in requests(view) if found.bad and found.by_number and not fills(found, view)]
    for name in dict.fromkeys(found.access.name for found in bad):
        first, *others = [found for found in bad if found.access.name == name]
        yield hit(
            first.access.node,
            _message(first),
            f"{first.words} ({first.ideal} would do)",
            tuple((other.access.node, f"{other.sectors} sectors here ({text(other.access.node)})") for other in others),
        )


def _message(found: Request) -> str:
    name, slope = found.access.name, None if found.slope is None else found.slope.constant
    if found.access.member and slope:
        return (
            f"each thread takes {found.access.member} of a struct of {name}, {found.step} bytes from its neighbour's: "
            "an array for each member would lie side by side"
        )
    if slope is None or abs(slope) < 2:
        return f"the lanes of a warp are spread over {name}"
    return f"neighbouring threads are {abs(slope)} elements of {name} apart"
