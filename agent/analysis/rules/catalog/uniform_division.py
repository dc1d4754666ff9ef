"""A6: integer division by a parameter, in a loop."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, descendants, text
from agent.analysis.types import type_of

FIRES = """\
__global__ void shift(const float* x, float* y, int n, int cols) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int row = i / cols;  // A6
        y[i] = x[row * cols + (i + 1) % cols];
    }
}
"""
ONCE = """\
__global__ void shift(const float* x, float* y, int n, int cols) {
    int row = threadIdx.x / cols;
    for (int i = 0; i < cols; ++i) y[row * cols + i] = x[row * cols + i / 4] / cols;
}
"""
CONSTANT = """\
template <int COLS>
__global__ void shift(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i / COLS];
}
"""


@rule(
    id="A6",
    name="uniform-division",
    title="Integer division by a parameter in a loop",
    why="There is no integer divider: a division by a value that is not known when compiling is some 20 instructions.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=(
        "the divisor is not a parameter of the kernel as it was passed",
        "the division is not in a loop, or does not change with it",
    ),
    fires=(FIRES,),
    silent=(ONCE, CONSTANT),
)
def uniform_division(view: View) -> Iterator[Hit]:
    found = [
        node
        for loop in view.facts.loops
        for node in descendants(loop.body, "binary_expression")
        if _divides(node, view) and any(view.facts.symbols.resolve(name) is loop.variable for name in _names(node))
    ]
    if found:
        first, *others = sorted(set(found), key=lambda node: node.start_byte)
        divisor = text(first.child_by_field_name("right"))
        yield hit(
            first,
            f"an integer division by {divisor} in each turn: {divisor} never changes, so a multiplication by a "
            "precomputed reciprocal, or counting along, does the same",
            "some 20 instructions a turn",
            tuple((other, "another") for other in others),
        )


def _divides(node: Node, view: View) -> bool:
    if text(node.child_by_field_name("operator")) not in ("/", "%"):
        return False
    left, right = node.child_by_field_name("left"), bare(node.child_by_field_name("right"))
    if right is None or right.type != "identifier" or type_of(left, view.facts.symbols) != "int":
        return False
    symbol = view.facts.symbols.resolve(right)
    if symbol is None or symbol.space != "parameter" or not symbol.fixed or symbol.pointer:
        return False
    return type_of(right, view.facts.symbols) == "int"


def _names(node: Node) -> Iterator[Node]:
    left = node.child_by_field_name("left")
    return iter(()) if left is None else descendants(left, "identifier")
