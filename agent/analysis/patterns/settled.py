"""The value that a variable was given last, where every way to a use passes that assignment."""

from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, contains, descendants, statement_of, text


def settled(use: Node, symbol: Symbol, facts: Facts) -> Node | None:
    """The assignment ``name = value`` that has the last word on what ``use`` reads; None where none has on every way
    (the declaration's own value does not count)."""
    before = [write for write in symbol.writes if write.end_byte <= statement_of(use).start_byte]
    if symbol.is_memory or symbol.escapes or not before:
        return None
    last = max(before, key=lambda write: write.start_byte)
    statement = statement_of(last)
    if last.type != "assignment_expression" or text(last.child_by_field_name("operator")) != "=":
        return None
    if last.parent != statement or statement.type != "expression_statement" or statement.parent is None:
        return None
    if statement.parent.type != "compound_statement" or not any(one == statement.parent for one in ancestors(use)):
        return None
    for loop in (above for above in ancestors(use) if above.type in LOOPS):
        if not contains(loop, last) and any(contains(loop, write) for write in symbol.writes):
            return None
    if any(True for _ in descendants(facts.body, "goto_statement")):
        return None
    later = [write for write in symbol.writes if contains(statement_of(use), write)]
    return None if later else last
