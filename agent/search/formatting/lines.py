"""Which lines a rewrite wrote, and a formatter's edits that touch no other line."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby

from agent.source.edits import Edit
from agent.source.lexing import scan

_WORD = re.compile(rb"\w+|[^\w\s]")
_ENDS_LINE = re.compile(rb"\r?\n")
_FREE = (b"{", b"}", b"(", b")", b";")
"""What a style may add and take away."""


def written(base: bytes, text: bytes) -> list[tuple[int, int]]:
    """The 1-based first and last line of each stretch of ``text`` that ``base`` does not have."""
    changed = sorted(_changed(base.split(b"\n"), text.split(b"\n")))
    runs = groupby(enumerate(changed), lambda pair: pair[1] - pair[0])
    stretches = [[line for _, line in run] for _, run in runs]
    return [(stretch[0] + 1, stretch[-1] + 1) for stretch in stretches]


def only_in(lines: Sequence[tuple[int, int]], text: bytes, edits: Sequence[Edit]) -> list[Edit]:
    """Those of a formatter's edits that change none but the 1-based ``lines`` of ``text``."""
    starts = [0, *accumulate(len(line) + 1 for line in text.split(b"\n"))]
    free = {line for first, last in lines for line in range(first, last + 1)}
    return [edit for edit in edits if _is_free(edit, text, starts, free)]


def _is_free(edit: Edit, text: bytes, starts: Sequence[int], free: set[int]) -> bool:
    start, end = edit.span.start, edit.span.end
    first, last = bisect_right(starts, start), bisect_right(starts, end)
    if first not in free:  # from the very end of somebody else's line on, which still ends there
        stays = _ENDS_LINE.match(text, start)
        if first == last or stays is None or not edit.text.startswith(stays[0]):
            return False
        first += 1
    if last not in free:  # to the very start of somebody else's line, which still starts there
        if end != starts[last - 1] or not edit.text.endswith(b"\n"):
            return False
        last -= 1
    return first <= last and free.issuperset(range(first, last + 1))


def says_the_same(text: bytes, formatted: bytes) -> bool:
    """Whether two texts have the same words in their code and directives, in whatever order, but for semicolons and
    for brackets that are closed: a style may ask for them, and for ``const`` on the other side."""
    return _words(text) == _words(formatted)


def _words(text: bytes) -> tuple[Counter[bytes], list[int], list[bytes]]:
    found = scan(text)
    counted = Counter(_WORD.findall(found.code))
    open_ = [counted[one] - counted[other] for one, other in ((b"{", b"}"), (b"(", b")"))]
    for one in _FREE:
        del counted[one]
    directives = [b"".join(directive.text.replace(b"\\", b" ").split()) for directive in found.directives]
    return counted, open_, directives


def _changed(before: list[bytes], after: list[bytes]) -> set[int]:
    return {line for tag, _, _, k, m in _differences(before, after) if tag != "equal" for line in range(k, m)}


def _differences(before: list[bytes], after: list[bytes]) -> list[tuple[str, int, int, int, int]]:
    """Opcodes as of a SequenceMatcher; its time grows with the square of what it is given, so equal ends are set
    aside."""
    head = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    head = min(len(before), len(after)) if head is None else head
    most = min(len(before), len(after)) - head
    tail = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    inner = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False)
    middle = [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in inner.get_opcodes()]
    end = ("equal", len(before) - tail, len(before), len(after) - tail, len(after))
    return [("equal", 0, head, 0, head), *middle, end]
