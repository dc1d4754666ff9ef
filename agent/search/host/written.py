"""Whether a function writes through a pointer that it is given, and never reads."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.syntax import arguments, bare, callee
from agent.source.document import Document
from agent.source.nodes import declared_name, descendants, node_text

_DEEPEST = 4
"""Calls that are followed."""


def only_written(document: Document, function: str, place: int, depth: int = 0) -> bool:
    """Whether every use of the ``place``-th parameter in the file's functions of that name is a plain store to what it
    points to, or hands it on to a function of which the same holds."""
    definitions = [node for node in _functions(document) if _name(document, node) == function]
    return bool(definitions) and depth < _DEEPEST and all(_holds(document, one, place, depth) for one in definitions)


def in_macro(document: Document, names: set[str]) -> bool:
    """Whether a macro of the file may stand for a use of one of these names."""
    return any(names & set(re.findall(r"[A-Za-z_]\w*", macro.body)) for macro in document.macros)


def _functions(document: Document) -> Iterator[Node]:
    return descendants(document.tree.root_node, "function_definition")


def _name(document: Document, function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    name = declared_name(declarator) if declarator is not None else None
    return node_text(document, name).split("::")[-1] if name is not None else ""


def _holds(document: Document, function: Node, place: int, depth: int) -> bool:
    listing = next(descendants(function, "parameter_list"), None)
    body = function.child_by_field_name("body")
    parameters = [one for one in listing.named_children if one.type != "comment"] if listing is not None else []
    if body is None or place >= len(parameters):
        return False
    declarator = parameters[place].child_by_field_name("declarator")
    name = declared_name(declarator) if declarator is not None else None
    if name is None:
        return True  # without a name it is not used
    wanted = node_text(document, name)
    if in_macro(document, {wanted}):
        return False
    uses = (node for node in descendants(body, "identifier") if node_text(document, node) == wanted)
    return all(_is_store(document, use, depth) for use in uses)


def _is_store(document: Document, use: Node, depth: int) -> bool:
    """Whether a use of a pointer is ``p[i] = ...``, ``*(T*)p = ...``, ``(size_t)p``, or hands on ``p`` or ``&p[i]``."""
    pointer = _converted(use)
    above = pointer.parent
    if above is None:
        return False
    if above.type == "cast_expression":  # to no pointer: its address, which is aligned like any allocation's
        return True
    if above.type == "argument_list":
        return _handed_on(document, pointer, above, depth)
    is_base = above.type == "subscript_expression" and above.child_by_field_name("argument") == pointer
    if not is_base and not (above.type == "pointer_expression" and node_text(document, above).startswith("*")):
        return False
    element, outer = above, above.parent
    while outer is not None and outer.type == "parenthesized_expression":
        element, outer = outer, outer.parent
    if outer is None:
        return False
    if outer.type == "pointer_expression" and node_text(document, outer).startswith("&"):
        given = outer.parent
        return given is not None and given.type == "argument_list" and _handed_on(document, outer, given, depth)
    operator = outer.child_by_field_name("operator")
    return (
        outer.type == "assignment_expression"
        and outer.child_by_field_name("left") == element
        and operator is not None
        and node_text(document, operator) == "="
    )


def _converted(pointer: Node) -> Node:
    """The pointer under the casts to other pointers around it."""
    while (above := pointer.parent) is not None:
        to_pointer = above.type == "cast_expression" and any(descendants(above, "abstract_pointer_declarator"))
        if to_pointer or above.type == "parenthesized_expression":
            pointer = above
        elif above.type == "argument_list" and _is_reinterpreted(above):
            assert above.parent is not None
            pointer = above.parent
        else:
            return pointer
    return pointer


def _is_reinterpreted(given: Node) -> bool:
    return given.parent is not None and callee(given.parent) in ("reinterpret_cast", "static_cast")


def _handed_on(document: Document, pointer: Node, given: Node, depth: int) -> bool:
    call = given.parent
    if call is None or call.type != "call_expression":
        return False
    places = [at for at, one in enumerate(arguments(call)) if bare(one) == bare(pointer)]
    return bool(places) and all(only_written(document, callee(call), at, depth + 1) for at in places)
