"""Conditions as a list of things that must all hold, each with what it depends on."""

from collections.abc import Iterable

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Poly, number
from agent.analysis.facts import Facts
from agent.analysis.patterns.coordinates import Coordinate, Coordinates
from agent.analysis.patterns.product_nest import Reach, Test, reach
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, text
from agent.analysis.values import value
from agent.ideas.rewriting import source_text

FLIPPED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@frozen(eq=False)
class Conjunct:
    """``spelled`` must hold. ``bounded`` says that it is ``place < bound`` (or ``<=``, one less) for a coordinate."""

    spelled: str
    reach: Reach
    bounded: Symbol | None
    bound: Poly | None
    bound_text: str


def conjuncts(
    tests: Iterable[Test], places: Coordinates, variables: frozenset[Symbol], facts: Facts
) -> tuple[Conjunct, ...]:
    return tuple(
        _conjunct(node, taken, places, variables, facts)
        for test in tests
        for node, taken in _split(test.condition, test.taken)
    )


def _split(condition: Node, taken: bool) -> list[tuple[Node, bool]]:
    """What must hold: ``a && b`` taken, or ``a || b`` not taken, in parts."""
    inner = bare(condition)
    if inner is None:
        return []
    if inner.type == "binary_expression" and text(inner.child_by_field_name("operator")) == ("&&" if taken else "||"):
        sides = [inner.child_by_field_name("left"), inner.child_by_field_name("right")]
        return [part for side in sides if side is not None for part in _split(side, taken)]
    if inner.type == "unary_expression" and text(inner.child_by_field_name("operator")) == "!":
        argument = inner.child_by_field_name("argument")
        return [] if argument is None else _split(argument, not taken)
    return [(inner, taken)]


def _conjunct(
    node: Node, taken: bool, places: Coordinates, variables: frozenset[Symbol], facts: Facts
) -> Conjunct:  # fmt: skip
    seen = reach(node, places, variables, facts)
    operator = text(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""
    if operator not in FLIPPED:
        spelled = source_text(facts.document, node)
        plain = node.type in ("identifier", "call_expression", "subscript_expression")
        spelled = spelled if plain or taken else f"({spelled})"
        return Conjunct(spelled if taken else f"!{spelled}", seen, None, None, "")
    left, right = bare(node.child_by_field_name("left")), bare(node.child_by_field_name("right"))
    assert left is not None and right is not None
    operator = operator if taken else FLIPPED[operator]
    one, two = source_text(facts.document, left), source_text(facts.document, right)
    for place, relation, limit in ((left, operator, right), (right, MIRRORED.get(operator, ""), left)):
        symbol = facts.symbols.resolve(place) if place.type == "identifier" else None
        limited = reach(limit, places, variables, facts)
        free = not (limited.over or limited.turns or limited.loose)
        if symbol is not None and places.of(symbol) and relation in ("<", "<=") and free:
            bound = value(limit, facts.scope) + number(relation == "<=")
            spelled = text(limit) + (" + 1" if relation == "<=" else "")
            return Conjunct(f"{one} {operator} {two}", seen, symbol, bound, spelled)
    return Conjunct(f"{one} {operator} {two}", seen, None, None, "")


def digits_of(conjunct: Conjunct) -> frozenset[Coordinate]:
    return conjunct.reach.over
