"""The ``#include`` lines that a rewrite adds to a file: held by the line behind which they go."""

from collections.abc import Sequence

from attrs import frozen

from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.headers import HeaderLine, header_lines, includes
from agent.source.span import Span


@frozen
class Header:
    """``line`` includes the header ``name``. It goes behind the ``#include`` line ``behind``, the ``place``-th of
    ``alike`` lines of these bytes at the top level; nowhere where the header is included by then."""

    name: str
    line: bytes
    behind: bytes
    place: int
    alike: int


def added_headers(base: Document, rewritten: Document) -> tuple[tuple[Header, ...], tuple[Edit, ...]]:
    """The lines that ``rewritten`` has behind those of ``base``, and the edits of ``rewritten`` that take them away."""
    there = {_text(base, line) for line in header_lines(base)}
    found: list[Header] = []
    back: list[Edit] = []
    behind: HeaderLine | None = None
    end = 0
    for line in header_lines(rewritten):
        if _text(rewritten, line) in there:
            behind, end = line, line.span.end
        elif behind is not None and line.span.start == end:
            end = line.span.end
            alike = _standing(rewritten, _text(rewritten, behind))
            place = alike.index(behind.span)
            found.append(Header(line.name, _text(rewritten, line), _text(rewritten, behind), place, len(alike)))
            back.append(Edit(line.span, b""))
    return tuple(found), tuple(back)


def header_edits(headers: Sequence[Header], document: Document, kernel: int) -> list[Edit] | None:
    """The edits that add what this text has not before the kernel's offset; None where a line behind which one goes is
    not there as it was."""
    edits: list[Edit] = []
    for header in headers:
        if includes(document, header.name, kernel):
            continue
        there = _standing(document, header.behind)
        if len(there) != header.alike:
            return None
        end = there[header.place].end
        edits.append(Edit(Span(end, end), header.line))
    return edits


def _standing(document: Document, written: bytes) -> list[Span]:
    return [line.span for line in header_lines(document) if _text(document, line) == written]


def _text(document: Document, line: HeaderLine) -> bytes:
    return document.text[line.span.start : line.span.end]
