"""The ``#include`` lines of a file: which are there, and behind which of them a further one belongs."""

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.nodes import text_of
from agent.source.span import Span

_DEFINITIONS = (
    "function_definition",
    "template_declaration",
    "namespace_definition",
    "linkage_specification",
    "class_specifier",
    "struct_specifier",
)
"""What ends the head of a file."""


@frozen
class HeaderLine:
    """An ``#include`` at the top level: ``span`` is its whole line, the line's end with it."""

    span: Span
    name: str
    quoted: bool


def header_lines(document: Document) -> tuple[HeaderLine, ...]:
    """Those that hold whatever is defined, in text order: not the ones inside ``#if``; an include guard is none."""
    found = (_header_line(document, node) for node in _top_level(document) if node.type == "preproc_include")
    return tuple(line for line in found if line is not None)


def includes(document: Document, name: str, before: int) -> bool:
    """Whether a header is included before an offset, whatever is defined."""
    return any(line.name == name and line.span.end <= before for line in header_lines(document))


def header_place(document: Document, name: str, before: int) -> HeaderLine | None:
    """The line behind which ``#include <name>`` belongs that is needed at offset ``before``: the last such line of the
    file's head, which goes to the first definition; where the lines there are in order, the last one that comes before
    it in that order. None where no line stands before that offset."""
    lines = [line for line in header_lines(document) if line.span.end <= before]
    head_end = next((node.start_byte for node in _top_level(document) if node.type in _DEFINITIONS), before)
    head = [line for line in lines if line.span.end <= head_end] or lines
    last = next((line for line in reversed(head) if not line.quoted), head[-1] if head else None)
    if last is None:
        return None
    block = _block(head, last)
    names = [line.name for line in block]
    if len(block) > 1 and names == sorted(names):
        return next((line for line in reversed(block) if line.name < name), last)
    return last


def _block(lines: list[HeaderLine], last: HeaderLine) -> list[HeaderLine]:
    """The lines of one kind that stand right above ``last``, and it."""
    block = [last]
    for line in reversed(lines[: lines.index(last)]):
        if line.quoted != last.quoted or line.span.end != block[0].span.start:
            break
        block.insert(0, line)
    return block


def _top_level(document: Document) -> list[Node]:
    """The nodes at the top level, those inside an include guard where the whole file stands in one."""
    nodes = document.tree.root_node.children
    solid = [node for node in nodes if node.type != "comment"]
    guard = solid[0] if len(solid) == 1 and solid[0].type == "preproc_ifdef" else None
    return nodes if guard is None or guard.children[0].type != "#ifndef" else guard.children


def _header_line(document: Document, node: Node) -> HeaderLine | None:
    path = node.child_by_field_name("path")
    if path is None or path.type not in ("string_literal", "system_lib_string"):
        return None  # the name is a macro's
    start = document.line_starts[document.line(node.start_byte) - 1]
    end = document.text.find(b"\n", path.end_byte) + 1
    if not end:
        return None
    return HeaderLine(Span(start, end), text_of(document.text, path)[1:-1], path.type == "string_literal")
