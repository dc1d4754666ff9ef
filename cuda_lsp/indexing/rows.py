"""Where the offsets of a file's facts stand, as lines and columns, without the file.

Beside where each line begins, only those lines are kept on which a fact stands behind a character that is not ASCII:
what the columns are there depends on what a client counts.
"""

import json
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from agent.source.index.facts import Facts
from agent.source.span import Span
from cuda_lsp.columns import line_starts, offset_in, width
from cuda_lsp.indexing.messages import Range

_LENGTH = struct.Struct("<I")


@frozen
class Rows:
    starts: Sequence[int] = field(repr=False)
    wide: Mapping[int, bytes] = field(repr=False)
    """By number: lines that are not ASCII."""

    def range_of(self, span: Span, encoding: str) -> Range:
        return Range(*self._position(span.start, encoding), *self._position(span.end, encoding))

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def offset_of(self, line: int, character: int, encoding: str) -> int | None:
        """None for a position past the last line, or past the end of its own."""
        if not 0 <= line < len(self.starts):
            return None
        start = self.starts[line]
        offset = start + (offset_in(self.wide[line], character, encoding) if line in self.wide else character)
        return None if line + 1 < len(self.starts) and offset >= self.starts[line + 1] else offset

    def _position(self, offset: int, encoding: str) -> tuple[int, int]:
        line = self.line_of(offset)
        column = offset - self.starts[line]
        return line, width(self.wide[line][:column], encoding) if line in self.wide else column


def rows_of(text: bytes, facts: Facts) -> Rows:
    starts = line_starts(text)
    wide: dict[int, bytes] = {}
    for offset in set(_offsets(facts)) if not text.isascii() else ():
        line = bisect_right(starts, offset) - 1
        end = starts[line + 1] if line + 1 < len(starts) else len(text)
        if line not in wide and not text[starts[line] : end].isascii():
            wide[line] = text[starts[line] : end].rstrip(b"\r\n")
    return Rows(starts, wide)


def _offsets(facts: Facts) -> Iterable[int]:
    for mention in facts.mentions:
        yield from (mention.span.start, mention.span.end)
    for one in facts.definitions:
        yield from (one.span.start, one.span.end, one.extent.start, one.extent.end)


def pack(rows: Rows) -> bytes:
    wide = {line: text.decode("utf-8", "surrogatepass") for line, text in rows.wide.items()}
    head = json.dumps(wide, separators=(",", ":")).encode()
    return _LENGTH.pack(len(head)) + head + struct.pack(f"<{len(rows.starts)}I", *rows.starts)


def unpack(packed: bytes) -> Rows:
    """Of what :func:`pack` wrote; a file of the cache that cannot be read back as it was written is never seen here."""
    (length,) = _LENGTH.unpack_from(packed)
    wide = json.loads(packed[_LENGTH.size : _LENGTH.size + length])
    starts = [start for (start,) in struct.iter_unpack("<I", packed[_LENGTH.size + length :])]
    return Rows(starts, {int(line): text.encode("utf-8", "surrogatepass") for line, text in wide.items()})
