"""Expressions of a kernel spelled anew at another place: some names replaced, some locals written out."""

from collections.abc import Callable, Mapping

from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, callee, descendants, text

PRIMARY = ("identifier", "subscript_expression", "call_expression", "number_literal", "field_expression")


def spelled(node: Node, facts: Facts, names: Mapping[Symbol, str], written_out: Callable[[Symbol], bool]) -> str:
    """The source with symbols renamed and those locals written out that ``written_out`` says (they keep the value that
    they are declared with)."""
    if node.type == "identifier":
        symbol = facts.symbols.resolve(node)
        if symbol is not None and symbol in names:
            return names[symbol]
        inner = None if symbol is None or not symbol.fixed or symbol.is_memory else bare(symbol.init)
        if symbol is not None and inner is not None and written_out(symbol):
            found = spelled(inner, facts, names, written_out)
            return found if inner.type in PRIMARY else f"({found})"
        return text(node)
    if node.child_count == 0:
        return text(node)
    raw, start = (node.text or b""), node.start_byte
    pieces, at = [], 0
    for child in node.children:
        pieces.append(raw[at : child.start_byte - start].decode("utf-8", "replace"))
        pieces.append(spelled(child, facts, names, written_out))
        at = child.end_byte - start
    return "".join((*pieces, raw[at:].decode("utf-8", "replace")))


def is_pure(node: Node, facts: Facts) -> bool:
    """Whether an expression reads no memory and changes nothing, so that it may be evaluated elsewhere."""
    if facts.accesses_in(node) or any(True for _ in descendants(node, "assignment_expression", "update_expression")):
        return False
    known = PURE | facts.symbols.formulas.keys()
    return all(callee(call) in known for call in descendants(node, "call_expression"))
