"""S6: dynamic shared memory for a kernel that has none."""

from collections.abc import Iterator

from agent.analysis.dependence import PURE
from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee

FIRES = """\
__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }
void run(float* x) {
    scale<<<1, 256, 256 * sizeof(float)>>>(x);  // S6
}
"""
USED = """\
__device__ void inside(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
}
__global__ void first(float* x) { inside(x); }
__global__ void second(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
}
void run(float* x) {
    first<<<1, 256, 1024>>>(x);
    second<<<1, 256, 1024>>>(x);
    second<<<1, 256, 0>>>(x);
}
"""


@rule(
    id="S6",
    name="unused-shared-size",
    title="A launch gives dynamic shared memory to a kernel that has none",
    why="What a block asks for is taken from the multiprocessor whether it is used or not: fewer blocks fit.",
    cost=Cost.LANES,
    severity=Severity.INFORMATION,
    silent_when=("the kernel calls a function that is not known: it may declare the array", "the size is not known"),
    fires=(FIRES,),
    silent=(USED,),
)
def unused_shared_size(view: View) -> Iterator[Hit]:
    given = [number for number, launch in enumerate(view.launches) if launch.shared]
    if not given or any(symbol.extern for symbol in view.facts.symbols.all()) or not _all_known(view):
        return
    for number in given:
        size = view.launches[number].shared
        yield hit(
            at_launch(number, "shared"),
            f"{size} bytes of shared memory for {view.facts.kernel.name}, which has no extern __shared__ array",
        )


def _all_known(view: View) -> bool:
    """Whether no shared array can be declared where it is not seen."""
    names = {callee(call) for call in view.facts.calls}
    known = all(name in PURE or name.startswith(("__", "atomic", "printf")) for name in names)
    return known and not names & view.defined and b"extern" not in view.facts.document.text
