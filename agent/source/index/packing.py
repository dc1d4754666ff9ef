"""Facts as bytes and back. An index holds thousands of files this way, in a tenth of the memory, and on disk."""

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import field, frozen

from agent.source.index.facts import OUTSIDE, Definition, Facts, Mention
from agent.source.span import Span

_LENGTH = struct.Struct("<I")
_FIELDS = 7


@frozen
class Summary:
    """What an index asks of every file: read without the rest."""

    mentioned: frozenset[str]
    sure: frozenset[str]
    """Those that are mentioned where they surely mean something."""
    defined: frozenset[str]
    includes: tuple[str, ...]
    usings: tuple[str, ...] = ()


@frozen(eq=False)
class _Words:
    """Each word once, and by its place."""

    places: dict[str, int] = field(factory=dict)

    def place(self, word: str) -> int:
        return self.places.setdefault(word, len(self.places))


def pack(facts: Facts) -> bytes:
    words = _Words()
    sure = len({words.place(mention.name) for mention in facts.mentions if mention.sure})
    names = len({words.place(mention.name) for mention in facts.mentions} | set(range(sure)))
    numbers: list[int] = []
    for one in facts.mentions:
        texts = words.place(one.name), words.place(one.qualifier), words.place(one.how), words.place(one.within)
        numbers += (*texts, one.span.start, one.span.end, one.inside - OUTSIDE)
    definitions = [_as_row(one) for one in facts.definitions]
    told = [sure, names, list(words.places), definitions, facts.includes, facts.usings]
    head = json.dumps(told, separators=(",", ":")).encode()
    return _LENGTH.pack(len(head)) + head + struct.pack(f"<{len(numbers)}I", *numbers)


def unpack(packed: bytes) -> Facts:
    """Raises ValueError for what :func:`pack` did not write."""
    try:
        _, _, words, definitions, includes, usings = _head(packed)
        mentions = tuple(_mentions(words, _numbers(packed)))
        return Facts(tuple(map(_definition, definitions)), mentions, tuple(includes), tuple(usings))
    except (struct.error, IndexError, TypeError, KeyError) as error:
        raise ValueError(f"no packed facts: {error}") from error


def summary(packed: bytes) -> Summary:
    """Raises ValueError as :func:`unpack` does."""
    try:
        sure, names, words, definitions, includes, usings = _head(packed)
        defined = frozenset(row[0] for row in definitions)
        return Summary(frozenset(words[:names]), frozenset(words[:sure]), defined, tuple(includes), tuple(usings))
    except (struct.error, IndexError, TypeError, KeyError) as error:
        raise ValueError(f"no packed facts: {error}") from error


def _head(packed: bytes) -> Any:
    (length,) = _LENGTH.unpack_from(packed)
    return json.loads(packed[_LENGTH.size : _LENGTH.size + length])


def _numbers(packed: bytes) -> Iterable[tuple[int, ...]]:
    start = _LENGTH.size + _LENGTH.unpack_from(packed)[0]
    return struct.iter_unpack(f"<{_FIELDS}I", packed[start:])


def _mentions(words: list[str], numbers: Iterable[tuple[int, ...]]) -> Iterator[Mention]:
    for name, qualifier, how, within, start, end, inside in numbers:
        yield Mention(words[name], words[qualifier], words[how], Span(start, end), words[within], inside + OUTSIDE)


def _as_row(one: Definition) -> list[Any]:
    places = (one.span.start, one.span.end, one.extent.start, one.extent.end)
    return [one.name, one.qualified, one.kind, *places, one.head, one.whole, one.launches]


def _definition(row: list[Any]) -> Definition:
    name, qualified, kind, start, end, first, last, head, whole, launches = row
    return Definition(name, qualified, kind, Span(start, end), Span(first, last), head, whole, launches)
