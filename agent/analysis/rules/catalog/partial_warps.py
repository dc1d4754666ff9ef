"""L1: a block whose size is no multiple of 32."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
void run(float* x, int n) {
    fill<<<(n + 99) / 100, 100>>>(x, n);  // L1
}
"""
SQUARE = """\
__global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
void run(float* x, int n) {
    dim3 block(10, 10);
    fill<<<(n + 9) / 10, block>>>(x, n);  // L1
}
"""
WHOLE = """\
__global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
void run(float* x, int n, int threads) {
    const int BLOCK = 4 * 32;
    fill<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, n);
    fill<<<(n + threads - 1) / threads, threads>>>(x, n);
    fill<<<1, 1>>>(x, 1);
}
"""


@rule(
    id="L1",
    name="partial-warps",
    title="A block is no multiple of 32 threads",
    why="Threads run in warps of 32; the lanes of the last warp that have no thread are issued and do nothing.",
    cost=Cost.LANES,
    severity=Severity.WARNING,
    silent_when=("the block's size cannot be told", "the block is a single thread"),
    fires=(FIRES, SQUARE),
    silent=(WHOLE,),
)
def partial_warps(view: View) -> Iterator[Hit]:
    for number, launch in enumerate(view.launches):
        threads = launch.threads
        if threads is not None and threads > 1 and threads % 32:
            idle = -threads % 32
            warps = (threads + idle) // 32
            yield hit(
                at_launch(number, "block"),
                f"a block of {threads} threads is {warps} warp{'s' * (warps > 1)} with {idle} lanes that do nothing: "
                "use a multiple of 32",
                f"{idle} of {threads + idle} lanes idle",
            )
