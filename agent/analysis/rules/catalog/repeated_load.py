"""M6: an element that is loaded twice, because a store between may have changed it."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.aliasing import may_meet, only_read, straight_pairs
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void split(const float* x, float* low, float* high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    low[i] = floorf(x[i]);
    high[i] = x[i] + 1.0f;  // M6
}
"""
KEPT = """\
__global__ void split(const float* x, float* low, float* high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i] * x[i];
    low[i] = floorf(v);
    high[i] = v + 1.0f;
}
"""
PROMISED = """\
__global__ void split(const float* __restrict__ x, float* low, float* high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    low[i] = floorf(x[i]);
    high[i] = x[i] + 1.0f;
}
"""

PARTS = """\
struct Edge { float at[4]; };
__global__ void ends(const Edge* e, float* low, float* high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    low[i] = e[i].at[0];
    high[i] = e[i].at[1];
}
"""


@rule(
    id="M6",
    name="repeated-load",
    title="An element is loaded twice, because a store between may have changed it",
    why="Pointers may overlap unless __restrict__ says that they do not, so that after a store what was read before is "
    "read again.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=(
        "the kernel writes through the pointer, or gives it away",
        "one of the two pointers is __restrict__, or there is no store between: compilers keep the value then",
        "the first load is under a condition, or the index cannot be followed",
    ),
    fires=(FIRES,),
    silent=(KEPT, PROMISED, PARTS),
    fix="restrict-pointers",
)
def repeated_load(view: View) -> Iterator[Hit]:
    facts = view.facts
    stores = [access for access in facts.accesses if access.writes and access.space == "global"]
    roots = {access.root for access in facts.accesses if access.space == "global" and access.reads} if stores else set()
    for root in sorted((one for one in roots if one is not None), key=lambda one: one.declarator.start_byte):
        if root.restrict or not only_read(root, facts):
            continue
        found = [
            (first, between, second)
            for first, second in straight_pairs(facts, root)
            if (between := _between(first, second, stores)) is not None
        ]
        if found:
            (first, store, second), *others = found
            yield hit(
                second.node,
                f"`{text(second.node)}` is loaded again: for all that the compiler knows, the store to {store.name} "
                f"changed it; keep it in a variable, or declare the pointers __restrict__",
                related=(
                    (first.node, "loaded before"),
                    (store.node, "stored between"),
                    *((other.node, "loaded again as well") for _, _, other in others),
                ),
            )


def _between(first: Access, second: Access, stores: list[Access]) -> Access | None:
    return next(
        (
            store
            for store in stores
            if first.node.end_byte <= _done(store) <= second.node.start_byte and may_meet(first, store)
        ),
        None,
    )


def _done(store: Access) -> int:
    """Where a store has been made: at the end of its assignment, whose right side is read before."""
    parent = store.node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "field_expression"):
        parent = parent.parent
    return parent.end_byte if parent is not None and parent.type == "assignment_expression" else store.node.end_byte
