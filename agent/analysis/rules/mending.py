"""Changes that mend what a rule finds: mechanical, small, and right wherever they are offered.

A rule that cannot tell whether a change would be right offers none.
"""

from collections.abc import Sequence

from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.guards import exits_before, guards
from agent.analysis.rules.finding import Mend, Place, at
from agent.analysis.rules.races import Race
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors, callee, contains, descendants, text
from agent.analysis.values import is_uniform, value

SIMPLE = frozenset(("identifier", "number_literal", "subscript_expression", "field_expression", "call_expression",
                    "parenthesized_expression"))  # fmt: skip
BARRIER = "__syncthreads();"
STATIC_BYTES = 48 * 1024


def replaced(title: str, *changes: tuple[Node, str], sure: bool = True) -> Mend:
    """Other text in the place of nodes."""
    return Mend(title, tuple((at(node), written) for node, written in changes), sure)


def before(node: Node) -> Place:
    return Place(node.start_byte, node.start_byte)


def after(node: Node) -> Place:
    return Place(node.end_byte, node.end_byte)


def operand(node: Node) -> str:
    """A node's text, fit to stand beside any operator."""
    return text(node) if node.type in SIMPLE else f"({text(node)})"


def reached_by_all(place: Node, view: View) -> bool:
    """Whether every thread of a block comes to a place together, as far as it can be seen: nothing before or around it
    asks for anything that may differ between threads."""
    function = view.facts.node
    if any(not is_uniform(guard.condition, view.facts.scope) for guard in guards(place, function)):
        return False
    leaving = (guard for _, conditions in exits_before(place, function) for guard in conditions)
    jumps = ("goto_statement", "continue_statement", "break_statement")
    around = [parent for parent in ancestors(place) if contains(function, parent)]
    jumping = (jump for jump in descendants(function, *jumps) if any(contains(parent, jump) for parent in around))
    conditional = (guard for jump in jumping for guard in guards(jump, function))
    return all(is_uniform(guard.condition, view.facts.scope) for guard in (*leaving, *conditional))


def with_barrier(race: Race, view: View) -> Mend | None:
    """A barrier between the two accesses of a race, where all threads come to it."""
    place = _end_of_turn(race, view) if race.carried is not None else _between(race, view)
    return Mend(f"Put {BARRIER[:-1]} between the two accesses", (place,)) if place is not None else None


def _between(race: Race, view: View) -> tuple[Place, str] | None:
    """Before the statement of the second access, in the block of statements that holds both."""
    child = race.second.node
    for parent in ancestors(race.second.node):
        if parent.type == "compound_statement" and contains(parent, race.first.node):
            break
        child = parent
    else:
        return None
    if contains(child, race.first.node) or not reached_by_all(child, view):
        return None
    return before(child), f"{BARRIER}{_next_line(child, view.facts)}"


def _end_of_turn(race: Race, view: View) -> tuple[Place, str] | None:
    """As the last statement of the loop that carries the race."""
    assert race.carried is not None
    body = race.carried.body
    inside = body.named_children
    if body.type != "compound_statement" or not inside or not reached_by_all(inside[-1], view):
        return None
    if any(descendants(body, "continue_statement")):
        return None
    lead = _next_line(inside[0], view.facts)
    if lead == " " and inside[-1].type == "comment":
        return None
    return after(inside[-1]), f"{lead}{BARRIER}"


def _next_line(statement: Node, facts: Facts) -> str:
    """What leads to a new line with the indentation of a statement that begins one, else a space."""
    whole = facts.document.text
    line = whole[whole.rfind(b"\n", 0, statement.start_byte) + 1 : statement.start_byte]
    return f"\n{line.decode()}" if not line.strip() and b"\n" in whole[: statement.start_byte] else " "


def padded(name: str, uses: Sequence[Node], dims: tuple[Node | None, ...], width: int, view: View) -> Mend | None:
    """One more element in the inner extent of a shared array, where all that is done with it is to take elements.

    ``uses`` are the identifiers that name it, ``width`` is the bytes of an element."""
    inner = dims[-1]
    if inner is None or any(_rank(use) != len(dims) for use in uses):
        return None
    extents = [value(dim, view.facts.scope).constant for dim in dims]
    if all(extent is not None for extent in extents):
        *outer, last = [extent for extent in extents if extent is not None]
        size = width * (last + 1)
        for extent in outer:
            size *= extent
        if size > STATIC_BYTES:
            return None
    return replaced(f"Pad the rows of {name} by one element", (inner, f"{operand(inner)} + 1"))


def _rank(use: Node) -> int:
    """How many subscripts stand on a name; 0 where the element's address may be used to reach others."""
    count, node = 0, use
    while node.parent is not None and node.parent.type == "subscript_expression":
        if node.parent.child_by_field_name("argument") != node:
            break
        node, count = node.parent, count + 1
    parent = node.parent
    if parent is not None and parent.type == "pointer_expression":
        call = parent.parent.parent if parent.parent is not None else None
        if not callee(call).startswith("atomic"):
            return 0
    return count
