"""A1: a literal without an f that makes float arithmetic double."""

import struct
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbols
from agent.analysis.syntax import callee, descendants, text
from agent.analysis.types import OVERLOADED, is_double_literal, type_of

FIRES = """\
__global__ void relax(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i] * 0.1;  // A1
    y[i] += x[i] * 0.5;  // A1
    if (x[i] > 0.3) y[i] = 0.0f;  // A1
}
"""
FOLDED = """\
// 0.5, 1.0 and 2.0 are floats too, and the result goes to a float at once: the compiler computes in float.
__global__ void relax(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float half = x[i] * 0.5;
    float start = 0.1;
    y[i] = 1.0 / x[i];
    y[i] += 2.0;
    if (x[i] > 0.0) y[i] = half + start * 0.1f;
}
"""
MEANT = """\
__global__ void mean(const float* x, float* y, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += x[i] * 0.1;
    y[threadIdx.x] = sum / n;
}
"""
GENERIC = """\
template <typename T>
__global__ void relax(const T* x, T* y) { y[threadIdx.x] = x[threadIdx.x] * 0.1; }
"""


@rule(
    id="A1",
    name="double-literal",
    title="A double literal in float arithmetic",
    why="Without an f a literal is a double, and the operation is done in double, at 1/2 to 1/64 of the rate.",
    cost=Cost.ARITHMETIC,
    severity=Severity.WARNING,
    silent_when=(
        "the kernel uses the type double anywhere",
        "the other operand is not known to be a float",
        "the literal only starts or sets a variable, or is an argument",
        "the literal is a float exactly and the result goes to a float at once: compilers then compute in float",
    ),
    fires=(FIRES,),
    silent=(FOLDED, MEANT, GENERIC),
)
def double_literal(view: View) -> Iterator[Hit]:
    types = descendants(view.facts.node, "primitive_type", "type_identifier")
    if any(text(one).startswith("double") for one in types):
        return
    for literal in descendants(view.facts.body, "number_literal"):
        if is_double_literal(literal) and _promotes(literal, view.facts.symbols):
            yield hit(
                literal,
                f"{text(literal)} is a double, so this operation on floats is done in double; write {_single(literal)}",
                "double arithmetic in a float kernel",
                mend=replaced(f"Write {_single(literal)}", (literal, _single(literal))),
            )


def _single(literal: Node) -> str:
    return f"{text(literal)}f"


def _promotes(literal: Node, symbols: Symbols) -> bool:
    operand, parent = _up(literal)
    if parent is None or parent.type not in ("binary_expression", "assignment_expression"):
        return False
    operator = text(parent.child_by_field_name("operator"))
    sides = (parent.child_by_field_name("left"), parent.child_by_field_name("right"))
    other = sides[0] if sides[1] == operand else sides[1]
    if type_of(other, symbols) != "f32":
        return False
    if parent.type == "assignment_expression":
        return operator in ("+=", "-=", "*=", "/=") and not _exact(literal)
    if operator in ("<", "<=", ">", ">=", "==", "!="):
        return not _exact(literal)
    if operator not in ("+", "-", "*", "/"):
        return False
    return not _exact(literal) or _stays_double(parent, symbols)


def _up(node: Node) -> tuple[Node, Node | None]:
    """The node with signs and parentheses around it, and what that stands in."""
    parent = node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "unary_expression"):
        node, parent = parent, parent.parent
    return node, parent


def _stays_double(operation: Node, symbols: Symbols) -> bool:
    """Whether a result is used as a double: in more arithmetic, in a comparison, or by an overloaded function."""
    operand, parent = _up(operation)
    if parent is None:
        return False
    operator = text(parent.child_by_field_name("operator"))
    if parent.type == "binary_expression":
        return operator in ("+", "-", "*", "/", "<", "<=", ">", ">=") and _known(parent, operand, symbols)
    if parent.type == "assignment_expression":
        return operator in ("+=", "-=", "*=", "/=") and type_of(parent.child_by_field_name("left"), symbols) == "f32"
    call = parent.parent if parent.type == "argument_list" else None
    return call is not None and callee(call) in OVERLOADED


def _known(parent: Node, operand: Node, symbols: Symbols) -> bool:
    sides = (parent.child_by_field_name("left"), parent.child_by_field_name("right"))
    other = sides[0] if sides[1] == operand else sides[1]
    return type_of(other, symbols) in ("f32", "int") or (
        other is not None and any(is_double_literal(inner) for inner in descendants(other, "number_literal"))
    )


def _exact(literal: Node) -> bool:
    """Whether a float holds the value exactly."""
    try:
        value = float(text(literal).replace("'", ""))
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except (ValueError, OverflowError):
        return False
