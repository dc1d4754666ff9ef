"""M9: pointers that are only read, and do not say that nobody writes there."""

from collections.abc import Iterator

from agent.analysis.aliasing import only_read
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, ancestors

FIRES = """\
__global__ void matvec(const float* a, const float* x, float* y, int n) {  // M9
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    y[row] = 0.0f;
    for (int k = 0; k < n; ++k) y[row] += a[row * n + k] * x[k];
}
"""
PROMISED = FIRES.replace("float* ", "float* __restrict__ ").replace("  // M9", "")
ONCE = """\
__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""


@rule(
    id="M9",
    name="unpromised-pointers",
    title="A pointer is only read, and is not const __restrict__",
    why="Only a promise that nobody writes there lets the compiler keep what it loaded, reorder loads past stores and "
    "use the read-only path.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=("it is not read in a loop", "the kernel writes nothing", "the pointer is given away"),
    fires=(FIRES,),
    silent=(PROMISED, ONCE),
    fix="restrict-pointers",
    default=False,
)
def unpromised_pointers(view: View) -> Iterator[Hit]:
    accesses = [access for access in view.facts.accesses if access.space == "global"]
    if not any(access.writes and access.root is not None and not access.root.restrict for access in accesses):
        return
    looped = [one for one in accesses if one.reads and any(above.type in LOOPS for above in ancestors(one.node))]
    found = {one.root for one in looped if one.root is not None and not one.root.restrict}
    read = sorted((one for one in found if only_read(one, view.facts)), key=lambda one: one.declarator.start_byte)
    if read:
        names = ", ".join(symbol.name for symbol in read)
        yield hit(
            read[0].declarator,
            f"{names} {'is' if len(read) == 1 else 'are'} only read, in a loop: const __restrict__ lets the compiler "
            "keep and reorder what it loads, where no buffers overlap",
            related=tuple((symbol.declarator, "only read as well") for symbol in read[1:]),
        )
