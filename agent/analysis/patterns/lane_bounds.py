"""Which lanes of a warp reach a place: all, or those whose index lies below a bound."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Poly, number
from agent.analysis.coalescing import unrolled
from agent.analysis.facts import Facts
from agent.analysis.guards import Guard, exits_before, guards
from agent.analysis.syntax import bare, contains, descendants, text
from agent.analysis.values import dependence, value

LANE = "threadIdx.x"


@frozen(eq=False)
class LaneBound:
    """Lanes run while ``index < bound``; ``index`` rises by one from lane to lane, ``bound`` is the same for all."""

    index: Node
    bound: Node


def lane_bounds(place: Node, facts: Facts) -> tuple[LaneBound, ...] | str:
    """The bounds that a lane must keep to reach ``place``; or what else may keep lanes away. Needs a block whose first
    extent is a known multiple of 32, so that ``threadIdx.y`` and ``z`` are the same for a warp."""
    found: list[LaneBound] = []
    tests = tuple(guards(place, facts.body))
    for leave, ways in exits_before(place, facts.body):
        known = any(_is_way_out(leave, test) for test in tests)
        if not known and not all(_uniform(way.condition, facts) for way in ways):
            return f"some lanes may leave at line {facts.document.line(leave.start_byte)}"
    for guard in tests:
        for condition, holds in parts(guard.condition, guard.taken):
            if _uniform(condition, facts):
                continue
            bound = _bound(condition, holds, facts)
            if bound is None or guard.kind == "switch":
                return f"`{text(condition)}` may hold in any lanes of a warp"
            if not any(_same(bound, other, facts) for other in found):
                found.append(bound)
    return tuple(found)


def _is_way_out(leave: Node, guard: Guard) -> bool:
    return guard.kind == "exit" and contains(guard.node, leave)


def parts(condition: Node | None, holds: bool) -> list[tuple[Node, bool]]:
    """What must hold, or must not, one comparison each: ``a && b`` holds, or ``a || b`` does not."""
    condition = bare(condition)
    if condition is None:
        return []
    operator = text(condition.child_by_field_name("operator"))
    if condition.type == "binary_expression" and operator == ("&&" if holds else "||"):
        sides = (condition.child_by_field_name("left"), condition.child_by_field_name("right"))
        return [part for side in sides for part in parts(side, holds)]
    if condition.type == "unary_expression" and operator == "!":
        return parts(condition.child_by_field_name("argument"), not holds)
    return [(condition, holds)]


def _uniform(condition: Node, facts: Facts) -> bool:
    """Whether all lanes of a warp agree: it may hang on threadIdx.y and z."""
    return not dependence(condition, facts.scope) & {LANE, "unknown"}


def _bound(condition: Node, holds: bool, facts: Facts) -> LaneBound | None:
    left, right = bare(condition.child_by_field_name("left")), bare(condition.child_by_field_name("right"))
    operator = text(condition.child_by_field_name("operator"))
    if (
        left is None
        or right is None
        or (operator, holds) not in (("<", True), (">", True), (">=", False), ("<=", False))
    ):
        return None
    index, bound = (left, right) if operator in ("<", ">=") else (right, left)
    rising = lane_stride(value(index, facts.scope), condition, facts) == number(1)
    steady = all(_steady(name, condition, facts) for side in (left, right) for name in descendants(side, "identifier"))
    return LaneBound(index, bound) if rising and steady and _uniform(bound, facts) else None


def _steady(name: Node, place: Node, facts: Facts) -> bool:
    """Whether a name means the same until the turn of the loops around it ends."""
    symbol = facts.symbols.resolve(name)
    variables = [loop.variable for loop in facts.loops if contains(loop.node, place)]
    return symbol is None or symbol.fixed or symbol in variables


def lane_stride(poly: Poly, place: Node, facts: Facts) -> Poly | None:
    """By how much a value rises from lane to lane, loops around the place being in the same turn."""
    loops = [loop for loop in facts.loops if contains(loop.node, place)]
    return unrolled(poly, loops).coefficient(LANE)


def _same(one: LaneBound, other: LaneBound, facts: Facts) -> bool:
    return all(
        value(a, facts.scope) == value(b, facts.scope) for a, b in ((one.index, other.index), (one.bound, other.bound))
    )
