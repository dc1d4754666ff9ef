"""A3: a call whose arguments are a float and a double literal."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, bare, callee, text
from agent.analysis.types import is_double_literal, literal_value, type_of

FIRES = """\
__global__ void clamp(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmax(x[i], 0.0);  // A3
    if (i < n) y[i] += pow(x[i], 1.7);  // A3
}
"""
RIGHT = """\
__global__ void clamp(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmax(x[i], 0.0f) + fmaxf(x[i], 0.0) + pow(x[i], 1.7f);
}
"""
MEANT = """\
__global__ void clamp(const float* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = pow(x[i], 1.7);
}
"""
OVERLOADS = frozenset(("pow", "fmax", "fmin", "max", "min", "fmod", "atan2", "hypot", "fdim", "copysign", "remainder"))


@rule(
    id="A3",
    name="mixed-call",
    title="A function of a float and a double literal",
    why="With one argument of type double the double form is chosen, and the float is widened to call it.",
    cost=Cost.ARITHMETIC,
    severity=Severity.WARNING,
    silent_when=(
        "the kernel uses the type double anywhere",
        "the other argument is not known to be a float",
        "the file defines a function or macro of that name",
        "the power has a small fixed exponent: A4 says more",
    ),
    fires=(FIRES,),
    silent=(RIGHT, MEANT),
)
def mixed_call(view: View) -> Iterator[Hit]:
    calls = view.calls(OVERLOADS)
    if not calls or any(text(one) == "double" for one in view.nodes("primitive_type")):
        return
    for call in calls:
        literal = _double(call, view)
        if literal is not None:
            single = f"{text(literal)}f"
            yield hit(
                call,
                f"{text(literal)} is a double, so this {callee(call)} of a float is done in double; write {single}",
                "double arithmetic in a float kernel",
                mend=replaced(f"Write {single}", (literal, single)),
            )


def _double(call: Node, view: View) -> Node | None:
    given = arguments(call)
    if len(given) != 2:
        return None
    for literal, other in (given, given[::-1]):
        inner = bare(literal)
        if inner is None or not is_double_literal(inner) or type_of(other, view.facts.symbols) != "f32":
            continue
        small = callee(call) == "pow" and literal is given[1] and literal_value(inner) in (2.0, 3.0, 4.0, 0.5)
        return None if small else inner
    return None
