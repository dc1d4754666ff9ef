"""Numbers that a program reads from a stream: ``in >> n``."""

from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Unknown


def reads(shift: Node, facts: Facts) -> bool:
    """Whether ``>>`` takes from a stream rather than shifting a number."""
    first = shift
    while first.type == "binary_expression" and (left := child(first, "left")) is not None:
        first = left
    name = facts.node_text(first)
    cell = facts.find(name)
    if cell is not None and facts.dtype(facts.types.get(cell, "")) is not None:
        return False
    if first.type in ("identifier", "qualified_identifier") and not facts.known(name):
        return True  # no number that this file knows: std::cin, or a stream whose declaration reads like a function's
    if cell is not None and "stream" in facts.types.get(cell, ""):
        return True
    above = shift.parent
    while above is not None and above.type == "binary_expression":
        above = above.parent
    return above is not None and above.type == "expression_statement"  # a number that is shifted for nothing


def take(target: Node, facts: Facts, state: State) -> None:
    """The variable or element on the right of ``>>`` is not known from here on."""
    from agent.workload.static import storing

    storing.store(target, Unknown("it is read from a stream", facts.line(target)), facts, state, target)
