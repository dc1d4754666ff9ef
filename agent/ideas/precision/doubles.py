"""Float expressions that are computed in double because of a literal or a function's name."""

import struct
from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import arguments, bare, callee, contains, descendants, text
from agent.analysis.types import is_double_literal, type_of
from agent.ideas.precision.powers import product
from agent.ideas.view import View

SINGLE = {
    name: f"{name}f"
    for name in (
        *("sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan"),
        *("asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "erf", "erfc", "fabs", "fmin", "fmax", "floor"),
        *("ceil", "round", "rint", "trunc", "fmod", "hypot", "fma", "copysign"),
    )
}
"""The float functions of the functions that are double, or double as soon as an argument is."""

ARITHMETIC = ("+", "-", "*", "/")
Change = tuple[Node, str]


@frozen
class Typed:
    """``type`` as C has it, the ``changes`` that make it float, and how many operations are then no longer double.
    ``exact``: every literal in it is a float exactly."""

    type: str
    changes: tuple[Change, ...] = ()
    doubles: int = 0
    exact: bool = True


def accidental(view: View) -> tuple[Change, ...]:
    """What makes every float that is computed in double be computed in float: literals that get an ``f``, functions
    that get their float name, small powers written out. Only where all of an expression's variables are floats or
    integers, and its value goes to a float."""
    found: list[Change] = []
    for root in _values_of_floats(view):
        typed = _typed(root, view)
        if typed is None or typed.type != "f64" or not typed.doubles:
            continue
        folded = typed.exact and typed.doubles == 1  # one rounding to float is what the compiler makes of it anyway
        if not folded:
            found += typed.changes
    return tuple(found)


def _values_of_floats(view: View) -> Iterator[Node]:
    """Right sides of what declares or changes a float."""
    for node in descendants(view.facts.body, "init_declarator", "assignment_expression"):
        if node.type == "init_declarator":
            declared = node.parent
            holder = text(declared.child_by_field_name("type")) if declared is not None else ""
            name = node.child_by_field_name("declarator")
            value = node.child_by_field_name("value")
            if holder == "float" and name is not None and name.type == "identifier" and value is not None:
                yield value
        else:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if right is not None and type_of(left, view.facts.symbols) == "f32":
                yield right


def _typed(node: Node | None, view: View) -> Typed | None:
    node = bare(node)
    if node is None:
        return None
    if node.type == "number_literal" and is_double_literal(node):
        return Typed("f64", ((node, f"{text(node)}f"),), 0, _exact(node))
    if node.type == "unary_expression" and text(node.child_by_field_name("operator")) in "+-":
        return _typed(node.child_by_field_name("argument"), view)
    if node.type == "binary_expression" and text(node.child_by_field_name("operator")) in ARITHMETIC:
        return _operation([node.child_by_field_name("left"), node.child_by_field_name("right")], view)
    if node.type == "conditional_expression":
        return _operation([node.child_by_field_name("consequence"), node.child_by_field_name("alternative")], view, 0)
    if node.type == "call_expression" and callee(node) in SINGLE and not _own(view, callee(node)):
        return _call(node, view)
    plain = type_of(node, view.facts.symbols)
    return Typed(plain) if plain in ("f32", "int") else None


def _operation(operands: list[Node | None], view: View, cost: int = 1) -> Typed | None:
    parts = [_typed(one, view) for one in operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    types = {part.type for part in known}
    kind = "f64" if "f64" in types else "f32" if "f32" in types else "int"
    return Typed(
        kind,
        tuple(change for part in known for change in part.changes),
        sum(part.doubles for part in known) + (cost if kind == "f64" else 0),
        all(part.exact for part in known),
    )


def _call(node: Node, view: View) -> Typed | None:
    """A mathematical function: double with a double or only integers, else float. A power of a float by an integer is
    double."""
    given = arguments(node)
    found = _operation(list(given), view, 0)
    function = node.child_by_field_name("function")
    if found is None or function is None or not given:
        return None
    first = _typed(given[0], view)
    double = found.type != "f32" or (callee(node) == "pow" and _whole(given[-1], view))
    if not double:
        return Typed("f32", found.changes, found.doubles, found.exact)
    if first is not None and first.type == "int" and callee(node) != "pow":
        return None  # of an integer: meant as a double, perhaps for its width
    # the compiler writes out a small power of a double by itself, but calls a function for one of a float
    short = product(node, _changed(bare(given[0]), found.changes)) if callee(node) == "pow" else None
    changes = ((node, short),) if short is not None else (*found.changes, (function, SINGLE[callee(node)]))
    return Typed("f64", changes, found.doubles + 2, found.exact)


def _changed(node: Node | None, changes: tuple[Change, ...]) -> str:
    """A node's text with the changes inside it made."""
    if node is None:
        return ""
    written, start = node.text or b"", node.start_byte
    inside = [change for change in changes if contains(node, change[0])]
    for inner, new in sorted(inside, key=lambda change: -change[0].start_byte):
        written = written[: inner.start_byte - start] + new.encode() + written[inner.end_byte - start :]
    return written.decode("utf-8", "replace")


def _whole(node: Node, view: View) -> bool:
    return type_of(node, view.facts.symbols) == "int"


def _own(view: View, name: str) -> bool:
    """Whether the file defines a function of this name itself."""
    for node in descendants(view.document.tree.root_node, "function_declarator", "preproc_function_def"):
        named = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if text(named) == name:
            return True
    return False


def _exact(literal: Node) -> bool:
    try:
        value = float(text(literal).replace("'", ""))
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except (ValueError, OverflowError):
        return False
