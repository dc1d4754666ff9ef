"""An item's text as NVRTC takes it: without the host's member functions, with ``constexpr`` functions made callable."""

import re

from tree_sitter import Node

from agent.source.blanking import blanks_in
from agent.source.items import CONSTEXPR, DEVICE, Item, is_function, known_device
from agent.source.lexing import spaces
from agent.source.nodes import declared_name, descendants, text_of
from agent.source.span import Span

_DEFAULTED = ("default_method_clause", "delete_method_clause")
_VIRTUAL = re.compile(rb"\bvirtual\b|\boverride\b|=\s*0\s*;")


def device_text(item: Item, relaxed_constexpr: bool) -> tuple[bytes, list[str]]:
    """The item's text with the same lines, and the names of the ``constexpr`` functions that were annotated in it.

    Members are annotated only with ``relaxed_constexpr``: without, nvcc takes no call of them in device code."""
    text, node = item.document.text, item.node
    if node is None or item.kind in ("macro", "using", "variable"):
        return text[item.span.start : item.span.end], []
    changes: list[tuple[Span, bytes]] = []
    relaxed: list[str] = []
    for function, whole in _functions(node, item):
        head = _head(item, function, whole)
        if DEVICE.search(head) or known_device(head) or _hidden_device(item, whole):
            continue
        member = whole.start > item.span.start
        constexpr = CONSTEXPR.search(head)
        if constexpr and (relaxed_constexpr or not member):
            at = whole.start + constexpr.start()
            changes.append((Span(at, at), b"__device__ "))
            relaxed.append(_name(text, function))
        elif member and not _VIRTUAL.search(head):
            changes.append((whole, spaces(text[whole.start : whole.end])))
    return _apply(text, item.span, changes), relaxed


def _functions(node: Node, item: Item) -> list[tuple[Node, Span]]:
    """Functions in an item, members of local and nested classes included, each with its whole span."""
    found = []
    for function in descendants(node, "function_definition", "declaration", "field_declaration"):
        if any(child.type in _DEFAULTED for child in function.children):
            continue
        if function.type != "function_definition" and not is_function(function.child_by_field_name("declarator")):
            continue
        outer = function
        while outer.parent is not None and outer.parent.type in ("template_declaration", "friend_declaration"):
            outer = outer.parent
        top = outer.parent is None or outer.parent.type not in ("field_declaration_list",)
        if top and item.kind not in ("function", "operator"):
            continue
        if top and outer.start_byte > item.span.start + 4000:
            continue
        if top and function.parent is not None and function.parent.type == "compound_statement":
            continue
        found.append((function, _whole(outer, item)))
    return found


def _whole(outer: Node, item: Item) -> Span:
    start = outer.start_byte
    before = outer.prev_sibling
    floor = max(item.span.start, before.end_byte if before else item.span.start)
    for blank in blanks_in(item.document.blanks, floor, start):
        if blank.kind in ("specifier", "attribute"):
            start = blank.span.start
            break
    after = outer.next_sibling
    end = after.end_byte if after is not None and after.type == ";" else outer.end_byte
    return Span(start, end)


def _head(item: Item, function: Node, whole: Span) -> bytes:
    body = next(
        (child for child in function.children if child.type in ("compound_statement", "field_initializer_list")), None
    )
    return item.document.text[whole.start : body.start_byte if body else whole.end]


def _hidden_device(item: Item, whole: Span) -> bool:
    return any(
        "__device__" in blank.expansion or "__global__" in blank.expansion
        for blank in blanks_in(item.document.blanks, whole.start, whole.end)
    )


def _name(text: bytes, function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if "declarator" in child.type), None
        )
    inner = declarator.child_by_field_name("declarator") if declarator else None
    name = declared_name(inner)
    chosen = name if name is not None else inner
    return text_of(text, chosen) if chosen is not None else "?"


def _apply(text: bytes, span: Span, changes: list[tuple[Span, bytes]]) -> bytes:
    pieces: list[bytes] = []
    at = span.start
    for place, new in sorted(changes):
        if place.start >= at:
            pieces += (text[at : place.start], new)
            at = place.end
    return b"".join((*pieces, text[at : span.end]))
