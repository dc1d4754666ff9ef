"""``// cuda-lsp: ignore[M1, S]`` silences rules on its own line and on the next; above a kernel, in all of it."""

import re
from bisect import bisect_right

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.span import Span

_COMMENT = re.compile(rb"(?://|/\*)[^\n]*?\bcuda-lsp:\s*ignore\b(?:\[([^\]\n]*)\])?")


def suppressed(document: Document, kernel: Kernel) -> "Suppressed":
    """What the comments of a file silence, for the findings of one kernel."""
    lines: dict[int, tuple[str, ...]] = {}
    for match in _COMMENT.finditer(document.text):
        names = tuple(name.strip() for name in (match[1] or b"ALL").decode("utf-8", "replace").split(","))
        lines[document.line(match.start())] = tuple(name for name in names if name)
    return Suppressed(document, lines, _heading(document, kernel, lines))


class Suppressed:
    def __init__(self, document: Document, lines: dict[int, tuple[str, ...]], whole: tuple[str, ...]) -> None:
        self._document = document
        self._lines = lines
        self._whole = whole

    def __bool__(self) -> bool:
        return bool(self._lines)

    def names(self, span: Span, inside: bool) -> tuple[str, ...]:
        """The names of rules silenced where a finding begins; ``inside``: in the kernel, not at a launch of it."""
        line = bisect_right(self._document.line_starts, span.start)
        own = self._lines.get(line, ())
        above = self._lines.get(line - 1, ()) if self._alone(line - 1) else ()
        return (*own, *above, *(self._whole if inside else ()))

    def _alone(self, line: int) -> bool:
        """Whether a line holds nothing but a comment."""
        starts = self._document.line_starts
        if not 1 <= line < len(starts):
            return False
        return self._document.text[starts[line - 1] : starts[line]].lstrip().startswith((b"//", b"/*"))


def silences(names: tuple[str, ...], rule: str) -> bool:
    return any(name.upper() in ("ALL", rule) or (name.isalpha() and rule.startswith(name.upper())) for name in names)


def _heading(document: Document, kernel: Kernel, lines: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    """What the comments directly above a kernel, or on its first line, silence in all of it."""
    first = document.line(kernel.span.start)
    found = lines.get(first, ())
    above = first - 1
    while above >= 1:
        start = document.line_starts[above - 1]
        if not document.text[start : document.line_starts[above]].lstrip().startswith((b"//", b"/*", b"*")):
            break
        found = (*found, *lines.get(above, ()))
        above -= 1
    return found
