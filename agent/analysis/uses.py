"""What a kernel does with a name: takes elements of it, or gives it away."""

import re
from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import callee


@frozen(eq=False)
class Uses:
    """``names`` are the identifiers that stand for it after its declaration; ``followed`` says that each of them only
    takes an element, whose address or a reference to which goes nowhere that is not known."""

    names: tuple[Node, ...]
    followed: bool


def uses(symbol: Symbol, facts: Facts) -> Uses:
    found = tuple(
        node
        for node in _named(symbol.name, facts)
        if node.start_byte != symbol.declarator.start_byte and _means(node, symbol, facts)
    )
    return Uses(
        found,
        facts.symbols.is_alone(symbol)
        and all(_takes_element(node, len(symbol.dims) or symbol.pointer) for node in found),
    )


def _named(name: str, facts: Facts) -> Iterator[Node]:
    """The nodes that are spelled so: looked for in the text, which is shorter than the tree."""
    whole, start, end = facts.document.blanked, facts.body.start_byte, facts.body.end_byte
    for match in re.compile(rb"\b%s\b" % re.escape(name.encode())).finditer(whole, start, end):
        node = facts.body.descendant_for_byte_range(*match.span())
        if node is not None and node.type in ("identifier", "type_identifier"):
            yield node


def _means(node: Node, symbol: Symbol, facts: Facts) -> bool:
    """``int a(s[0]);`` is read as a declaration, in which the name is a type."""
    return node.type == "type_identifier" or facts.symbols.resolve(node) is symbol


def _takes_element(name: Node, rank: int) -> bool:
    node, parent = name, name.parent
    while parent is not None and parent.type == "subscript_expression":
        if parent.child_by_field_name("argument") != node:
            return False
        node, parent, rank = parent, parent.parent, rank - 1
    if rank or parent is None:
        return False
    while parent.type in ("parenthesized_expression", "field_expression") and parent.parent is not None:
        node, parent = parent, parent.parent
    if parent.type == "pointer_expression":
        return _atomic(parent.parent)
    if parent.type == "call_expression":  # a method of the element
        return False
    return parent.type != "argument_list" or _takes_values(parent.parent)


def _atomic(listing: Node | None) -> bool:
    return listing is not None and listing.type == "argument_list" and callee(listing.parent).startswith("atomic")


def _takes_values(call: Node | None) -> bool:
    """Whether a call takes its arguments by value; a name that is not known may take references."""
    return callee(call) in PURE or callee(call).startswith(("__", "atomic"))
