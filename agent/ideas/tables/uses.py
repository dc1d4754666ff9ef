"""How an array of a thread's own is used at one place."""

from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import callee, descendants


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
    """Whether one element is read or written there as a whole: no row of the array, no address, no member, and nothing
    that a reference is bound to."""
    chain = subscripts(use)
    if len(chain) != len(array.dims) or not chain:
        return False
    node, chosen = chain[-1], False
    while node.parent is not None and node.parent.type in ("parenthesized_expression", "conditional_expression"):
        node, chosen = node.parent, True
    parent = node.parent
    if parent is None or parent.type in ("pointer_expression", "field_expression"):
        return False
    if parent.type == "argument_list" and parent.parent is not None and parent.parent.type == "call_expression":
        return callee(parent.parent) in PURE  # others may take it by reference
    written = parent.type == "update_expression" or parent.child_by_field_name("left") == node
    return not (chosen and written) and not _bound(parent)


def _bound(parent: Node) -> bool:
    """Whether what stands there is given to a reference: ``int& c = count[k]``, in a list or a loop's head too."""
    declared = parent.parent if parent.type in ("initializer_list", "argument_list") else parent
    if declared is None or declared.type not in ("init_declarator", "for_range_loop"):
        return False
    return any(True for _ in descendants(declared, "reference_declarator"))
