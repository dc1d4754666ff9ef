"""Zeros where a window reaches over the array's edge, so that its loops need not ask whether they do."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.syntax import ancestors, bare, contains, expression_of, statements, text
from agent.ideas.product.texts import comment_above
from agent.ideas.view import View
from agent.ideas.window.site import Site
from agent.workload.dtypes import from_c_type

NUMBERS = frozenset(("f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"))
ZEROS = frozenset({"0", "0.0", "0.", "0.0f", "0.f", "0f"})


@frozen(eq=False)
class Asked:
    """``node`` asks whether the element is inside the array, and ``kept`` is what is left of it without that: what a
    conditional statement does, or the element of a conditional expression."""

    node: Node
    kept: Node


def asked(site: Site, view: View) -> tuple[Asked, ...]:
    """Where each read asks for the edge; none where some read does not, or where a zero would not do as well."""
    if not site.window.tests or from_c_type(site.element) not in NUMBERS:
        return ()
    found = [_asked(read, site, view) for read in site.window.reads]
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) else ()


def _asked(read: Access, site: Site, view: View) -> Asked | None:
    tests = [test for test, _ in site.window.tests]
    for around in ancestors(read.node):
        if around == site.window.nest:
            return None
        if around.type == "conditional_expression":
            return _of_expression(around, read, tests)
        if around.type == "if_statement":
            return _of_statement(around, read, tests, view)
    return None


def _of_expression(node: Node, read: Access, tests: Sequence[Node]) -> Asked | None:
    sides = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
    condition = node.child_by_field_name("condition")
    own = [side for side in sides if side is not None and bare(side) == read.node]
    others = [side for side in sides if side is not None and text(bare(side)) in ZEROS]
    alone = condition is not None and all(contains(condition, test) for test in tests)
    return Asked(node, own[0]) if alone and len(own) == 1 and len(others) == 1 else None


def _of_statement(node: Node, read: Access, tests: Sequence[Node], view: View) -> Asked | None:
    condition, inside = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is None or inside is None or node.child_by_field_name("alternative") is not None:
        return None
    body = statements(inside) if inside.type == "compound_statement" else [inside]
    change = expression_of(body[0]) if len(body) == 1 else None
    if change is None or change.type != "assignment_expression":
        return None
    if not all(contains(condition, test) for test in tests):
        return None
    right, operator = change.child_by_field_name("right"), text(change.child_by_field_name("operator"))
    added = operator in ("+=", "-=") and _factor(right, read.node)
    instead = operator == "=" and bare(right) == read.node and _zero_before(node, change, view)
    return Asked(node, body[0]) if added or instead else None


def _factor(node: Node | None, read: Node) -> bool:
    """Whether an expression is zero where the element is: it is the element, or a product with it."""
    node = bare(node)
    if node is None or node == read:
        return node is not None
    if node.type == "cast_expression":
        return _factor(node.child_by_field_name("value"), read)
    if node.type != "binary_expression" or text(node.child_by_field_name("operator")) != "*":
        return False
    sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    return any(side is not None and contains(side, read) and _factor(side, read) for side in sides)


def _zero_before(node: Node, change: Node, view: View) -> bool:
    """Whether the statement before sets the same variable to zero."""
    target, before = bare(change.child_by_field_name("left")), comment_above(node).prev_named_sibling
    symbol = None if target is None or target.type != "identifier" else view.facts.symbols.resolve(target)
    if symbol is None or before is None:
        return False
    if before.type == "declaration":
        return contains(before, symbol.declarator) and symbol.init is not None and text(symbol.init) in ZEROS
    earlier = expression_of(before)
    if (
        earlier is None
        or earlier.type != "assignment_expression"
        or text(earlier.child_by_field_name("operator")) != "="
    ):
        return False
    left = bare(earlier.child_by_field_name("left"))
    same = left is not None and left.type == "identifier" and view.facts.symbols.resolve(left) is symbol
    return same and text(bare(earlier.child_by_field_name("right"))) in ZEROS
