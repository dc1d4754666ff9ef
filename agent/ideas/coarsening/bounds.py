"""The tests in front of a thread's work, taken apart: what they ask of its coordinate along one axis, and the rest."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.straight import Piece
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, text
from agent.analysis.values import value
from agent.ideas.elements.front import depends
from agent.ideas.elements.pieces import memory_free
from agent.ideas.elements.places import comparisons
from agent.ideas.view import View

LOWER = {True: {">": 1, ">=": 0}, False: {"<=": 1, "<": 0}}
"""By whether the work goes on where a test holds: ``y > c`` asks for c + 1 at least."""


@frozen(eq=False)
class Bounds:
    """``upper`` are what the coordinate must stay below, ``lower`` the least that it may be (None: 0). ``kept`` gives
    for each test the parts that are asked once, in order; a part that compares the coordinate is one of ``upper``."""

    upper: tuple[Node, ...]
    lower: int | None
    kept: tuple[tuple[Piece, tuple[Node, ...]], ...]


def bounds(view: View, parts: Sequence[Piece], variable: Symbol) -> Bounds | str:
    upper: list[Node] = []
    lower: int | None = None
    kept: list[tuple[Piece, tuple[Node, ...]]] = []
    busy = False
    for piece in parts:
        if piece.kind == "statement":
            busy = busy or bool(view.facts.accesses_in(piece.node))
        if piece.kind != "test" or busy or not memory_free(view, piece.node):
            continue
        here: list[Node] = []
        for left, right in comparisons(piece):
            whole = left if right is None else left.parent
            assert whole is not None
            if _is(view, left, variable) and right is not None and variable not in depends(view, right):
                upper.append(right)
                here.append(whole)
            elif variable not in depends(view, whole):
                here.append(whole)
            elif (least := _least(view, whole, variable, piece.holds)) is not None and lower is None:
                lower = least
            else:
                return f"it asks more of {variable.name} than bounds"
        kept.append((piece, tuple(here)))
    return Bounds(tuple(upper), lower, tuple(kept))


def _is(view: View, node: Node | None, variable: Symbol) -> bool:
    node = bare(node)
    return node is not None and node.type == "identifier" and view.facts.symbols.resolve(node) is variable


def _least(view: View, node: Node, variable: Symbol, holds: bool) -> int | None:
    """The least value of the coordinate that a comparison lets through, if it is one with a number."""
    if node.type != "binary_expression" or not _is(view, node.child_by_field_name("left"), variable):
        return None
    number = value(node.child_by_field_name("right"), view.facts.scope).constant
    operator = text(node.child_by_field_name("operator"))
    if number is None or number < 0:
        return None
    if not holds and operator == "==" and number == 0:  # a coordinate of the grid is never negative
        return 1
    return number + LOWER[holds][operator] if operator in LOWER[holds] else None
