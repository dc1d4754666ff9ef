"""T2: an atomic update of one element in each turn of a loop."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.aliasing import innermost_loop, same_each_turn
from agent.analysis.rules.divergence import barriers
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee, contains

FIRES = """\
__global__ void sums(const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < n; ++k) atomicAdd(&y[row], x[row * n + k]);  // T2
}
"""
ONCE = """\
__global__ void sums(const float* x, float* y, int* next, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += x[row * n + k];
    atomicAdd(&y[row], s);
    for (int k = 0; k < n; ++k) atomicAdd(&y[k], s);
    for (int k = 0; k < n; ++k) y[atomicAdd(next, 1)] = s;
}
"""
FOLDS = frozenset(("atomicAdd", "atomicSub", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"))


@rule(
    id="T2",
    name="atomic-in-loop",
    title="A loop updates one element atomically in each turn",
    why="Each update goes to L2 or shared memory and takes turns there; a thread can fold its own in a register first.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=(
        "the address changes with the loop, or cannot be followed",
        "the old value is used",
        "the loop looks at the element, or waits in a barrier",
    ),
    fires=(FIRES,),
    silent=(ONCE,),
)
def atomic_in_loop(view: View) -> Iterator[Hit]:
    for access in view.facts.accesses:
        if access.atomic and access.space in ("global", "shared") and _repeated(access, view):
            yield hit(
                access.node,
                f"the same element of {access.name} is updated in each turn: fold in a variable, and do one "
                f"{callee(access.node)} after the loop",
                "an atomic operation in each turn (one would do)",
            )


def _repeated(access: Access, view: View) -> bool:
    parent = access.node.parent
    if callee(access.node) not in FOLDS or access.index is None or parent is None:
        return False
    loop = innermost_loop(access.node, view.facts)
    if parent.type != "expression_statement" or loop is None or loop.leaves_early:
        return False
    if not same_each_turn(access.index, loop, view.facts):
        return False
    others = [one for one in view.facts.accesses_in(loop.body) if one.root is access.root and not one.atomic]
    return not others and not any(contains(loop.body, barrier) for barrier in barriers(view.facts))
