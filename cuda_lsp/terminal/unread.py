"""A file in which no kernel was found, and whose text the parser lost its way in: that is not the same as empty."""

from agent.source.document import Document
from agent.source.lexing import scan
from agent.source.nodes import first_error

SHOWN = 60
"""Characters of the line."""


def parse_error(document: Document) -> str:
    """Where the first parse error of a file without kernels is; empty where there are kernels, or no errors."""
    if document.kernels or not document.broken:
        return ""
    line = document.line(_first(document))
    text = document.text.splitlines()[line - 1 : line] or [b""]
    return f"line {line}: {text[0].decode('utf-8', 'replace').removeprefix(chr(0xFEFF)).strip()[:SHOWN]}"


def _first(document: Document) -> int:
    """Where the error begins. A text that is one error from end to end begins to be one where a kernel was meant."""
    root = document.tree.root_node
    if root.is_error and (meant := scan(document.text).code.find(b"__global__")) >= 0:
        return meant
    error = first_error(root)
    return error.start_byte if error is not None else 0


def no_kernel(document: Document) -> str:
    """What is said of a file in which no kernel was found."""
    said = f"{document.path}: no kernel (`__global__` function) in this file"
    where = parse_error(document)
    return f"{said} could be read: it has parse errors, the first at {where}" if where else said
