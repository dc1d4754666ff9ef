"""Statements put around one of a loop's body, which gets braces where it has none."""

from collections.abc import Mapping

from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.ideas.rewriting import indent_of, indent_unit, indented, replace
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span


def statement_in_braces(
    view: View, loop: Loop, statement: Node, before: str, after: str, renamed: Mapping[Node, str]
) -> list[Edit]:
    """``before`` and ``after`` (lines without indentation; either may be empty) around a statement at the top of a
    loop's body, and nodes anywhere in the body replaced by other text."""
    document = view.document
    body = loop.body
    opened = body.type == "compound_statement" and document.line(body.start_byte) != document.line(statement.start_byte)
    if opened:
        edits = [replace(node, text) for node, text in renamed.items()]
        start, end = statement.start_byte, statement.end_byte
        if before:
            lines = indented(document, statement, before) + "\n" + indent_of(document, statement)
            edits.append(Edit(Span(start, start), lines.encode()))
        if after:
            lines = "\n" + indent_of(document, statement) + indented(document, statement, after)
            edits.append(Edit(Span(end, end), lines.encode()))
        return edits
    outer = indent_of(document, loop.node)
    inner = outer + indent_unit(document, view.kernel)
    inside = [body] if body.type != "compound_statement" else list(body.named_children)
    lines_out: list[str] = []
    for one in inside:
        if one == statement and before:
            lines_out += before.split("\n")
        lines_out.append(with_names(view, one, renamed))
        if one == statement and after:
            lines_out += after.split("\n")
    written = "{\n" + "\n".join(inner + line for line in lines_out) + f"\n{outer}}}"
    header = next(child.end_byte for child in loop.node.children if child.type == ")")
    return [Edit(Span(header, body.end_byte), (" " + written).encode())]


def with_names(view: View, node: Node, renamed: Mapping[Node, str]) -> str:
    """The source of a node with some nodes inside it replaced."""
    raw = view.document.text[node.start_byte : node.end_byte]
    pieces, at = [], 0
    for inner in sorted(renamed, key=lambda one: one.start_byte):
        if node.start_byte <= inner.start_byte and inner.end_byte <= node.end_byte:
            pieces += [raw[at : inner.start_byte - node.start_byte], renamed[inner].encode()]
            at = inner.end_byte - node.start_byte
    return b"".join((*pieces, raw[at:])).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
