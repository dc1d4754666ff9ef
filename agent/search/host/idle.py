"""Loops and conditions that a rewrite left with nothing to do."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.source.document import Document
from agent.source.nodes import LOOPS, ancestors, descendants, field, node_text

_EXCHANGE = re.compile(r"(?:(?:std\s*::\s*)?swap)\s*\(\s*([A-Za-z_]\w*)\s*,\s*([A-Za-z_]\w*)\s*\)\s*;")
_CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|\w\s*\(")
_DECLARED = re.compile(r"[\w\s:]+?\b(\w+)\s*=(?!=)(.*);", re.DOTALL)
_COUNTED = re.compile(r"(?:(?:\+\+|--)\s*(\w+)|(\w+)\s*(?:\+\+|--))")
_ASSIGNED = re.compile(r"(\w+)\s*(?:[-+*/]|<<|>>)?=(?!=)(.*)", re.DOTALL)


def idle(document: Document, function: Node, before: str) -> Iterator[Node]:
    """``for`` loops and ``if`` statements without an ``else`` in a function that do nothing: with an empty body, or one
    that exchanges pointers which are at most freed after it. What stood so in ``before``, the function's text as it
    was, is the user's."""
    text = node_text(document, function)
    for node in descendants(function, "for_statement", "if_statement"):
        if node.parent is None or node.parent.type != "compound_statement" or node_text(document, node) in before:
            continue
        if _has_quiet_head(document, node) and _does_nothing(document, node, function, text):
            yield node


def _has_quiet_head(document: Document, node: Node) -> bool:
    """Whether the condition changes and calls nothing, and a loop steps on nothing but a variable of its own."""
    condition = _told(document, node, "condition")
    if not condition or _CHANGES.search(condition):
        return False
    if node.type == "if_statement":
        return node.child_by_field_name("alternative") is None
    own = _DECLARED.fullmatch(_told(document, node, "initializer"))
    step = _told(document, node, "update")
    counted, assigned = _COUNTED.fullmatch(step), _ASSIGNED.fullmatch(step)
    if own is None or _CHANGES.search(own[2]) or (assigned is not None and _CHANGES.search(assigned[2])):
        return False
    stepped = counted[1] or counted[2] if counted else assigned[1] if assigned else ""
    return bool(own[1] == stepped)


def _told(document: Document, node: Node, name: str) -> str:
    part = node.child_by_field_name(name)
    return "" if part is None else node_text(document, part).strip()


def _does_nothing(document: Document, node: Node, function: Node, text: str) -> bool:
    body = node.child_by_field_name("body" if node.type == "for_statement" else "consequence")
    if body is None:
        return False
    statements = body.named_children if body.type == "compound_statement" else [body]
    left = [node_text(document, one).strip() for one in statements if one.type != "comment"]
    if any(one.type == "comment" for one in statements):
        return False  # somebody had something to say
    exchanges = [_EXCHANGE.fullmatch(one) for one in left if one != ";"]
    names = {name for one in exchanges if one is not None for name in one.groups()}
    return None not in exchanges and (not names or _are_done_with(document, names, node, function, text))


def _are_done_with(document: Document, names: set[str], node: Node, function: Node, text: str) -> bool:
    """Whether nothing after a statement tells which of some pointers is which: each is a local, and all of them are
    freed at the end, or none."""
    if any(above.type in LOOPS for above in ancestors(node)) or any(descendants(function, "lambda_expression")):
        return False
    body = field(function, "body")
    if body is None:
        return False
    before = document.text[body.start_byte : node.start_byte].decode("utf-8", "replace")
    after = document.text[node.end_byte : function.end_byte].decode("utf-8", "replace")
    own = all(re.search(rf"\*\s*{name}\s*(?:=\s*nullptr\s*)?[,;]", before) for name in names)
    lasting = re.search(r"\b(?:static|extern|thread_local)\b", before) is not None
    aliased = lasting or any(re.search(rf"=\s*&?\s*{name}\b", before) for name in names)
    freed = [len(re.findall(rf"\bcudaFree\s*\(\s*{name}\s*\)", after)) for name in names]
    used = [len(re.findall(rf"\b{name}\b", after)) for name in names]
    return own and not aliased and used == freed and len(set(freed)) == 1
