"""What the headers of a file's own project say to its kernels: numbers, formulas, structs.

Nobody reads files between two keys. :func:`learn` reads headers where there is time, before all kernels of a file are
looked at (after a pause, on the command line), and :func:`learned` says at any time what is known of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agent.analysis.file import FileFacts, alone, joined
from agent.source.document import Document
from agent.source.includes import header_path, known

MOST = 48
"""Headers of one file: with more, a project's numbers are no longer its own."""
LARGEST = 1 << 20
"""Bytes of all of them together."""
_REMEMBERED = 512
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)

_State = tuple[str, int, int]
_facts: dict[_State, FileFacts] = {}
_learned: dict[str, FileFacts] = {}


def learn(document: Document) -> None:
    """Read the headers that a file includes, and those that they do, as far as they lie in its workspace. What cannot
    be read is left out: less is known then."""
    if not document.path:
        return
    found = [facts for state, header in _headers(document) if (facts := _facts_of(state, header)).items]
    if len(_learned) >= _REMEMBERED:
        _learned.clear()
    _learned[document.path] = joined(*found) if found else _NOTHING


def learned(document: Document, own: FileFacts) -> FileFacts:
    """What a file says, ``own``, and what was learned of its headers."""
    around = _learned.get(document.path, _NOTHING)
    return joined(around, own) if around.items else own


def _headers(document: Document) -> Iterator[tuple[_State, Document]]:
    """Each header once, those of a header before itself, with what tells whether it changed."""
    seen: set[Path] = set()
    bytes_left = [LARGEST]

    def inside(includer: Document) -> Iterator[tuple[_State, Document]]:
        for match in _INCLUDE.finditer(includer.text):
            place = header_path(match[1].decode(errors="replace"), True, includer.path, ())
            if isinstance(place, str) or place in seen or len(seen) >= MOST:
                continue
            seen.add(place)
            header = known(place)
            if header is None or len(header.text) > bytes_left[0]:
                continue
            bytes_left[0] -= len(header.text)
            yield from inside(header)
            yield (str(place), place.stat().st_mtime_ns, len(header.text)), header

    yield from inside(document)


def _facts_of(state: _State, header: Document) -> FileFacts:
    if state not in _facts:
        if len(_facts) >= _REMEMBERED:
            _facts.clear()
        _facts[state] = alone(header)
    return _facts[state]


_NOTHING = FileFacts({}, frozenset(), frozenset(), frozenset())
