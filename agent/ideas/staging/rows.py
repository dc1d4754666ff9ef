"""Kernels whose block walks over a square tile itself: ``for (i = 0; i < TILE; i += ROWS)``, a thread's place along y
being ``threadIdx.y + i``."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.loops import Loop
from agent.analysis.patterns.straight import Piece, flat
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, descendants, text
from agent.analysis.values import value
from agent.ideas.elements.pieces import Replaced, at, rewritten
from agent.ideas.view import View

CHAINS = ("parenthesized_expression", "cast_expression")


@frozen(eq=False)
class Rows:
    """``loop`` is the kernel's last statement, ``head`` what stands before it, ``body`` what it does for each row."""

    loop: Loop
    head: tuple[Piece, ...]
    body: tuple[Piece, ...]


def rows(view: View, parts: Sequence[Piece], block: tuple[int, int]) -> Rows | None:
    """The walk, where its rows and the block's width make a square."""
    last = next((piece.node for piece in reversed(parts) if piece.kind == "statement"), None)
    loop = None if last is None or last != parts[-1].node else view.facts.loop(last)
    if loop is None or last is None or last.type != "for_statement" or loop.leaves_early:
        return None
    if not contains(loop.node, loop.variable.declarator) or loop.relation != "<" or loop.step_kind != "+":
        return None
    wide, high = block
    if (loop.start.constant, loop.step.constant, loop.bound.constant) != (0, high, wide) or wide % high:
        return None
    body = flat(loop.body)
    if body is None or any(True for _ in descendants(loop.body, "continue_statement", "return_statement")):
        return None
    return Rows(loop, tuple(piece for piece in parts if piece.node != last), tuple(body))


def unsteady(view: View, found: Rows, moved: Sequence[Access]) -> str | None:
    """What hangs on ``threadIdx.y`` or the row by other ways than their sum; None where nothing of what is asked twice
    does."""
    asked: list[tuple[Poly | None, str]] = [(one.index, text(one.node)) for one in moved]
    for piece in (*found.head, *found.body):
        if piece.kind == "test":
            asked += [(_apart(view, node), text(node)) for node in _comparisons(piece.node)]
    for poly, spelled in asked:
        own = None if poly is None else poly.coefficient("threadIdx.y")
        row = None if poly is None else poly.coefficient(found.loop.atom.name)
        if own is None or row is None or own != row:
            return f"`{spelled}` hangs on threadIdx.y and {found.loop.variable.name} by more than their sum"
    return None


def _comparisons(node: Node) -> list[Node]:
    return [
        one
        for one in descendants(node, "binary_expression")
        if text(one.child_by_field_name("operator")) not in ("&&", "||") and _outermost(one, node)
    ]


def _outermost(node: Node, test: Node) -> bool:
    """Whether only ``&&``, ``||``, ``!`` and parentheses stand above it in the test."""
    above = node.parent
    while above is not None and above != test.parent:
        operator = text(above.child_by_field_name("operator"))
        if above.type == "binary_expression" and operator not in ("&&", "||"):
            return False
        above = above.parent
    return True


def _apart(view: View, comparison: Node) -> Poly:
    left, right = comparison.child_by_field_name("left"), comparison.child_by_field_name("right")
    return value(left, view.facts.scope) - value(right, view.facts.scope)


def at_row_zero(view: View, nodes: Sequence[Node], variable: Symbol, replaced: Replaced) -> dict[tuple[int, int], str]:
    """``replaced``, and the loop's variable taken for 0 in these nodes: sums lose the term, products are 0."""
    found = dict(replaced)
    for node in nodes:
        for use in descendants(node, "identifier"):
            if view.facts.symbols.resolve(use) is not variable:
                continue
            top = use
            while (above := top.parent) is not None and contains(node, above) and _arithmetic(above):
                top = above
            written = _zeroed(view, top, variable, replaced) or "0"
            found = {
                key: new for key, new in found.items() if not (top.start_byte <= key[0] and key[1] <= top.end_byte)
            }
            found[at(top)] = written
    return found


def _arithmetic(node: Node) -> bool:
    operator = text(node.child_by_field_name("operator"))
    return node.type in CHAINS or (node.type == "binary_expression" and operator in ("+", "-", "*"))


def _zeroed(view: View, node: Node, variable: Symbol, replaced: Replaced) -> str | None:
    """The text of an expression in which the variable is 0; None where all of it is."""
    if node.type == "identifier" and view.facts.symbols.resolve(node) is variable:
        return None
    if at(node) in replaced or not _arithmetic(node):
        return rewritten(view, node, replaced)
    if node.type == "parenthesized_expression":
        inner = bare(node)
        kept = None if inner is None else _zeroed(view, inner, variable, replaced)
        return None if kept is None else kept if kept.isidentifier() else f"({kept})"
    if node.type == "cast_expression":
        inner = node.child_by_field_name("value")
        kept = None if inner is None else _zeroed(view, inner, variable, replaced)
        return None if kept is None else f"({text(node.child_by_field_name('type'))}){kept}"
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = text(node.child_by_field_name("operator"))
    assert left is not None and right is not None
    one, two = _zeroed(view, left, variable, replaced), _zeroed(view, right, variable, replaced)
    if operator == "*":
        return None if one is None or two is None else f"{one} * {two}"
    if two is None:
        return one
    if one is None:
        return two if operator == "+" else f"-{two}"
    return f"{one} {operator} {two}"
