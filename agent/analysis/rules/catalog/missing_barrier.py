"""Y3: a slot of shared memory that another thread has written, or will, with no barrier between."""

from collections.abc import Iterator

from attrs import evolve

from agent.analysis.rules.finding import Cost, Hit, Severity
from agent.analysis.rules.mending import with_barrier
from agent.analysis.rules.races import has_barrier, races, said
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void differences(const float* x, float* y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0.0f;
    float left = t > 0 ? s[t - 1] : 0.0f;  // Y3
    if (i < n) y[i] = s[t] - left;
}
"""
TREE = """\
__global__ void sum(float* x) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];  // Y3
    }
    __syncthreads();
    x[t] = s[0];
}
"""
ONE_FOR_ALL = """\
__global__ void scaled(float* x, const float* factor) {
    __shared__ float f;
    __shared__ float g[1];
    if (threadIdx.x == 0) g[0] = factor[blockIdx.x];
    x[blockIdx.x * 256 + threadIdx.x] *= g[0];  // Y3
}
"""
RIGHT = """\
__global__ void sum(float* x) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    x[t] = s[0];
}
"""
OWN_SLOT = """\
__global__ void own(float* x) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = 2.0f * s[threadIdx.x];
}
"""
OTHER_CALL = """\
// The function may hold the barrier.
__device__ void wait();
__global__ void turn(float* x) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    wait();
    x[threadIdx.x] = s[255 - threadIdx.x];
}
"""
ONE_WARP = """\
__global__ void turn(float* x) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[31 - threadIdx.x];
}
void run(float* x) { turn<<<1, 32>>>(x); }
"""


@rule(
    id="Y3",
    name="missing-barrier",
    title="Threads exchange values through shared memory with no barrier between",
    why="Warps run in any order: without a barrier a thread may read a slot before, or after, another one writes it.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "an index or a condition cannot be followed",
        "a call between the two may hold a barrier",
        "writer and reader are in one warp",
        "the two stand under conditions that may exclude each other",
    ),
    fires=(FIRES, TREE, ONE_FOR_ALL),
    silent=(RIGHT, OWN_SLOT, OTHER_CALL, ONE_WARP),
)
def missing_barrier(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    for race in races(view):
        if race.name not in seen and not has_barrier(race, view):
            seen.add(race.name)
            yield evolve(said(race), mend=with_barrier(race, view))
