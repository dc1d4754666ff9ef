"""The files of a project around one of them: headers that lie elsewhere in it, and the files that include a header.

A header is read as the file that includes it sees it, and a build knows include folders that nobody tells us: both can
be found by looking through the workspace. Only folders that a project marks are looked through, hidden ones are not,
links are not followed, and what was found is remembered for some seconds: it is asked for at every pause in typing.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from agent.source.line_ends import with_newlines

_MARKS = (".git", ".cuda-lsp.toml")
_SUFFIXES = frozenset(
    (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tpp", ".def", ".c", ".cc", ".cpp", ".cxx")
)
_LEFT_OUT = frozenset(("node_modules", "build", "__pycache__"))
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_MOST_FILES = 30_000
_LARGEST = 4 << 20
_SECONDS = 20.0
_PATIENCE = 50.0
"""A workspace that takes long to look through is looked through less often."""
_MOST_ROOTS = 32
_DEPTH = 8
_MOST_INCLUDERS = 200


@frozen(eq=False)
class Listing:
    """``named`` are the files by their bare names. ``included`` (found when first asked for) tells for the bare name of
    a header which files have an ``#include`` of it, each with the name as it is written there."""

    named: Mapping[str, tuple[Path, ...]]
    ends: float
    included: dict[str, list[tuple[Path, str]]] = field(factory=dict)


_listings: dict[Path, Listing] = {}
_includes: dict[tuple[str, int, int], tuple[str, ...]] = {}


def root_of(path: str) -> Path | None:
    """The nearest folder above a file that a project marks."""
    folder = Path(path).resolve().parent
    return next((above for above in (folder, *folder.parents) if any((above / m).exists() for m in _MARKS)), None)


def elsewhere(name: str, includer: str) -> Path | None:
    """The file of the workspace that ``#include "name"`` most likely means where no include folder is known: its path
    ends with the name, and of several it is the one that lies nearest. None where there is none."""
    root = root_of(includer) if includer else None
    if root is None:
        return None
    wanted = _parts(name)
    if not wanted:
        return None
    named = _listing(root).named.get(wanted[-1], ())
    found = [file for file in named if file.parts[-len(wanted) :] == wanted and file.resolve().is_relative_to(root)]
    folder = Path(includer).resolve().parent
    return min(found, key=lambda file: (-_shared(file, folder), len(file.parts), str(file)), default=None)


def includers(path: str) -> tuple[Path, ...]:
    """The ``.cu`` files of the workspace that include a file, directly or through headers; the nearest first."""
    root = root_of(path) if path else None
    if root is None:
        return ()
    listing = _listing(root)
    if not listing.included:
        _read_includes(listing)
    start = Path(path).resolve()
    seen, level, found = {start}, [start], []
    for _ in range(_DEPTH):
        above = [file for file in dict.fromkeys(_direct(level, listing)) if file not in seen]
        found += [file for file in above if file.suffix == ".cu"]
        seen.update(above)
        level = above
        if not level or len(seen) > _MOST_INCLUDERS:
            break
    return tuple(sorted(found, key=lambda file: (-_shared(file, start.parent), str(file))))


def _direct(files: Sequence[Path], listing: Listing) -> Iterator[Path]:
    for file in files:
        for includer, written in listing.included.get(file.name, ()):
            beside = Path(os.path.normpath(includer.parent / written))
            if beside == file or (file.parts[-len(_parts(written)) :] == _parts(written) and not beside.is_file()):
                yield includer


def _parts(name: str) -> tuple[str, ...]:
    """The folders and the name of a header as it is written, without the steps up."""
    return tuple(part for part in Path(name).parts if part not in ("..", ".", "/"))


def _shared(file: Path, folder: Path) -> int:
    """How many folders two paths have in common."""
    pairs = enumerate(zip(file.parts, folder.parts, strict=False))
    return next((place for place, (one, other) in pairs if one != other), len(folder.parts))


def _listing(root: Path) -> Listing:
    known = _listings.get(root)
    start = time.monotonic()
    if known is not None and start < known.ends:
        return known
    named: dict[str, list[Path]] = {}
    for place, file in enumerate(_files(root)):
        if place >= _MOST_FILES:
            break
        named.setdefault(file.name, []).append(file)
    if len(_listings) >= _MOST_ROOTS:
        _listings.clear()
    ends = start + max(_SECONDS, _PATIENCE * (time.monotonic() - start))
    made = Listing({name: tuple(sorted(files)) for name, files in named.items()}, ends)
    _listings[root] = made
    return made


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in names:
            if os.path.splitext(name)[1] in _SUFFIXES:  # noqa: PTH122 (ten times as fast)
                yield Path(folder, name)


def _read_includes(listing: Listing) -> None:
    for files in listing.named.values():
        for file in files:
            for written in _included(file):
                listing.included.setdefault(written.rpartition("/")[2], []).append((file, written))


def _included(file: Path) -> tuple[str, ...]:
    """The names that a file includes; a file that has not changed is not read again."""
    try:
        stat = file.stat()
        key = (str(file), stat.st_mtime_ns, stat.st_size)
        if key not in _includes:
            if len(_includes) > 2 * _MOST_FILES:
                _includes.clear()
            text = with_newlines(file.read_bytes()) if stat.st_size <= _LARGEST and not file.is_symlink() else b""
            _includes[key] = tuple(name.decode("utf-8", "replace") for name in _INCLUDE.findall(text))
        return _includes[key]
    except OSError:
        return ()
