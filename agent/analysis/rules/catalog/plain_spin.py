"""Y10: a loop that waits for a plain load to change."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import contains, statements, text

FIRES = """\
__global__ void after(const int* flag, float* x) {
    while (flag[0] == 0) {}  // Y10
    x[threadIdx.x] += 1.0f;
}
"""
FRESH = """\
__global__ void after(volatile int* flag, int* other, float* x, int n) {
    while (flag[0] == 0) {}
    while (*(volatile int*)other == 0) {}
    while (atomicAdd(other, 0) == 0) {}
    while (other[0] < n) { __threadfence(); }
    for (int k = 0; other[k] < n; ++k) {}
    x[threadIdx.x] += 1.0f;
}
"""


@rule(
    id="Y10",
    name="plain-spin",
    title="A loop waits for a plain load to change",
    why="The compiler may load once and keep the value: the loop then never ends. A volatile or atomic load is fresh.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the loop does anything else: writes, calls, or changes what its condition reads",
        "the pointer is volatile, or is cast to volatile",
    ),
    fires=(FIRES,),
    silent=(FRESH,),
)
def plain_spin(view: View) -> Iterator[Hit]:
    for loop in view.nodes("while_statement", "for_statement", "do_statement"):
        body, condition = loop.child_by_field_name("body"), loop.child_by_field_name("condition")
        if body is None or condition is None or _does_something(loop, body):
            continue
        loads = [one for one in view.facts.accesses if contains(condition, one.node)]
        plain = loads and all(one.space == "global" and not one.atomic and not one.writes for one in loads)
        if plain and not _fresh(loop, view, {one.name for one in loads}):
            yield hit(
                loads[0].node,
                f"nothing in the loop changes `{text(loads[0].node)}`, so it may be loaded once: make the pointer "
                "volatile, or load through cuda::atomic_ref",
            )


def _does_something(loop: Node, body: Node) -> bool:
    if loop.child_by_field_name("update") is not None:
        return True
    return bool([one for one in statements(body) if one.type != "expression_statement" or one.named_children])


def _fresh(loop: Node, view: View, names: set[str]) -> bool:
    condition = loop.child_by_field_name("condition")
    kinds = ("call_expression", "cast_expression", "update_expression", "assignment_expression")
    if condition is None or any(contains(condition, node) for kind in kinds for node in view.nodes(kind)):
        return True
    return any("volatile" in one.type for one in view.facts.kernel.parameters if one.name in names)
