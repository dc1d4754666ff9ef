"""A4: a power with a small fixed exponent."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Mend, Severity, hit
from agent.analysis.rules.mending import operand, replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee, descendants, text
from agent.analysis.types import literal_value, type_of

FIRES = """\
__global__ void energy(const float* v, float* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) e[i] = 0.5f * powf(v[i], 2.0f);  // A4
    if (i < n) e[i] += pow(v[i], 0.5f);  // A4
}
"""
RIGHT = """\
__global__ void energy(const float* v, float* e, float p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) e[i] = powf(v[i], p) + powf(v[i], 1.7f) + powf(2.0f, v[i]);
}
"""
EFFECT = """\
__device__ float next(float* state);
__global__ void draw(float* state, float* y) { y[threadIdx.x] = powf(next(state), 2.0f); }
"""
INSTEAD = {2.0: "x * x", 3.0: "x * x * x", 4.0: "(x * x) * (x * x)", 0.5: "a square root"}


@rule(
    id="A4",
    name="slow-power",
    title="A general power with a small fixed exponent",
    why="powf is some hundred instructions with tables and cases; a product or a square root is a few.",
    cost=Cost.ARITHMETIC,
    severity=Severity.WARNING,
    silent_when=("the exponent is not 2, 3, 4 or 0.5 as written", "the base has an effect: it would be done twice"),
    fires=(FIRES,),
    silent=(RIGHT, EFFECT),
)
def slow_power(view: View) -> Iterator[Hit]:
    for call in view.facts.calls:
        given = arguments(call)
        if callee(call) not in ("pow", "powf") or len(given) != 2 or callee(call) in view.defined:
            continue
        instead = INSTEAD.get(literal_value(given[1]) or 0.0)
        if instead is not None and not _has_effect(given[0]):
            yield hit(
                call,
                f"{callee(call)} with exponent {text(given[1])}: {instead} does the same in a few instructions",
                mend=_mend(call, given[0], given[1], view),
            )


def _mend(call: Node, base: Node, exponent: Node, view: View) -> Mend | None:
    """Only where the base has the type that the call computes in: otherwise the product would be of another type."""
    single = callee(call) == "powf" or text(exponent).lower().endswith("f")
    if type_of(base, view.facts.symbols) != ("f32" if single else "f64"):
        return None
    power, x = literal_value(exponent), operand(base)
    if power == 0.5:
        root = "sqrtf" if single else "sqrt"
        return replaced(f"Write {root} (it differs for -0 and -infinity)", (call, f"{root}({text(base)})"), sure=False)
    product = {2.0: f"({x} * {x})", 3.0: f"({x} * {x} * {x})"}.get(power or 0.0, f"(({x} * {x}) * ({x} * {x}))")
    return replaced(f"Write a product instead of {callee(call)}", (call, product))


def _has_effect(node: Node) -> bool:
    return any(True for _ in descendants(node, "call_expression", "assignment_expression", "update_expression"))
