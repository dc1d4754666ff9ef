"""A kernel that works on each element of some arrays by itself: ``i = global index; if (i < n) y[i] = f(y[i])``."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.patterns.places import Place, places
from agent.analysis.syntax import callee, contains, descendants, enclosing, statements, text
from agent.analysis.values import difference, value


@frozen(eq=False)
class Elementwise:
    """``place`` is the element's index, ``count`` how many elements there are (a polynomial over parameters; None where
    no condition says), ``body`` what is done to one. All ``accesses`` to global memory are at the index."""

    place: Place
    count: Poly | None
    body: tuple[Node, ...]
    accesses: tuple[Access, ...]


def elementwise(facts: Facts) -> Elementwise | str:
    """The kernel as such, or why it is not."""
    own = places(facts)
    if len(own) != 1 or own[0].thread != "x" or own[0].block != "x":
        return "its threads are not numbered along one axis"
    place = own[0]
    reason = _alone(place, facts)
    if reason is not None:
        return reason
    index = value(place.symbol.init, facts.scope)
    found = tuple(access for access in facts.accesses if access.space not in ("local", "constant"))
    if any(access.space != "global" or access.index != index or access.atomic for access in found):
        return "it touches other elements than each thread's own"
    guarded = _guarded(place, index, facts)
    return guarded if isinstance(guarded, str) else Elementwise(place, *guarded, found)


def _alone(place: Place, facts: Facts) -> str | None:
    declaration = enclosing(place.symbol.declarator, "declaration")
    if declaration is None or len(declaration.children_by_field_name("declarator")) != 1:
        return "its index is declared together with something else"
    for node in descendants(facts.body, "field_expression"):
        known = text(node.child_by_field_name("argument")) in ("threadIdx", "blockIdx", "blockDim", "gridDim")
        if known and not contains(declaration, node):
            return f"`{text(node)}` is used beside the element's index"
    if any(callee(call) not in PURE and callee(call) not in facts.symbols.formulas for call in facts.calls):
        return "it calls functions that may do more than compute"
    return None


def _guarded(place: Place, index: Poly, facts: Facts) -> tuple[Poly | None, tuple[Node, ...]] | str:
    """(count, body): what stands behind ``if (i >= n) return;`` or in ``if (i < n) { ... }``."""
    declaration = enclosing(place.symbol.declarator, "declaration")
    rest = [statement for statement in statements(facts.body) if statement != declaration]
    if rest and rest[0].type == "if_statement" and rest[0].child_by_field_name("alternative") is None:
        inside = statements(rest[0].child_by_field_name("consequence"))
        leaves = len(inside) == 1 and inside[0].type == "return_statement"
        count = _count(rest[0], not leaves, index, facts)
        if count is not None and (leaves or len(rest) == 1):
            return _whole(count, rest[1:] if leaves else inside)
    return _whole(None, rest)


def _whole(count: Poly | None, body: list[Node]) -> tuple[Poly | None, tuple[Node, ...]] | str:
    for statement in body:
        if any(True for _ in descendants(statement, "return_statement")):
            return "some of its threads leave early"
    return (count, tuple(body)) if body else "it does nothing"


def _count(guard: Node, holds: bool, index: Poly, facts: Facts) -> Poly | None:
    """``n`` of ``i < n``."""
    found = parts(guard.child_by_field_name("condition"), holds)
    if len(found) != 1:
        return None
    test, so = found[0]
    operator = text(test.child_by_field_name("operator"))
    if (operator, so) not in (("<", True), (">=", False), (">", True), ("<=", False)):
        return None
    rest = difference(test, facts.scope)
    count = index - rest if operator in ("<", ">=") else index + rest
    return None if count.depends else count
