"""Y8: all threads write different values to one element."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.dependence import PURE
from agent.analysis.rules.divergence import lets_most_through
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee, descendants, text
from agent.analysis.values import value

FIRES = """\
__global__ void largest(const float* x, float* best, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) best[0] = fmaxf(0.0f, x[i]);  // Y8
}
"""
MEANT = """\
__global__ void found(const float* x, int* flag, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] < 0.0f) *flag = 1;
    if (i < n && x[i] > 9.0f) *flag = i;
    if (threadIdx.x == 0) y[blockIdx.x] = x[i];
    y[0] = x[blockIdx.x];
    y[i] = x[i];
}
"""


@rule(
    id="Y8",
    name="same-element",
    title="All threads write different values to one element",
    why="Which thread's value stays is not defined, and may change from run to run.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the value may be the same for all threads, or comes from a call that is not followed",
        "a condition other than a bound decides which threads write",
        "the index depends on the thread, or cannot be followed",
    ),
    fires=(FIRES,),
    silent=(MEANT,),
)
def same_element(view: View) -> Iterator[Hit]:
    if view.threads == 1:
        return
    for access in view.facts.accesses:
        if access.space not in ("global", "shared") or access.atomic or not access.writes or access.index is None:
            continue
        if any(not atom.same_for_all or atom.depends or "@" in atom.name for atom in access.index.atoms):
            continue
        given = _assigned(access)
        if given is not None and _differs(given, view, access) and _all_write(access, view):
            yield hit(
                access.node,
                f"every thread writes its own value to `{text(access.node)}`: one of them stays, by chance",
                related=((given, "differs between threads"),),
            )


def _assigned(access: Access) -> Node | None:
    parent = access.node.parent
    if parent is None or parent.type != "assignment_expression":
        return None
    return parent.child_by_field_name("right") if text(parent.child_by_field_name("operator")) == "=" else None


def _differs(given: Node, view: View, target: Access) -> bool:
    """Whether a value is an element that another thread has another of, or the thread's number, and what follows from
    it by plain arithmetic."""
    if any(callee(call) not in PURE for call in descendants(given, "call_expression")):
        return False
    if any(True for _ in descendants(given, "lambda_expression", "assignment_expression", "update_expression")):
        return False
    inside = view.facts.accesses_in(given)
    for access in inside:
        slope = access.index.coefficient("threadIdx.x") if access.index is not None else None
        if access.root is not target.root and access.space == "global" and slope is not None and slope.terms:
            return True
    number = value(given, view.facts.scope)
    slope = number.coefficient("threadIdx.x")
    return not inside and slope is not None and slope.constant not in (None, 0) and "unknown" not in number.depends


def _all_write(access: Access, view: View) -> bool:
    return all(guard.kind != "switch" and lets_most_through(guard.condition, view) for guard in view.guards(access))
