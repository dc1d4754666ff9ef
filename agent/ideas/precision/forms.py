"""Cheaper forms of float operations that stay within an ulp or two."""

import math
import struct

from tree_sitter import Node

from agent.analysis.formulas import ATOMIC
from agent.analysis.patterns.settled import settled
from agent.analysis.syntax import arguments, bare, callee, descendants, text, tokens
from agent.analysis.types import type_of
from agent.ideas.precision.doubles import Change
from agent.ideas.precision.powers import product
from agent.ideas.view import View

ONES = ("1.0f", "1.f", "1", "1.0F")
ROOTS = ("sqrtf", "sqrt", "__fsqrt_rn")
INTRINSICS = {
    "expf": "__expf", "exp": "__expf", "logf": "__logf", "log": "__logf", "log2f": "__log2f", "log10f": "__log10f",
    "sinf": "__sinf", "sin": "__sinf", "cosf": "__cosf", "cos": "__cosf", "powf": "__powf", "pow": "__powf",
    "exp10f": "__exp10f", "tanf": "__tanf", "tan": "__tanf",
}  # fmt: skip
"""Intrinsics of less precision (CUDA C++ Programming Guide, "Intrinsic Functions")."""


def cheaper(view: View) -> tuple[Change, ...]:
    """A division by a root as a product with the reciprocal root, a division by a literal as a product, a small power
    as a product."""
    found: list[Change] = []
    for node in descendants(view.facts.body, "binary_expression", "call_expression"):
        new = _quotient(view, node) if node.type == "binary_expression" else _power(view, node)
        if new is not None and not any(_overlap(node, other) for other, _ in found):
            found.append((node, new))
    return tuple(found)


def intrinsics(view: View) -> tuple[Change, ...]:
    """Float functions by their hardware approximations."""
    found = []
    for call in view.facts.calls:
        function, name = call.child_by_field_name("function"), callee(call)
        floats = all(type_of(one, view.facts.symbols) == "f32" for one in arguments(call))
        if function is not None and name in INTRINSICS and floats and arguments(call):
            found.append((function, INTRINSICS[name]))
    return tuple(found)


def quick(view: View) -> tuple[Change, ...]:
    """The approximations that a loop's own rounding may hide: exponentials, and powers of what is not negative (of
    negative numbers the approximation knows none). Their errors are relative, however large the argument."""
    return tuple(
        (function, name)
        for function, name in intrinsics(view)
        if name in ("__expf", "__exp10f", "__powf") and function.parent is not None
        if view.facts.loops_around(function)
        if name != "__powf" or not_negative(view, arguments(function.parent)[0])
    )


def not_negative(view: View, node: Node | None, depth: int = 0) -> bool:
    """Whether a float cannot be below zero, by how it is made: squares, roots, magnitudes, their sums and products."""
    node = bare(node)
    if node is None or depth > 20:
        return False
    if node.type == "number_literal":
        return True
    if node.type == "call_expression":
        return callee(node) in ("fabsf", "fabs", "sqrtf", "sqrt", "expf", "exp", "__expf")
    if node.type == "identifier":
        symbol = view.facts.symbols.resolve(node)
        if symbol is None or symbol.is_memory or symbol.escapes or symbol.space != "local":
            return False
        last = settled(node, symbol, view.facts)
        if last is not None:
            plain = last.type == "assignment_expression" and text(last.child_by_field_name("operator")) == "="
            return plain and not_negative(view, last.child_by_field_name("right"), depth + 1)
        return symbol.fixed and not_negative(view, symbol.init, depth + 1)
    if node.type != "binary_expression":
        return False
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = text(node.child_by_field_name("operator"))
    if operator == "*" and tokens(bare(left)) == tokens(bare(right)):
        return not any(True for _ in descendants(node, "call_expression", "update_expression", "assignment_expression"))
    sides = (not_negative(view, one, depth + 1) for one in (left, right))
    return operator in ("+", "*", "/") and all(sides)


def _overlap(one: Node, other: Node) -> bool:
    return one.start_byte < other.end_byte and other.start_byte < one.end_byte


def _quotient(view: View, node: Node) -> str | None:
    left, right = node.child_by_field_name("left"), bare(node.child_by_field_name("right"))
    if text(node.child_by_field_name("operator")) != "/" or left is None or right is None:
        return None
    if type_of(left, view.facts.symbols) not in ("f32", "int") or type_of(right, view.facts.symbols) != "f32":
        return None
    if callee(right) in ROOTS and len(arguments(right)) == 1:
        root = f"rsqrtf({text(arguments(right)[0])})"
        return root if text(bare(left)) in ONES else f"{text(left)} * {root}"
    rooted = _rooted(right)
    if rooted is not None:
        root, other = rooted
        one = text(bare(left)) in ONES
        return f"{root} / {other}" if one else f"{text(left)} * {root} / {other}"
    constant = not any(True for _ in descendants(left, "identifier"))  # the compiler divides constants itself
    if constant or right.type != "number_literal":
        return None
    if type_of(left, view.facts.symbols) == "f32" and _rounds(text(right)):
        return f"{text(left)} * (1.0f / {text(right)})"
    return None


def _rooted(divisor: Node) -> tuple[str, str] | None:
    """(reciprocal root, other factor) of a divisor ``b * sqrtf(c)``."""
    left, right = bare(divisor.child_by_field_name("left")), bare(divisor.child_by_field_name("right"))
    if divisor.type != "binary_expression" or text(divisor.child_by_field_name("operator")) != "*":
        return None
    for root, other in ((left, right), (right, left)):
        if root is not None and other is not None and callee(root) in ROOTS and len(arguments(root)) == 1:
            spelled = (
                text(other) if other.type in ATOMIC or other.type == "subscript_expression" else f"({text(other)})"
            )
            return f"rsqrtf({text(arguments(root)[0])})", spelled
    return None


def _rounds(literal: str) -> bool:
    """Whether dividing by a literal differs from multiplying with its reciprocal: by no power of two, where the
    compiler does that itself; and the reciprocal is a normal float."""
    try:
        value = struct.unpack("f", struct.pack("f", float(literal.rstrip("fF").replace("'", ""))))[0]
    except (ValueError, OverflowError):
        return False
    return bool(1e-30 < abs(value) < 1e30 and math.frexp(value)[0] != 0.5)


def _power(view: View, node: Node) -> str | None:
    given = arguments(node)
    if callee(node) not in ("powf", "pow", "__powf") or len(given) != 2:
        return None
    if type_of(given[0], view.facts.symbols) != "f32" or not (callee(node) != "pow" or text(given[1])[-1:] in "fF"):
        return None
    return product(node)
