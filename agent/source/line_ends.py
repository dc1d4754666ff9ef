"""Line ends: what is read has ``\\n`` where a file has a lone ``\\r``, and what is written has the file's own again.

A lone ``\\r`` ends a line for nvcc and for editors, for the parser and for NVRTC it does not. As both ends are one byte
long, offsets are the same in both texts.
"""

import re
from difflib import SequenceMatcher

_LONE = re.compile(rb"\r(?!\n)")


def with_newlines(text: bytes) -> bytes:
    """``text`` with ``\\n`` in place of every lone ``\\r``; ``\\r\\n`` stays. Same length, same lines."""
    return _LONE.sub(b"\n", text) if _lone(text) else text


def line_end(text: bytes) -> bytes:
    """The line end that most lines of a ``text`` without lone ``\\r`` have: ``\\r\\n`` or ``\\n``."""
    pairs = text.count(b"\r\n")
    return b"\r\n" if 2 * pairs > text.count(b"\n") else b"\n"


def ended_as(raw: bytes, text: bytes) -> bytes:
    """A piece of text for a place in ``raw``: with lone ``\\r`` where most lines of ``raw`` end so."""
    return _as_lone(text) if _lone(raw) > raw.count(b"\n") else text


def restored(raw: bytes, new: bytes) -> bytes:
    """``new``, which came of ``with_newlines(raw)``, as it is written over ``raw``: lines that stayed end as before."""
    if not _lone(raw):
        return new
    ours, theirs = new.splitlines(keepends=True), raw.splitlines(keepends=True)
    before = with_newlines(raw).splitlines(keepends=True)
    pieces: list[bytes] = []
    for tag, start, end, first, last in SequenceMatcher(None, before, ours, autojunk=False).get_opcodes():
        pieces += theirs[start:end] if tag == "equal" else [ended_as(raw, line) for line in ours[first:last]]
    return b"".join(pieces)


def _lone(text: bytes) -> int:
    """How many lines end with ``\\r`` alone."""
    return text.count(b"\r") - text.count(b"\r\n")


def _as_lone(text: bytes) -> bytes:
    return re.sub(rb"\r?\n", b"\r", text)
