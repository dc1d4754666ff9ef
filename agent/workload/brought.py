"""What a command line brings in by files: response files, and headers that ``-include`` puts before the source.

They are the build's, and as hostile as it: only files of the project are read, up to a size, each once.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from attrs import define, field

from agent.source.lexing import Macro, macro_of, scan
from agent.source.line_ends import with_newlines
from agent.workload.joined.conditionals import BuildFlag
from agent.workload.joined.files import absolute, read_text
from agent.workload.joined.joining import join

LARGEST = 1 << 20
"""Bytes of one file."""
_MOST_WORDS = 20_000
_MOST_FILES = 64
_RESPONSE = ("--options-file", "-optf")
_OWN = ("cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h")
"""What nvcc includes by itself."""


@define
class Bringing:
    """``roots`` are the folders whose files may be read, ``folder`` the one that relative names are of. ``left_out``
    says what was not taken and why; ``read`` what was."""

    folder: Path
    roots: Sequence[Path]
    left_out: list[str] = field(factory=list)
    read: list[Path] = field(factory=list)
    _words: int = 0

    def expanded(self, words: Sequence[str], within: tuple[Path, ...] = ()) -> Iterator[str]:
        """The words with those of every response file in its place. A file within itself is left out."""
        rest = iter(words)
        for word in rest:
            names = self._responses(word, rest)
            if names is None:
                self._words += 1
                if self._words <= _MOST_WORDS:
                    yield word
                continue
            for name in names:
                place = self._place(name, f"@{name}", [self.folder])
                if place is None:
                    continue
                if place in within:
                    self.left_out.append(f"@{name} (it names itself)")
                    continue
                yield from self.expanded(_split(self._text(place)), (*within, place))

    def macros(self, names: Sequence[str], folders: Sequence[str], flags: dict[str, str | None]) -> Iterator[str]:
        """Flags that define what the headers ``names`` define. What they declare is not taken."""
        for name in names:
            if name in _OWN:
                continue
            shown = f"-include {name}"
            place = self._place(name, shown, [self.folder, *map(Path, folders)])
            if place is None:
                continue
            text = with_newlines(self._text(place).encode("utf-8", "surrogateescape"))
            if scan(text).code.strip():
                self.left_out.append(f"{shown} (its macros are taken, what it declares is not)")
            yield from _defined(place, folders, flags)

    def _responses(self, word: str, rest: Iterator[str]) -> list[str] | None:
        """The response files that a word names, with the next where it takes one."""
        if word.startswith("@") and len(word) > 1:
            return [word[1:]]
        name, sign, value = word.partition("=")
        if name in _RESPONSE:
            return (value if sign else next(rest, "")).split(",")
        return None

    def _place(self, name: str, shown: str, folders: Sequence[Path]) -> Path | None:
        """The file of that name, if it may be read."""
        try:
            found = next((one for folder in folders if (one := Path(folder, name)).is_file()), None)
            real = found.resolve() if found is not None else None
            if real is None:
                reason = "not there"
            elif not any(real.is_relative_to(root) for root in self.roots):
                reason = "outside the project"
            elif len(self.read) >= _MOST_FILES:
                reason = f"more than {_MOST_FILES} files"
            elif real.stat().st_size > LARGEST:
                reason = f"larger than {LARGEST >> 20} MB"
            else:
                self.read.append(real)
                return real
        except (OSError, ValueError, RuntimeError):
            reason = "cannot be read"
        self.left_out.append(f"{shown[:80]} ({reason})")
        return None

    def _text(self, place: Path) -> str:
        try:
            return place.read_bytes()[:LARGEST].decode("utf-8", "surrogateescape")
        except OSError:
            return ""


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, posix=os.name != "nt")
    except ValueError:  # a quote without its end
        return []


def _defined(place: Path, folders: Sequence[str], flags: dict[str, str | None]) -> Iterator[str]:
    """What is defined at the end of a header, of its own local headers too. A guard's name is not: the source may
    include the header once more."""
    given = {name: BuildFlag(name, body, "", True, stated=True) for name, body in flags.items() if body is not None}
    stub = str(place.parent / "forced.cu")
    joined = join([(stub, f'#include "{place.name}"\n'.encode())], given, tuple(folders))
    texts = [read_text(path) or b"" for path in {one.path for one in joined.places} - {absolute(stub)}]
    for name, found in joined.macros.items():
        last = found[-1]
        if last.macro is not None and last.certain and not _guards(last.macro, texts):
            yield _flag(last.macro)
        elif last.macro is None and name in given:
            yield f"-U{name}"


def _guards(macro: Macro, texts: Sequence[bytes]) -> bool:
    if macro.body:
        return False
    return any(
        first.keyword == "ifndef" and first.text.split()[-1:] == [macro.name.encode()] and macro_of(second) == macro
        for found in (scan(text).directives for text in texts)
        for first, second in pairwise(found)
    )


def _flag(macro: Macro) -> str:
    parameters = f"({macro.parameters})" if macro.parameters is not None else ""
    return f"-D{macro.name}{parameters}={' '.join(macro.body.split())}"
