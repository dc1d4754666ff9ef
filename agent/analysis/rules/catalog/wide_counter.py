"""A9: a 64-bit loop counter with 32-bit ends."""

from collections.abc import Iterator

from agent.analysis.loops import Loop
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import contains, text
from agent.analysis.widths import integer_type
from agent.workload.dtypes import from_c_type

FIRES = """\
__global__ void sum(const float* x, float* y, int n) {
    float s = 0.0f;
    for (size_t k = 0; k < n; ++k) s += x[k];  // A9
    y[threadIdx.x] = s;
}
"""
NARROW = """\
__global__ void sum(const float* x, float* y, int n, size_t m) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += x[k];
    for (size_t k = 0; k < m; ++k) s += x[k];
    for (size_t k = 0; k < n; ++k) s += x[k * gridDim.x];
    for (size_t k = 0; k < 8; ++k) s += x[k];
    y[threadIdx.x] = s;
}
"""


@rule(
    id="A9",
    name="wide-counter",
    title="A 64-bit loop counter whose ends have 32 bits",
    why="Registers have 32 bits: each step and each comparison of a 64-bit counter is two instructions.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=("an end has 64 bits, or its type is not known", "the counter is multiplied: it may be wide for that"),
    fires=(FIRES,),
    silent=(NARROW,),
    default=False,
)
def wide_counter(view: View) -> Iterator[Hit]:
    symbols = view.facts.symbols
    for loop in view.facts.loops:
        if loop.setup is not None or from_c_type(loop.variable.type) not in ("i64", "u64"):
            continue
        bound = integer_type(loop.bound_node, symbols)
        if bound not in ("i32", "u32") or loop.bound.constant is not None or _multiplied(loop, view):
            continue
        yield hit(
            loop.variable.declarator,
            f"{loop.variable.name} counts in 64 bits up to `{text(loop.bound_node)}`, which has 32",
            "two instructions for each step and comparison",
        )


def _multiplied(loop: Loop, view: View) -> bool:
    names = [node for node in view.nodes("identifier") if contains(loop.body, node)]
    used = [node for node in names if text(node) == loop.variable.name]
    return any(
        contains(product, name)
        for product in view.operations("*", "<<")
        if contains(loop.body, product)
        for name in used
    )
