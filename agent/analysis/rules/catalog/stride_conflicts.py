"""S2: an even stride in a shared array of one dimension."""

from collections.abc import Iterator

from agent.analysis.rules.conflicts import conflicts
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void pairs(const float* x, float* y) {
    __shared__ float s[512];
    s[threadIdx.x] = x[blockIdx.x * 512 + threadIdx.x];
    s[threadIdx.x + 256] = x[blockIdx.x * 512 + threadIdx.x + 256];
    __syncthreads();
    y[blockIdx.x * 256 + threadIdx.x] = s[2 * threadIdx.x] + s[2 * threadIdx.x + 1];  // S2
}
"""
TREE = """\
__global__ void sum(float* x) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int at = 2 * d * threadIdx.x;
        if (at < 256) s[at] += s[at + d];  // S2
        __syncthreads();
    }
    if (threadIdx.x == 0) x[0] = s[0];
}
"""
ODD = """\
__global__ void triples(const float* x, float* y) {
    __shared__ float s[768];
    for (int k = 0; k < 3; ++k) s[threadIdx.x + 256 * k] = x[threadIdx.x + 256 * k];
    __syncthreads();
    y[threadIdx.x] = s[3 * threadIdx.x] + s[3 * threadIdx.x + 1] + s[3 * threadIdx.x + 2];
}
"""
SAME_WORD = """\
// All lanes read one word: it is handed to all of them in one pass.
__global__ void broadcast(const float* x, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x / 32 * 32];
}
"""
UNKNOWN = """\
__global__ void strided(const float* x, float* y, int stride) {
    __shared__ float s[1024];
    s[threadIdx.x * stride] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x * stride];
}
"""


@rule(
    id="S2",
    name="stride-conflicts",
    title="An even stride in a shared array",
    why="With a stride that shares a factor with 32, lanes of a warp want different words of one bank, one by one.",
    cost=Cost.PASSES,
    severity=Severity.WARNING,
    silent_when=(
        "an index, the element's size or the block cannot be followed",
        "elements are not 1, 2, 4 or 8 bytes wide",
        "fewer than 8 lanes of a warp come to the access",
    ),
    fires=(FIRES, TREE),
    silent=(ODD, SAME_WORD, UNKNOWN),
)
def stride_conflicts(view: View) -> Iterator[Hit]:
    for found in conflicts(view, flat=True):
        yield hit(
            found.access.node,
            f"the lanes of a warp meet in the same banks of {found.access.name}: {found.passes} passes where "
            f"{found.ideal} would do",
            f"{found.passes} passes over shared memory per access ({found.ideal} would do)",
            tuple((other.access.node, f"{other.passes} passes here") for other in found.others),
        )
