"""What device code says of itself that how a buffer is used hangs on: which members are arrays, which functions take
what they are given by reference, which methods may change their object."""

import functools
from collections.abc import Iterator, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.nodes import declared_name, descendants, text_of
from agent.source.nodes import field as child

_LANES = ("x", "y", "z", "w")
"""Members of CUDA's vectors, which no text declares."""


@frozen
class Shapes:
    """``arrays``: names of members that are arrays in every struct. ``references``: by the bare name of a function the
    places of parameters that are references to what may be changed. ``changing``: methods that are not ``const``."""

    arrays: frozenset[str]
    references: Mapping[str, frozenset[int]]
    changing: frozenset[str]


@functools.lru_cache(maxsize=4)
def shapes(document: Document) -> Shapes:
    """Over the whole text, by bare names."""
    text, root = document.text, document.tree.root_node
    members: dict[bool, set[str]] = {True: set(), False: set(_LANES)}
    for node in descendants(root, "field_declaration"):
        for one in node.children_by_field_name("declarator"):
            member = declared_name(one)
            if member is not None:
                members[one.type == "array_declarator"].add(text_of(text, member))
    references: dict[str, frozenset[int]] = {}
    changing: set[str] = set()
    for node in descendants(root, "function_definition"):
        declarator = next(_function(child(node, "declarator")), None)
        name = declared_name(child(declarator, "declarator")) if declarator is not None else None
        if declarator is None or name is None:
            continue
        bare = text_of(text, name).split("::")[-1]
        listed = child(declarator, "parameters")
        given = [one for one in (listed.named_children if listed is not None else ()) if "parameter" in one.type]
        places = frozenset(place for place, one in enumerate(given) if refers(one, text))
        references[bare] = references.get(bare, frozenset()) | places
        if not any(part.type == "type_qualifier" and text_of(text, part) == "const" for part in declarator.children):
            changing.add(bare)
    return Shapes(frozenset(members[True] - members[False]), references, frozenset(changing))


def refers(declaration: Node, text: bytes) -> bool:
    """Whether a declaration or parameter is a reference through which its object may be changed."""
    declarator = child(declaration, "declarator")
    while declarator is not None and declarator.type in ("array_declarator", "parenthesized_declarator"):
        declarator = child(declarator, "declarator") or next(iter(declarator.named_children), None)
    if declarator is None or declarator.type != "reference_declarator":
        return False
    return "const" not in text_of(text, declaration)[: declarator.start_byte - declaration.start_byte].split()


def _function(declarator: Node | None) -> Iterator[Node]:
    while declarator is not None:
        if declarator.type == "function_declarator":
            yield declarator
            return
        declarator = child(declarator, "declarator") or next(
            (part for part in declarator.named_children if "declarator" in part.type), None
        )
