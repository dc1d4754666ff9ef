"""Byte offsets to positions of the protocol and back, with an index of our own.

The protocol ends a line at ``\\n``, ``\\r\\n`` and a lone ``\\r``, and nowhere else: not at a form feed, not at U+2028.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from attrs import field, frozen
from lsprotocol import types

from agent.source.span import Span
from cuda_lsp.columns import UTF8, UTF16, UTF32, decoded, encoded, line_starts, offset_in, width

__all__ = ["UTF8", "UTF16", "UTF32", "LineIndex", "decoded", "encoded", "mended"]


@frozen
class LineIndex:
    """The lines of a text in UTF-8. ``encoding`` says what a column counts: ``utf-8``, ``utf-16`` or ``utf-32`` units.

    Half of a surrogate pair that a client sends alone is kept as the three bytes that UTF-8 would give it.
    """

    text: bytes = field(repr=False)
    encoding: str = UTF16
    _starts: list[int] | None = field(default=None, repr=False, eq=False)

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line begins. Never empty."""
        return line_starts(self.text) if self._starts is None else self._starts

    def edited(self, span: Span, text: bytes) -> LineIndex:
        """The index after an edit. Only the lines around it are looked for anew: an edit may join the two bytes of a
        line end, or part them, so that the line before it and the line it ends in count too."""
        new = self.text[: span.start] + text + self.text[span.end :]
        whole = mended(new)
        if whole is not new:
            return LineIndex(whole, self.encoding)
        by = len(text) - len(span)
        first = max(0, bisect_right(self.starts, span.start) - 2)
        behind = bisect_right(self.starts, span.end)
        begin = self.starts[first]
        end = self.starts[behind] + by if behind < len(self.starts) else len(new)
        between = [begin + at for at in line_starts(new[begin:end])]
        if behind < len(self.starts):
            between.pop()  # the line that is next begins there
        moved = [at + by for at in self.starts[behind:]] if by else self.starts[behind:]
        return LineIndex(new, self.encoding, [*self.starts[:first], *between, *moved])

    def offset_of(self, position: types.Position) -> int:
        """The byte offset of a position. What lies outside the text is moved to the nearest place inside: past the end
        of a line to that end, past the last line to the end of the text, inside a character to its beginning."""
        if position.line >= len(self.starts):
            return len(self.text)
        line = self._line(position.line)
        return self.starts[position.line] + offset_in(line, position.character, self.encoding)

    def position_of(self, offset: int) -> types.Position:
        """The position of a byte offset, which must lie between two characters (or inside a line end)."""
        offset = min(max(offset, 0), len(self.text))
        number = bisect_right(self.starts, offset) - 1
        before = self.text[self.starts[number] : offset]
        return types.Position(number, width(before, self.encoding))

    def line_start(self, offset: int) -> int:
        """Where the line of a byte offset begins."""
        return self.starts[bisect_right(self.starts, offset) - 1]

    def range_of(self, span: Span) -> types.Range:
        return types.Range(self.position_of(span.start), self.position_of(span.end))

    def span_of(self, range_: types.Range) -> Span:
        """The bytes of a range. One that ends before it begins is empty."""
        start = self.offset_of(range_.start)
        return Span(start, max(start, self.offset_of(range_.end)))

    def _line(self, number: int) -> bytes:
        """A line without its line end."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip(b"\r\n")


def mended(text: bytes) -> bytes:
    """``text`` with two halves of a surrogate pair that came to stand side by side made one character."""
    if b"\xed" not in text:
        return text
    characters = decoded(text)
    if not any("\ud800" <= character <= "\udfff" for character in characters):
        return text
    return encoded(characters.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
