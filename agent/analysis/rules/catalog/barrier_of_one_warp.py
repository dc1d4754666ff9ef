"""Y6: barriers of blocks that are one warp."""

from collections.abc import Iterator

from agent.analysis.coalescing import WARP
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void shift(const float* x, float* y) {
    __shared__ float s[32];
    s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();  // Y6
    y[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
}
void run(const float* x, float* y) { shift<<<64, 32>>>(x, y); }
"""
MORE = FIRES.replace("<<<64, 32>>>", "<<<64, 64>>>").replace("  // Y6", "")
UNKNOWN = FIRES.replace("float* y) { shift<<<64, 32>>>", "float* y, int t) { shift<<<64, t>>>").replace("  // Y6", "")


@rule(
    id="Y6",
    name="barrier-of-one-warp",
    title="A barrier in blocks of one warp",
    why="__syncwarp() orders what the lanes of a warp do, and does not wait for the block.",
    cost=Cost.WAITING,
    severity=Severity.HINT,
    silent_when=("a launch has larger blocks, or its block is not known", "no launch is in sight"),
    fires=(FIRES,),
    silent=(MORE, UNKNOWN),
)
def barrier_of_one_warp(view: View) -> Iterator[Hit]:
    threads = [launch.threads for launch in view.launches]
    largest = max((count for count in threads if count is not None), default=0)
    if not view.facts.barriers or None in threads or not 1 < largest <= WARP:
        return
    first, *others = view.facts.barriers
    yield hit(
        first,
        f"every launch in this file has blocks of {largest} threads at most: __syncwarp() is enough",
        related=tuple((other, "here as well") for other in others),
    )
