"""What of a body stays in front of the work on single elements, when a thread gets several of them."""

from collections.abc import Sequence

from tree_sitter import Node

from agent.analysis.patterns.straight import Piece
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains
from agent.ideas.elements.pieces import memory_free, used
from agent.ideas.elements.places import comparisons
from agent.ideas.view import View


def split(view: View, parts: Sequence[Piece], variable: Symbol) -> tuple[list[Piece], list[Piece]]:
    """(what has one answer for all elements of a thread, what is done for each): the first holds the declaration of
    the element's number, the tests of indices up to its bound, and names that do not depend on it."""
    head: list[Piece] = []
    work: list[Piece] = []
    waiting: list[Piece] = []  # comments go where the statement below them goes
    for piece in parts:
        if piece.kind == "comment":
            waiting.append(piece)
            continue
        (head if _in_front(view, piece, variable, work) else work).extend((*waiting, piece))
        waiting.clear()
    return head, [*work, *waiting]


def _in_front(view: View, piece: Piece, variable: Symbol, work: Sequence[Piece]) -> bool:
    """Whether a piece stays before the work on single elements: a test of indices, or a name that has one value for
    all elements of a thread."""
    if contains(piece.node, variable.declarator):
        return True
    if piece.kind == "test":
        quiet = not any(view.facts.accesses_in(one.node) for one in work)
        own = not any(
            _declared(view, one.node) and used(view, piece.node) & set(_declared(view, one.node)) for one in work
        )
        return quiet and own and memory_free(view, piece.node) and _asks_alike(view, piece, variable)
    return (
        piece.node.type == "declaration"
        and memory_free(view, piece.node)
        and all(symbol.fixed and not symbol.dims for symbol in _declared(view, piece.node))
        and variable not in depends(view, piece.node)
    )


def _declared(view: View, node: Node) -> list[Symbol]:
    return [symbol for symbol in view.facts.symbols.all() if contains(node, symbol.declarator)]


def depends(view: View, node: Node) -> set[Symbol]:
    """The names in a node, and those that they were declared from."""
    found: set[Symbol] = set()
    waiting = list(used(view, node))
    while waiting:
        symbol = waiting.pop()
        if symbol not in found:
            found.add(symbol)
            waiting += [] if symbol.init is None else list(used(view, symbol.init))
            for write in symbol.writes:
                waiting += list(used(view, write))
    return found


def _asks_alike(view: View, piece: Piece, variable: Symbol) -> bool:
    """Whether a test asks the same of all elements of a thread, up to the bound of the variable itself."""
    for left, right in comparisons(piece):
        own = right is not None and left.type == "identifier" and view.facts.symbols.resolve(left) is variable
        asked = right if own else left
        if asked is not None and variable in depends(view, asked):
            return False
        if right is not None and not own and variable in depends(view, right):
            return False
    return True
