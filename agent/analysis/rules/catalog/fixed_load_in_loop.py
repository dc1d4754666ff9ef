"""M7: a load in a loop whose address never changes."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.aliasing import innermost_loop, may_meet, only_read, same_each_turn, stores_in, unconditional
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void scale(const float* factor, float* y, int n) {
    for (int k = threadIdx.x; k < n; k += blockDim.x) y[k] *= factor[blockIdx.x];  // M7
}
"""
HOISTED = """\
// With no store in the loop, or a promise, the compiler takes the load out itself.
__global__ void scale(const float* factor, const float* __restrict__ same, const float* x, float* y, int n) {
    float own = factor[blockIdx.x], s = 0.0f;
    for (int k = threadIdx.x; k < n; k += blockDim.x) y[k] *= own + same[blockIdx.x];
    for (int k = 0; k < n; ++k) s += x[k] * factor[blockIdx.x];
    y[threadIdx.x] = s;
}
"""


@rule(
    id="M7",
    name="fixed-load-in-loop",
    title="A loop loads the same element in each turn",
    why="A store in the loop may change the element, for all that the compiler knows, so that it is loaded each time.",
    cost=Cost.TRAFFIC,
    severity=Severity.INFORMATION,
    silent_when=(
        "the address changes with the loop, or cannot be followed",
        "a condition in the loop decides whether it is loaded",
        "the kernel writes through the pointer, or gives it away",
        "one of the two pointers is __restrict__, or the loop stores nothing",
    ),
    fires=(FIRES,),
    silent=(HOISTED,),
    fix="restrict-pointers",
)
def fixed_load_in_loop(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    for access in view.facts.accesses:
        if access.space != "global" or access.writes or access.name in seen or access.root is None:
            continue
        store = _disturbing(access, view)
        if store is not None:
            seen.add(access.name)
            yield hit(
                access.node,
                f"`{text(access.node)}` is loaded in each turn: for all that the compiler knows, the store to "
                f"{store.name} changes it; load it before the loop, or declare the pointers __restrict__",
                related=((store.node, "the store"),),
            )


def _disturbing(access: Access, view: View) -> Access | None:
    """The store in the loop around an access that may change what it reads."""
    assert access.root is not None
    if access.index is None or access.root.restrict or not only_read(access.root, view.facts):
        return None
    loop = innermost_loop(access.node, view.facts)
    if loop is None or not unconditional(access.node, loop.body) or not same_each_turn(access.index, loop, view.facts):
        return None
    return next((store for store in stores_in(view.facts, loop.body) if may_meet(access, store)), None)
