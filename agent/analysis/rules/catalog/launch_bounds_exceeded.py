"""R5: a block larger than the kernel's __launch_bounds__."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
#define MOST 128
__global__ void __launch_bounds__(MOST) fill(float* x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
void run(float* x) {
    fill<<<4, 256>>>(x);  // R5
}
"""
WITHIN = """\
__global__ void __launch_bounds__(256, 2) fill(float* x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
template <int N>
__global__ void __launch_bounds__(N) generic(float* x) { x[threadIdx.x] = N; }
void run(float* x, int threads) {
    fill<<<4, 256>>>(x);
    fill<<<4, threads>>>(x);
    generic<64><<<4, 128>>>(x);
}
"""


@rule(
    id="R5",
    name="launch-bounds-exceeded",
    title="A block is larger than the kernel's __launch_bounds__",
    why="The compiler gives each thread the registers of the stated block; a launch with a larger one fails.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the bound or the block is not a known number",),
    fires=(FIRES,),
    silent=(WITHIN,),
)
def launch_bounds_exceeded(view: View) -> Iterator[Hit]:
    for number, launch in enumerate(view.launches):
        threads = launch.threads
        if view.bounds is not None and threads is not None and threads > view.bounds:
            yield hit(
                at_launch(number, "block"),
                f"a block of {threads} threads does not launch: the kernel is compiled for at most {view.bounds} "
                "(__launch_bounds__)",
            )
