"""W6: a reduction tree in shared memory down to one element."""

from collections.abc import Iterator

from agent.analysis.coalescing import WARP
from agent.analysis.patterns.tree_reduction import tree_reductions
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void sum(const float* x, float* y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {  // W6
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""
SHUFFLES = """\
__global__ void sum(const float* x, float* y) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
"""
UNKNOWN_BLOCK = """\
__global__ void sum(const float* x, float* y) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""


@rule(
    id="W6",
    name="tree-reduction",
    title="A reduction goes through shared memory down to one element",
    why="Each round costs a barrier of the whole block; within a warp, shuffles need neither memory nor barrier.",
    cost=Cost.WAITING,
    severity=Severity.HINT,
    silent_when=("the tree is not recognised as a whole", "the block's size is not known"),
    fires=(FIRES,),
    silent=(SHUFFLES, UNKNOWN_BLOCK),
    fix="warp-shuffle-reduction",
)
def tree_reduction(view: View) -> Iterator[Hit]:
    trees = tree_reductions(view.facts)
    if not trees:
        return
    first, *others = trees
    rounds, needed = first.width.bit_length() - 1, "two" if first.width > WARP else "none"
    yield hit(
        first.statement,
        f"a tree over {first.array.name} with {rounds} barriers: with warp shuffles {needed} would do",
        f"{rounds} barriers ({needed} would do)",
        tuple((other.statement, "another tree") for other in others),
    )
