"""Columns as the protocol counts them, and the text of a client as bytes; without the protocol's own types."""

from __future__ import annotations

from itertools import accumulate

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"


def line_starts(text: bytes) -> list[int]:
    """The offset at which each line begins. Lines end where the protocol says: at ``\\n``, ``\\r\\n`` and ``\\r``."""
    # of bytes, splitlines ends lines exactly there
    ends = list(accumulate(map(len, text.splitlines(keepends=True))))
    if ends and not text.endswith((b"\n", b"\r")):
        ends.pop()
    return [0, *ends]


def width(piece: bytes, encoding: str) -> int:
    """How many units a piece of a line is wide."""
    if encoding == UTF8 or piece.isascii():
        return len(piece)
    text = piece.decode("utf-8", "surrogatepass")
    return len(text) if encoding == UTF32 else len(text) + sum(c > "\uffff" for c in text)


def offset_in(line: bytes, units: int, encoding: str) -> int:
    """The offset of a column in a line without its end: past the end the end, inside a character its beginning."""
    if encoding == UTF8:
        column = min(units, len(line))
        while column < len(line) and line[column] & 0xC0 == 0x80:
            column -= 1
        return column
    if line.isascii():
        return min(units, len(line))
    return len(_first_units(line, units, encoding))


def _first_units(line: bytes, units: int, encoding: str) -> bytes:
    """The characters of ``line`` that fit into so many units."""
    text = line.decode("utf-8", "surrogatepass")
    if encoding == UTF16:
        taken = 0
        for index, character in enumerate(text):
            taken += 2 if character > "\uffff" else 1
            if taken > units:
                return encoded(text[:index])
        return line
    return encoded(text[:units])


def encoded(text: str) -> bytes:
    """Text of a client as the bytes that we keep."""
    return text.encode("utf-8", "surrogatepass")


def decoded(text: bytes) -> str:
    """The bytes that we keep as the text of a client."""
    return text.decode("utf-8", "surrogatepass")
