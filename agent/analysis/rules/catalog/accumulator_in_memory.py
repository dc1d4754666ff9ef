"""M10: a sum that is kept in global memory."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.aliasing import innermost_loop, may_meet, same_each_turn
from agent.analysis.loops import Loop
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, ancestors, text

FIRES = """\
__global__ void matvec(const float* a, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    for (int k = 0; k < n; ++k) y[row] += a[row * n + k] * x[k];  // M10
}
"""
KEPT = """\
__global__ void matvec(const float* a, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float s = y[row];
    for (int k = 0; k < n; ++k) s += a[row * n + k] * x[k];
    y[row] = s;
}
"""
PROMISED = """\
__global__ void matvec(const float* __restrict__ a, float* __restrict__ y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    for (int k = 0; k < n; ++k) y[row] += a[row * n + k];
    for (int k = 0; k < n; ++k) y[k] += 1.0f;
}
"""


@rule(
    id="M10",
    name="accumulator-in-memory",
    title="A loop adds to an element of global memory in each turn",
    why="As the compiler must assume that other pointers reach the element, it is stored in each turn, and loads wait.",
    cost=Cost.TRAFFIC,
    severity=Severity.INFORMATION,
    silent_when=(
        "the element changes with the loop, or its index cannot be followed",
        "__restrict__ lets the compiler keep it in a register",
        "the update is atomic",
    ),
    fires=(FIRES,),
    silent=(KEPT, PROMISED),
    fix="register-accumulator",
)
def accumulator_in_memory(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    for access in view.facts.accesses:
        if access.space != "global" or access.atomic or not (access.reads and access.writes) or access.name in seen:
            continue
        loop = innermost_loop(access.node, view.facts)
        reader = None if loop is None else _reader(access, loop, view)
        if reader is not None:
            seen.add(access.name)
            yield hit(
                access.node,
                f"`{text(access.node)}` is stored in each turn, as {reader.name} may overlap it: add up in a variable "
                "and store it once",
                "a store in each turn (one would do)",
                ((reader.node, "may read what was stored"),),
            )


def _reader(access: Access, loop: Loop, view: View) -> Access | None:
    if access.index is None or not same_each_turn(access.index, loop, view.facts):
        return None
    if any(above.type in LOOPS for above in ancestors(access.node) if above.start_byte > loop.node.start_byte):
        return None
    inside = view.facts.accesses_in(loop.body)
    return next((one for one in inside if one.reads and not one.atomic and may_meet(access, one)), None)
