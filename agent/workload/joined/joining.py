"""The files of a program as one text: local headers in the place of their ``#include``, branches of ``#if`` that are
not compiled blanked, and where each line came from."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field, frozen

from agent.source.includes import header_path
from agent.source.lexing import Directive, scan, spaces
from agent.workload.joined.conditionals import BuildFlag, Conditionals, Definition
from agent.workload.joined.files import MAX_BYTES, MAX_FILES, absolute, read_text

_INCLUDE = re.compile(rb"#\s*include\s*([\"<])([^\">\n]+)[\">]")


@frozen
class Place:
    """From line ``first`` of the joined text on, lines are those of ``path`` from ``line`` on. ``offset`` is where the
    joined line begins, ``root`` the file that is compiled: itself or the one that includes it."""

    first: int
    offset: int
    path: str
    line: int
    root: str


@frozen
class Joined:
    """``text`` of all files, ``places`` in order, what every macro meant where, and the flags of the build."""

    text: bytes
    places: tuple[Place, ...]
    macros: Mapping[str, tuple[Definition, ...]]
    flags: Mapping[str, BuildFlag]

    def place(self, line: int) -> tuple[str, int]:
        """File and line of a joined line."""
        held = self.places[max(0, bisect_right(self.places, line, key=lambda place: place.first) - 1)]
        return held.path, held.line + line - held.first

    def root(self, offset: int) -> str:
        """The file with which the text at an offset is compiled."""
        return self.places[max(0, bisect_right(self.places, offset, key=lambda place: place.offset) - 1)].root

    def macro(self, name: str, offset: int) -> Definition | None:
        """What a name means to the preprocessor at an offset."""
        found = self.macros.get(name, ())
        at = bisect_right(found, offset, key=lambda one: one.offset)
        return found[at - 1] if at else None


@define
class _Joiner:
    conditionals: Conditionals
    pieces: list[bytes] = field(factory=list)
    places: list[Place] = field(factory=list)
    folders: tuple[str, ...] = ()
    given: Mapping[str, bytes] = field(factory=dict)
    done: set[str] = field(factory=set)
    length: int = 0
    line: int = 1
    root: str = ""
    complete: bool = True

    def emit(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.length += len(piece)
        self.line += piece.count(b"\n")

    def enter(self, path: str, line: int) -> None:
        self.places.append(Place(self.line, self.length, path, line, self.root))

    def file(self, text: bytes, path: str) -> None:
        """One file with what it includes. Each file is taken once, as with an include guard."""
        self.done.add(absolute(path))
        self.enter(path, 1)
        at, depth = 0, len(self.conditionals.frames)
        directives = scan(text).directives
        for index, directive in enumerate(directives):
            self._code(text[at : directive.span.start])
            at = directive.span.end
            following = directives[index + 1] if index + 1 < len(directives) else None
            active = self.conditionals.active
            self.emit(self.conditionals.directive(directive, self.length, following))
            if active and directive.keyword == "include":
                self._include(directive, path, 1 + text.count(b"\n", 0, at))
        self._code(text[at:])
        del self.conditionals.frames[depth:]

    def leave(self) -> None:
        """What a compiled file defines itself means nothing in the next; headers, taken once, stay."""
        for found in self.conditionals.history.values():
            at = bisect_right(self.places, found[-1].offset, key=lambda place: place.offset) - 1
            if found[-1].macro is not None and self.places[at].path == self.root:
                found.append(Definition(self.length, None))

    def _code(self, piece: bytes) -> None:
        self.emit(piece if self.conditionals.active else spaces(piece))

    def _include(self, directive: Directive, path: str, line: int) -> None:
        named = _INCLUDE.match(directive.text)
        if named is None:
            return
        place = header_path(
            named[2].decode("utf-8", "replace"), named[1] == b'"', path, (str(Path(self.root).parent), *self.folders)
        )
        if isinstance(place, str) or absolute(place) in self.done:
            return
        text = self.given.get(absolute(place)) or read_text(str(place))
        if text is None or self.length > MAX_BYTES or len(self.done) > MAX_FILES:
            self.complete = False
            return
        self.emit(b"\n")
        self.file(text, absolute(place))
        self.emit(b"\n")
        self.enter(path, line)


def join(
    files: list[tuple[str, bytes]],
    flags: Mapping[str, BuildFlag],
    folders: tuple[str, ...] = (),
    given: Mapping[str, bytes] | None = None,
) -> Joined:
    """The text of a program that is compiled from ``files`` (absolute path and text), in this order; headers are looked
    for beside each file, beside the one that is compiled, and in ``folders``. ``given`` are texts of an editor."""
    joiner = _Joiner(Conditionals(flags), folders=folders, given=given or {})
    for path, text in files:
        if absolute(path) in joiner.done:
            continue
        joiner.root = path
        joiner.conditionals.frames.clear()
        joiner.file(text, path)
        joiner.emit(b"\n")
        joiner.leave()
    told = {name: tuple(found) for name, found in joiner.conditionals.history.items()}
    return Joined(b"".join(joiner.pieces), tuple(joiner.places), told, flags)
