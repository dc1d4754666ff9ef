"""Functions whose values at d and at -d add up to a constant: distribution functions, odd functions."""

import math
from collections.abc import Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.symbols import template_names
from agent.analysis.syntax import arguments, bare, callee, descendants, statements, text

SUMS = {
    "normcdf": 1.0, "normcdff": 1.0, "erfc": 2.0, "erfcf": 2.0, "erf": 0.0, "erff": 0.0, "tanh": 0.0, "tanhf": 0.0,
    "sin": 0.0, "sinf": 0.0, "atan": 0.0, "atanf": 0.0, "sinh": 0.0, "sinhf": 0.0, "tan": 0.0, "tanf": 0.0,
}  # fmt: skip
"""f(d) + f(-d) of the mathematical functions that have such a sum (CUDA Math API)."""

NAMED = {
    "M_E": math.e, "M_LOG2E": math.log2(math.e), "M_LN2": math.log(2), "M_PI": math.pi, "M_1_PI": 1 / math.pi,
    "M_2_SQRTPI": 2 / math.sqrt(math.pi), "M_SQRT2": math.sqrt(2), "M_SQRT1_2": math.sqrt(0.5),
}  # fmt: skip
"""The constants of <math.h>."""

DEAR = frozenset(
    ("normcdf", "normcdff", "erfc", "erfcf", "erf", "erff", "tan", "tanf", "sinh", "sinhf", "atan", "atanf")
)
"""Those that take many times the instructions of an addition."""


@frozen
class Complement:
    """``total`` is f(d) + f(-d); ``type`` what the function gives, empty where that is its argument's type."""

    total: float
    type: str


def complements(root: Node) -> Mapping[str, Complement]:
    """The file's device functions of one float that have such a sum, and the dear ones of the language, by name."""
    found = {name: Complement(SUMS[name], "float" if name[:-1] in SUMS else "") for name in DEAR}
    for node in descendants(root, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        if declarator is None or declarator.type != "function_declarator" or template_names(node):
            continue
        name = text(declarator.child_by_field_name("declarator"))
        found.pop(name, None)
        total = _total(node, declarator)
        if total is not None:
            found[name] = Complement(total, text(node.child_by_field_name("type")))
    return found


def _total(node: Node, declarator: Node) -> float | None:
    listing = declarator.child_by_field_name("parameters")
    given = [] if listing is None else [one for one in listing.named_children if one.type == "parameter_declaration"]
    inside = statements(node.child_by_field_name("body"))
    qualifiers = {text(child) for child in node.children}
    if "__device__" not in qualifiers or len(given) != 1 or len(inside) != 1 or inside[0].type != "return_statement":
        return None
    name, written = given[0].child_by_field_name("declarator"), given[0].child_by_field_name("type")
    result = text(node.child_by_field_name("type"))
    if name is None or name.type != "identifier" or text(written) != result or result not in ("float", "double"):
        return None
    returned = bare(inside[0].named_children[0]) if inside[0].named_children else None
    return None if returned is None else _sum(returned, text(name))


def _sum(node: Node | None, variable: str) -> float | None:
    """f(d) + f(-d) of an expression of d; None where it is not the same for all d, or not seen to be."""
    node = bare(node)
    if node is None:
        return None
    if node.type == "identifier" and text(node) == variable:
        return 0.0
    if (constant := _number(node)) is not None:
        return 2 * constant
    if node.type == "unary_expression" and text(node.child_by_field_name("operator")) in "+-":
        inner = _sum(node.child_by_field_name("argument"), variable)
        return inner if inner is None or text(node.child_by_field_name("operator")) == "+" else -inner
    if node.type == "call_expression" and callee(node) in SUMS and len(arguments(node)) == 1:
        return SUMS[callee(node)] if _sum(arguments(node)[0], variable) == 0.0 else None
    if node.type != "binary_expression":
        return None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = text(node.child_by_field_name("operator"))
    one, two = _sum(left, variable), _sum(right, variable)
    if one is None or two is None:
        return None
    if operator in ("+", "-"):
        return one + two if operator == "+" else one - two
    first, second = _number(bare(left)), _number(bare(right))
    if operator == "*" and (first is not None or second is not None):
        return first * two if first is not None else one * second  # type: ignore[operator]
    return one / second if operator == "/" and second else None


def _number(node: Node | None) -> float | None:
    """What a constant is: a literal, one that <math.h> names, or a root of either."""
    node = bare(node)
    if node is None:
        return None
    if node.type == "call_expression" and callee(node) in ("sqrt", "sqrtf") and len(arguments(node)) == 1:
        inner = _number(arguments(node)[0])
        return None if inner is None or inner < 0 else math.sqrt(inner)
    if node.type == "identifier":
        return NAMED.get(text(node))
    if node.type != "number_literal":
        return None
    try:
        return float(text(node).rstrip("fF").replace("'", ""))
    except ValueError:
        return None
