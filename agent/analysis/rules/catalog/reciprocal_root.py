"""A5: one divided by a square root."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import is_constant
from agent.analysis.syntax import ancestors, arguments, callee, text
from agent.analysis.types import literal_value, type_of

FIRES = """\
__global__ void direction(const float* x, const float* y, float* u, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) u[i] = x[i] * (1.0f / sqrtf(x[i] * x[i] + y[i] * y[i]));  // A5
}
"""
RIGHT = """\
__global__ void direction(const float* x, const float* y, float* u, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) u[i] = x[i] * rsqrtf(x[i] * x[i] + y[i] * y[i]) + 2.0f / sqrtf(x[i]) + x[i] / sqrtf(y[i]);
}
"""

CONSTANT = """\
// The compiler knows the root, and its reciprocal too.
template <int HEAD>
__global__ void scores(const float* x, float* y, int n) {
    const float scale = 1.0f / sqrtf((float)HEAD);
    constexpr int half = HEAD / 2;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * scale + 1.0f / sqrtf((float)half);
}
"""


@rule(
    id="A5",
    name="reciprocal-root",
    title="One divided by a square root",
    why="A square root and a division are two slow operations, rounded each; rsqrt is one, off by 2 ulp at most.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=(
        "the numerator is not 1 as written",
        "the root's argument is not known to be a float or a double, or is a number that the compiler knows",
    ),
    fires=(FIRES,),
    silent=(RIGHT, CONSTANT),
)
def reciprocal_root(view: View) -> Iterator[Hit]:
    for root in view.calls(("sqrt", "sqrtf")):
        division = next((above for above in ancestors(root) if above.type != "parenthesized_expression"), root)
        one = division.child_by_field_name("left")
        if text(division.child_by_field_name("operator")) != "/" or literal_value(one) != 1.0:
            continue
        given = arguments(root)
        if len(given) != 1 or is_constant(given[0], view.facts.symbols):
            continue
        kind = "f32" if callee(root) == "sqrtf" else type_of(given[0], view.facts.symbols)
        # 1.0 / sqrt(x) of a float is a division of doubles
        if kind not in ("f32", "f64") or (kind == "f32") != (type_of(one, view.facts.symbols) in ("f32", "int")):
            continue
        name = "rsqrtf" if kind == "f32" else "rsqrt"
        written = f"{name}({text(given[0])})"
        yield hit(
            division,
            f"a root and a division: {name} is one operation, right to 2 ulp in place of half of one",
            mend=replaced(f"Write {name} (the last bit may differ)", (division, written), sure=False),
        )
