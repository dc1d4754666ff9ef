"""L16: a kernel that returns a value."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ int count(const float* x, int n) {  // L16
    int found = 0;
    for (int k = 0; k < n; ++k) found += x[k] > 0.0f;
    return found;
}
"""
VOID = """\
__global__ void count(const float* x, int* y, int n) {
    int found = 0;
    for (int k = 0; k < n; ++k) found += x[k] > 0.0f;
    *y = found;
}
"""


@rule(
    id="L16",
    name="returning-kernel",
    title="A kernel returns a value",
    why="A kernel has to return void: its launch does not wait for it. It does not compile.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the type is a name, which may stand for void",),
    fires=(FIRES,),
    silent=(VOID,),
)
def returning_kernel(view: View) -> Iterator[Hit]:
    kind = view.facts.node.child_by_field_name("type")
    if kind is not None and kind.type in ("primitive_type", "sized_type_specifier") and text(kind) != "void":
        yield hit(kind, f"a kernel returns void, not {text(kind)}: write the result through a pointer")
