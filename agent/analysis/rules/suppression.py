"""``// cuda-lsp: ignore[M1, S]`` silences rules on its own line and on the next; above a kernel, in all of it."""

import re
from collections.abc import Mapping
from functools import lru_cache

from agent.analysis.file import mentions
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.span import Span

_COMMENT = re.compile(rb"(?://|/\*)[^\n]*?\bcuda-lsp:\s*ignore\b(?:\[([^\]\n]*)\])?")
_MARK = re.compile(rb"\bcuda-lsp:(?=\s*ignore\b)")

Lines = Mapping[int, tuple[str, ...]]


def heedless(text: bytes) -> bytes:
    """The same text, as long, in which nothing is silenced."""
    return _MARK.sub(b"cuda-lsp ", text)


def silenced(document: Document, kernel: Kernel, span: Span, inside: bool) -> tuple[str, ...]:
    """The names of rules that are silenced where a finding begins. ``inside``: in the kernel, not at a launch of it."""
    lines = _lines(document) if mentions(document, b"cuda-lsp:") else {}
    if not lines:
        return ()
    line = document.line(span.start)
    above = lines.get(line - 1, ()) if _comment_only(document, line - 1) else ()
    return (*lines.get(line, ()), *above, *(_heading(document, kernel, lines) if inside else ()))


@lru_cache(maxsize=8)
def _lines(document: Document) -> Lines:
    """Line -> the names that its comment silences."""
    found: dict[int, tuple[str, ...]] = {}
    for match in _COMMENT.finditer(document.text):
        names = (
            name.strip() for name in (b"ALL" if match[1] is None else match[1]).decode("utf-8", "replace").split(",")
        )
        found[document.line(match.start())] = tuple(name for name in names if name)
    return found


def _comment_only(document: Document, line: int) -> bool:
    """Whether a line holds nothing but a comment."""
    starts = document.line_starts
    if not 1 <= line < len(starts):
        return False
    return document.text[starts[line - 1] : starts[line]].lstrip().startswith((b"//", b"/*", b"*"))


def silences(names: tuple[str, ...], rule: str) -> bool:
    return any(name.upper() in ("ALL", rule) or (name.isalpha() and rule.startswith(name.upper())) for name in names)


def _heading(document: Document, kernel: Kernel, lines: Lines) -> tuple[str, ...]:
    """What the comments directly above a kernel, or on its first line, silence in all of it."""
    first = document.line(kernel.span.start)
    found, above = lines.get(first, ()), first - 1
    while _comment_only(document, above):
        found = (*found, *lines.get(above, ()))
        above -= 1
    return found
