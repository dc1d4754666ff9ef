"""Edits as values, and finding a kernel again in a document that was edited."""

from collections.abc import Sequence

from attrs import frozen

from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span


@frozen
class Edit:
    """Put ``text`` in the place of ``span``."""

    span: Span
    text: bytes


def apply_edits(text: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply edits whose spans all refer to ``text`` as it is now. Raises ValueError where two overlap or one lies
    outside."""
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.span):
        if edit.span.start < at:
            raise ValueError(f"edits overlap at byte {edit.span.start}")
        if not edit.span.start <= edit.span.end <= len(text):
            raise ValueError(
                f"an edit of bytes {edit.span.start} to {edit.span.end} lies outside a text of {len(text)}"
            )
        pieces += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    return b"".join((*pieces, text[at:]))


def reanchor(kernel: Kernel, old: Document, new: Document) -> Kernel | None:
    """Where ``kernel`` of ``old`` stands in ``new``: same qualified name and same bytes. None if it changed or is gone.

    Of several equal ones (the branches of an ``#if``) it is the one at the same place among them.
    """
    before = _alike(kernel, old, old)
    after = _alike(kernel, old, new)
    place = next((at for at, other in enumerate(before) if other.span == kernel.span), 0)
    return after[place] if len(after) == len(before) else None


def _alike(kernel: Kernel, old: Document, there: Document) -> list[Kernel]:
    written = old.text[kernel.span.start : kernel.span.end]
    return [
        other
        for other in there.kernels
        if other.qualified_name == kernel.qualified_name and there.text[other.span.start : other.span.end] == written
    ]


def splice(document: Document, kernel: Kernel, code: str) -> Document:
    """The document with ``code`` in place of the kernel's definition, every other byte as it was.

    ``code`` takes the document's line ends. Raises SourceError where the kernel does not stand in this document.
    """
    if all(other.span != kernel.span or other.name != kernel.name for other in document.kernels):
        raise SourceError(
            f"{kernel.qualified_name} does not stand at line {kernel.line} of {document.path or 'this text'}"
        )
    new = code.replace("\r\n", "\n").encode("utf-8", "surrogateescape")
    if line_end(document.text) == b"\r\n":
        new = new.replace(b"\n", b"\r\n")
    return parse(apply_edits(document.text, [Edit(kernel.span, new)]), document.path, document)
