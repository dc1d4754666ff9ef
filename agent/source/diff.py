"""Unified diffs that ``git apply`` and ``patch`` take, byte by byte."""

import difflib

from agent.source.document import Document

_CONTEXT = 3


def unified(old: Document, new: Document) -> str:
    """The difference as text with ``---``/``+++`` headers; empty where the texts are equal.

    Bytes that are no UTF-8 travel as surrogate escapes: ``unified(...).encode("utf-8", "surrogateescape")`` gives
    the exact bytes of both files. A ``\\r`` before a line end stays in its line.
    """
    before, after = _lines(old.text), _lines(new.text)
    if before == after:
        return ""
    # equal beginnings and ends are set aside first: the matcher's time grows with the square of what it is given
    head = _equal(before, after)
    tail = min(_equal(before[::-1], after[::-1]), min(len(before), len(after)) - head)
    head, tail = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    a, b = before[head : len(before) - tail], after[head : len(after) - tail]
    pieces = [f"--- a/{_name(old.path)}\n", f"+++ b/{_name(new.path)}\n"]
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        pieces.append(f"@@ -{_range(first[1], last[2], head)} +{_range(first[3], last[4], head)} @@\n")
        for tag, a_start, a_end, b_start, b_end in group:
            if tag == "equal":
                pieces += (_line(" ", line) for line in a[a_start:a_end])
                continue
            pieces += (_line("-", line) for line in a[a_start:a_end])
            pieces += (_line("+", line) for line in b[b_start:b_end])
    return "".join(pieces)


def _lines(text: bytes) -> list[str]:
    """Lines as ``patch`` counts them: ended by ``\\n`` and by nothing else."""
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return ended + lines[-1:] if lines[-1] else ended


def _equal(a: list[str], b: list[str]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _range(start: int, end: int, offset: int) -> str:
    length = end - start
    begin = start + offset + (1 if length else 0)
    return str(begin) if length == 1 else f"{begin},{length}"


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _name(path: str) -> str:
    name = (path or "text").replace("\\", "/").lstrip("/").replace("\n", "?")
    # a name with a space ends at a tab, as git writes it
    return f"{name}\t" if " " in name else name
