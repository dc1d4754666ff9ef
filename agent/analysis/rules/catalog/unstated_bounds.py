"""R6: a block that never changes and is not said."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Mend, Severity, hit
from agent.analysis.rules.mending import before
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void scale(float* x, int n) {  // R6
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
void run(float* x, int n) { scale<<<(n + 255) / 256, 256>>>(x, n); }
"""
SAID = FIRES.replace("void scale", "void __launch_bounds__(256) scale").replace("  // R6", "")
OPEN = """\
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
void run(float* x, int n, int threads) { scale<<<(n + threads - 1) / threads, threads>>>(x, n); }
"""


@rule(
    id="R6",
    name="unstated-bounds",
    title="Every launch has the same block, and the kernel does not say so",
    why="Without __launch_bounds__ the compiler must keep registers for blocks of 1024 threads.",
    cost=Cost.LANES,
    severity=Severity.HINT,
    silent_when=(
        "a launch's block is not known, launches differ, or blocks are as large as the compiler allows for",
        "the kernel has __launch_bounds__",
    ),
    fires=(FIRES,),
    silent=(SAID, OPEN),
    default=False,
)
def unstated_bounds(view: View) -> Iterator[Hit]:
    threads = view.threads
    if view.facts.kernel.launch_bounds or threads is None or not view.launches or not 0 < threads <= 512:
        return
    name = view.facts.node.descendant_for_byte_range(
        view.facts.kernel.name_span.start, view.facts.kernel.name_span.end - 1
    )
    if name is not None:
        bounds = f"__launch_bounds__({threads})"
        yield hit(
            name,
            f"every launch in this file has blocks of {threads} threads: {bounds} tells the compiler",
            mend=Mend(f"Add {bounds}", ((before(name), f"{bounds} "),), sure=False),
        )
