"""Whether two documents are the same in everything that is made from their text."""

from agent.source.document import Document
from agent.source.nodes import walk

Placed = tuple[str, int, int, bool, int, int]


def shape(document: Document) -> list[Placed]:
    """Every node in text order: its type, its bytes, whether it is missing, and the row and column of its start."""
    nodes = walk(document.tree.root_node, named=False)
    return [(n.type, n.start_byte, n.end_byte, n.is_missing, *n.start_point) for n in nodes]


def differences(found: Document, scratch: Document) -> str:
    """The names of what differs, the trees with every node, place and field; empty where nothing does."""
    pairs = {
        "text": (found.text, scratch.text),
        "blanked": (found.blanked, scratch.blanked),
        "tree": (str(found.tree.root_node), str(scratch.tree.root_node)),
        "nodes": (shape(found), shape(scratch)),
        "blanks": (found.blanks, scratch.blanks),
        "macros": (found.macros, scratch.macros),
        "kernels": (found.kernels, scratch.kernels),
        "launches": (found.launches, scratch.launches),
    }
    if found.state is not None and scratch.state is not None:
        pairs["code"] = found.state.code, scratch.state.code
        pairs["bodies"] = found.state.bodies, scratch.state.bodies
    return ", ".join(name for name, (one, other) in pairs.items() if one != other)
