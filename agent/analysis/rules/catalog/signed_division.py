"""A7: signed division by a power of two of what is never negative."""

from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from agent.analysis.ranges import never_negative
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, ancestors, text
from agent.analysis.types import literal_value
from agent.analysis.values import value
from agent.analysis.widths import integer_type

FIRES = """\
__global__ void spread(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i / 4] + x[i % 16];  // A7
    }
}
"""
UNSIGNED = """\
__global__ void spread(const float* x, float* y, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i / 4] + x[i % 16] + x[threadIdx.x / 32];
    }
}
"""
ANY_SIGN = """\
__global__ void spread(const float* x, float* y, int n, int shift) {
    for (int i = threadIdx.x; i < n; ++i) y[i] = x[(i - shift) / 4] + x[i / 12];
}
"""


@rule(
    id="A7",
    name="signed-division",
    title="Signed division by a power of two of what is never negative",
    why="Rounding towards zero takes three instructions for a signed number; of an unsigned one it is a single shift.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=("it is not in a loop", "the number may be negative, or cannot be followed", "it is unsigned already"),
    fires=(FIRES,),
    silent=(UNSIGNED, ANY_SIGN),
    default=False,
)
def signed_division(view: View) -> Iterator[Hit]:
    found = sorted(filter(partial(_divides, view), view.operations("/", "%")), key=lambda node: node.start_byte)
    if found:
        first, *others = found
        left = text(first.child_by_field_name("left"))
        yield hit(
            first,
            f"`{text(first)}` is rounded towards zero with three instructions, but {left} is never negative: as an "
            "unsigned number it takes one",
            related=tuple((other, "another") for other in others),
        )


def _divides(view: View, node: Node) -> bool:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if right is None or right.type not in ("number_literal", "identifier"):
        return False
    divisor = value(right, view.facts.scope).constant
    if divisor is None or divisor < 2 or divisor & (divisor - 1):
        return False
    if integer_type(node, view.facts.symbols) not in ("i32", "i64") or not _in_loop(node, view):
        return False
    if text(node.child_by_field_name("operator")) == "%" and _with_zero(node):  # the sign does not matter
        return False
    dividend = value(left, view.facts.scope)
    if all(factor % divisor == 0 for _, factor in dividend.terms):  # the compiler cancels
        return False
    return dividend.constant is None and never_negative(dividend, view.facts.loops_around(node))


def _with_zero(node: Node) -> bool:
    test = next((above for above in ancestors(node) if above.type != "parenthesized_expression"), node)
    sides = [literal_value(test.child_by_field_name(side)) for side in ("left", "right")]
    return text(test.child_by_field_name("operator")) in ("==", "!=") and 0.0 in sides


def _in_loop(node: Node, view: View) -> bool:
    return any(above.type in LOOPS for above in ancestors(node)) and bool(view.facts.loops_around(node))
