"""How an array of a thread's own is used at one place."""

from tree_sitter import Node

from agent.analysis.symbols import Symbol


def subscripts(use: Node) -> list[Node]:
    """The subscript expressions around a name, innermost first."""
    found: list[Node] = []
    node = use
    while (
        node.parent is not None
        and node.parent.type == "subscript_expression"
        and node.parent.child_by_field_name("argument") == node
    ):
        node = node.parent
        found.append(node)
    return found


def is_element(use: Node, array: Symbol) -> bool:
    """Whether one element is read or written there as a whole: no row of the array, no address, no member."""
    chain = subscripts(use)
    parent = chain[-1].parent if chain else None
    hidden = parent is not None and parent.type in ("pointer_expression", "field_expression")
    return len(chain) == len(array.dims) and not hidden
