"""Small helpers over the syntax tree, for this floor and those above it."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from attrs import frozen
from tree_sitter import Node, Query, QueryCursor

from agent.source.errors import SourceError
from agent.source.parsing import LANGUAGE
from agent.source.span import Span

if TYPE_CHECKING:
    from agent.source.document import Document
    from agent.source.kernel import Kernel

_MOST_REMEMBERED = 16_384
"""Bytes: what is below a longer node is not remembered."""
_FEW = 1500
DEEPEST = 150
"""Levels of a function that is still looked at: people write about thirty, generators of sums any number."""
LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier", "primitive_type"})
IDENTIFIERS = frozenset({"identifier", "type_identifier", "namespace_identifier", "field_identifier"})


def span_of(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


def text_of(text: bytes, node: Node) -> str:
    """What stands at ``node`` in the original text (the tree was made from the blanked one; offsets are the same)."""
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def node_text(document: "Document", node: Node) -> str:
    """What the user wrote at ``node``, blanked parts included."""
    return text_of(document.text, node)


def field(node: Node | None, *names: str) -> Node | None:
    """Follow fields: ``field(n, "declarator", "parameters")``. None as soon as one is missing."""
    for name in names:
        if node is None:
            return None
        node = node.child_by_field_name(name)
    return node


def is_deep(node: Node, most: int) -> bool:
    """Whether anything lies more than ``most`` levels below a node. To ask the way up from each of many nodes takes
    the cube of that. Few nodes are never deep enough to matter, and are not looked through."""
    if node.descendant_count < _FEW:
        return False
    cursor, level = node.walk(), 0
    while True:
        if cursor.goto_first_child():
            level += 1
            if level > most:
                return True
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            level -= 1


def walk(node: Node, named: bool = True) -> Iterator[Node]:
    """``node`` and all below it, parents first, in text order. Not recursive: hostile files nest deeply."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current.child_count:
            stack += (current.named_children if named else current.children)[::-1]


def descendants(node: Node, *types: str) -> Iterator[Node]:
    """The nodes below ``node`` (itself included) of any of these types, in text order. An analysis asks the nodes of a
    few functions again and again, so that what is below them is remembered a while."""
    if node.end_byte - node.start_byte > _MOST_REMEMBERED:
        return (below for below in walk(node) if below.type in types)
    order, place = _ordered(node)
    end = len(order.nodes) if place == 0 else bisect_left(order.starts, node.end_byte, place + 1)
    found: list[int] = []
    for kind in types:
        there = order.by_type.get(kind)
        if there is not None:
            found += there if place == 0 else there[bisect_left(there, place) : bisect_left(there, end)]
    return iter([order.nodes[at] for at in (found if len(types) == 1 else sorted(set(found)))])


@frozen(eq=False)
class _Order:
    """All named nodes at and below one, parents first, in text order: where each begins, at which place it stands (by
    its ``id``), and the places of each type."""

    nodes: list[Node]
    starts: list[int]
    places: dict[int, int]
    by_type: dict[str, list[int]]


_MOST_ORDERS = 32
_orders: tuple[_Order, ...] = ()
"""The newest first. Never changed in place: several threads may ask."""


def _ordered(node: Node) -> tuple[_Order, int]:
    """An order that ``node`` is part of, and its place there. Nodes of two trees may have the same ``id``."""
    global _orders
    same = node.id
    for order in _orders:
        place = order.places.get(same)
        if place is not None and order.nodes[place] == node:
            return order, place
    nodes = list(walk(node))
    by_type: dict[str, list[int]] = {}
    for place, below in enumerate(nodes):
        by_type.setdefault(below.type, []).append(place)
    # where something is missing, a node without width stands behind the end of what it belongs to
    kept = {} if node.has_error else {below.id: place for place, below in enumerate(nodes)}
    order = _Order(nodes, [below.start_byte for below in nodes], kept or {same: 0}, by_type)
    _orders = (order, *_orders[: _MOST_ORDERS - 1])
    return order, 0


def ancestors(node: Node) -> Iterator[Node]:
    """Parents of ``node``, innermost first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def enclosing(node: Node, *types: str) -> Node | None:
    """The innermost node around ``node`` of any of these types."""
    return next((above for above in ancestors(node) if above.type in types), None)


def identifiers(node: Node, text: bytes, name: str | None = None) -> Iterator[Node]:
    """Identifier nodes below ``node`` (types, namespaces and fields too); only those spelled ``name`` if given."""
    for found in walk(node):
        if found.type in IDENTIFIERS and (name is None or text_of(text, found) == name):
            yield found


def declared_name(declarator: Node | None) -> Node | None:
    """The identifier inside a declarator such as ``*const x[4]`` or ``(&f)(int)``; None for an abstract one."""
    # a name such as uint32_t is a primitive type to the grammar, also where a file defines it itself
    while declarator is not None and declarator.type not in _NAMES:
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type in (
            "parenthesized_declarator",
            "reference_declarator",
            "variadic_declarator",
            "pointer_declarator",
        ):
            inner = next(
                (c for c in declarator.named_children if "declarator" in c.type or c.type == "identifier"), None
            )
        declarator = inner
    return declarator


def captured(query: str, node: Node, within: Span | None = None) -> list[Node]:
    """What a query with one capture finds at or below ``node``, in text order, outer nodes first; with ``within``, only
    what lies in those bytes.

    The order in which the library gives nodes that begin at the same byte changes from call to call.
    """
    cursor = QueryCursor(_compiled(query))
    if within is not None:
        cursor.set_byte_range(within.start, within.end)
    found = [each for nodes in cursor.captures(node).values() for each in nodes]
    if within is not None:
        found = [each for each in found if within.start <= each.start_byte and each.end_byte <= within.end]
    return sorted(found, key=lambda each: (each.start_byte, -each.end_byte))


@cache
def _compiled(query: str) -> Query:
    """Takes 15 ms and more."""
    return Query(LANGUAGE, query)


def first_error(node: Node) -> Node | None:
    """The first ERROR or MISSING node at or below ``node``; descends only where there is one."""
    while node.has_error:
        if node.is_error or node.is_missing:
            return node
        broken = next((child for child in node.children if child.has_error or child.is_missing), None)
        if broken is None:
            return node
        node = broken
    return node if node.is_missing else None


def kernel_node(document: "Document", kernel: "Kernel") -> Node:
    """The ``function_definition`` of ``kernel``. Raises SourceError where the parser lost the definition."""
    for node in descendants(_smallest(document, kernel.body), "function_definition"):
        body = node.child_by_field_name("body")
        if body is not None and body.start_byte == kernel.body.start:
            return node
    raise SourceError(f"{kernel.qualified_name} at line {kernel.line} has no syntax tree: {kernel.damage}")


def _smallest(document: "Document", body: Span) -> Node:
    found = document.tree.root_node.descendant_for_byte_range(body.start, body.end)
    while found is not None and found.type != "function_definition":
        found = found.parent
    return found or document.tree.root_node


def is_pack(parameter: Node) -> bool:
    """Whether a parameter stands for any number of arguments: ``Args... args``."""
    return parameter.type == "variadic_parameter_declaration"
