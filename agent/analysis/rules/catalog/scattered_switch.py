"""D7: a switch on what each thread loaded."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, text
from agent.analysis.values import dependence

FIRES = """\
__global__ void apply(const int* kind, float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    switch (kind[i]) {  // D7
        case 0: x[i] += 1.0f; break;
        case 1: x[i] = sqrtf(x[i]); break;
        case 2: x[i] = expf(x[i]); break;
        default: x[i] = 0.0f;
    }
}
"""
UNIFORM = """\
__global__ void apply(int kind, const int* kinds, float* x) {
    switch (kind) {
        case 0: x[threadIdx.x] += 1.0f; break;
        case 1: x[threadIdx.x] = 2.0f; break;
        case 2: x[threadIdx.x] = 3.0f; break;
        default: x[threadIdx.x] = 0.0f;
    }
    switch (kinds[threadIdx.x]) { case 0: x[0] = 1.0f; break; default: break; }
}
"""
MOST_CASES = 4


@rule(
    id="D7",
    name="scattered-switch",
    title="A switch on what each thread loaded",
    why="A warp runs each case that any of its lanes takes, one after the other.",
    cost=Cost.LANES,
    severity=Severity.HINT,
    silent_when=("it has fewer than four cases", "what it asks is the same for all threads, or cannot be followed"),
    fires=(FIRES,),
    silent=(UNIFORM,),
    default=False,
)
def scattered_switch(view: View) -> Iterator[Hit]:
    for switch in view.nodes("switch_statement"):
        condition, body = bare(switch.child_by_field_name("condition")), switch.child_by_field_name("body")
        cases = [] if body is None else [child for child in body.named_children if child.type == "case_statement"]
        if condition is None or len(cases) < MOST_CASES or not _each_its_own(condition, view):
            continue
        yield hit(
            condition,
            f"lanes with another `{' '.join(text(condition).split())[:50]}` take another of the {len(cases)} cases: a "
            "warp runs all that occur in it",
        )


def _each_its_own(condition: Node, view: View) -> bool:
    inside = view.facts.accesses_in(condition)
    symbol = view.facts.symbols.resolve(condition) if condition.type == "identifier" else None
    if symbol is not None and symbol.fixed and symbol.init is not None:
        inside = view.facts.accesses_in(symbol.init)
    if "memory" not in dependence(condition, view.facts.scope):
        return False
    slopes = [one.index.coefficient("threadIdx.x") for one in inside if one.index is not None and one.reads]
    return any(slope is not None and slope.terms for slope in slopes)
