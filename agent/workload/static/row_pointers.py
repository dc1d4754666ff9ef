"""``float (*rows)[4];`` in a function's body, which the grammar reads as an element of what a call returns."""

from collections.abc import Callable

from attrs import frozen
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.source.nodes import text_of


@frozen
class RowPointer:
    """The declaration of a pointer to arrays: its name, what the arrays hold, their extents, and its first value."""

    name: Node
    type: Node
    extents: tuple[Node, ...]
    value: Node | None


def row_pointer(node: Node, text: bytes, function: Callable[[str], bool]) -> RowPointer | None:
    """What an expression declares; None where it is one. ``function`` says which names are functions."""
    if node.type not in ("assignment_expression", "subscript_expression"):
        return None
    left = child(node, "left") if node.type == "assignment_expression" else node
    extents: list[Node] = []
    while left is not None and left.type == "subscript_expression":
        listed = child(left, "indices") or child(left, "index")
        if listed is None or len(listed.named_children) != 1:
            return None
        extents.insert(0, listed.named_children[0])
        left = child(left, "argument")
    type_node, listed = child(left, "function"), child(left, "arguments")
    if left is None or left.type != "call_expression" or type_node is None or listed is None or not extents:
        return None
    inner = listed.named_children[0] if len(listed.named_children) == 1 else None
    name = child(inner, "argument")
    if inner is None or name is None or inner.type != "pointer_expression" or name.type != "identifier":
        return None
    if not text_of(text, inner).startswith("*") or function(text_of(text, type_node).split("::")[-1]):
        return None
    return RowPointer(name, type_node, tuple(extents), child(node, "right"))
