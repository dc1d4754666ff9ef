"""Unified diffs that ``git apply`` and ``patch`` take, byte by byte."""

import difflib

from agent.source.document import Document

_CONTEXT = 3


def unified(old: Document, new: Document) -> str:
    """The difference as text with ``---``/``+++`` headers; empty where the texts are equal.

    Bytes that are no UTF-8 travel as surrogate escapes: ``unified(...).encode("utf-8", "surrogateescape")`` gives
    the exact bytes of both files. A ``\\r`` before a line end stays in its line; a lone
    ``\\r`` ends a line, as in every document, and lines that have it no patch tool finds.
    """
    before, after = _lines(old.text), _lines(new.text)
    if before == after:
        return ""
    pieces = [f"--- a/{_name(old.path)}\n", f"+++ b/{_name(new.path)}\n"]
    for hunk in _hunks(_changes(before, after)):
        first, last = hunk[0], hunk[-1]
        start_a, start_b = max(0, first[0] - _CONTEXT), max(0, first[2] - _CONTEXT)
        end_a, end_b = min(len(before), last[1] + _CONTEXT), min(len(after), last[3] + _CONTEXT)
        pieces.append(f"@@ -{_range(start_a, end_a)} +{_range(start_b, end_b)} @@\n")
        at = start_a
        for a_start, a_end, b_start, b_end in hunk:
            pieces += (_line(" ", line) for line in before[at:a_start])
            pieces += (_line("-", line) for line in before[a_start:a_end])
            pieces += (_line("+", line) for line in after[b_start:b_end])
            at = a_end
        pieces += (_line(" ", line) for line in before[at:end_a])
    return "".join(pieces)


def _changes(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    """``(a_start, a_end, b_start, b_end)`` of each changed run of lines.

    Equal beginnings and ends are set aside first: the matcher's time grows with the square of what it is given.
    """
    head = _equal(before, after)
    tail = _equal(before[head:][::-1], after[head:][::-1])
    matcher = difflib.SequenceMatcher(
        None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False
    )
    return [(i + head, j + head, k + head, m + head) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def _hunks(changes: list[tuple[int, int, int, int]]) -> list[list[tuple[int, int, int, int]]]:
    """Changes whose context touches share a hunk."""
    hunks: list[list[tuple[int, int, int, int]]] = []
    for change in changes:
        if hunks and change[0] - hunks[-1][-1][1] <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _lines(text: bytes) -> list[str]:
    """Lines as ``patch`` counts them: ended by ``\\n`` and by nothing else."""
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return ended + lines[-1:] if lines[-1] else ended


def _equal(a: list[str], b: list[str]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _range(start: int, end: int) -> str:
    length = end - start
    begin = start + 1 if length else start
    return str(begin) if length == 1 else f"{begin},{length}"


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _name(path: str) -> str:
    name = (path or "text").replace("\\", "/").lstrip("/").replace("\n", "?")
    # a name with a space ends at a tab, as git writes it
    return f"{name}\t" if " " in name else name
