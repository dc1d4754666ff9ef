"""Source files on disk: which there are, what they include, which have a ``main``."""

import functools
import os
import re
from pathlib import Path

from agent.source.line_ends import with_newlines

SOURCES = frozenset({".cu", ".cpp", ".cc", ".cxx", ".c"})
MAX_BYTES = 4_000_000
MAX_FILES = 300
MAX_ENTRIES = 3_000
MAX_DEPTH = 3
_SKIPPED = frozenset({"build", "node_modules", "third_party", "external"})
MAIN = re.compile(rb"^[^\n/#\"]*\bmain\s*\(", re.M)
_INCLUDES = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]", re.M)


def read_text(path: str) -> bytes | None:
    """The bytes of a source file, lone ``\\r`` as ``\\n``; None for what is no text or cannot be read."""
    try:
        text = with_newlines(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
    return None if b"\0" in text or len(text) > MAX_BYTES else text


def absolute(path: str | Path) -> str:
    """A path by which a file is known, however it was named."""
    try:
        return str(Path(path).resolve())
    except (OSError, RuntimeError, ValueError):  # links in a ring
        return str(Path(path).absolute())


def stamp(path: str) -> tuple[int, int]:
    """What changes when a file does: its time and size."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size


def sources(folder: Path) -> tuple[str, ...]:
    """The source files of a folder and of those in it; none where there are too many to be one program's."""
    found: list[str] = []
    entries = 0
    for here, folders, files in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and name[0] != "." and depth < MAX_DEPTH)
        entries += len(files) + len(folders)
        named = [Path(here, name) for name in sorted(files) if Path(name).suffix in SOURCES]
        found += [str(path) for path in named if path.is_file()]  # who opens a pipe waits for its other end
        if entries > MAX_ENTRIES or len(found) > MAX_FILES:
            return ()
    return tuple(found)


def has_main(path: str) -> bool:
    """Whether a program begins in a file."""
    return _scanned(path, stamp(path))[0]


def closure(path: str) -> frozenset[str]:
    """A source file and what it includes, in turn, from the files beside each."""
    found: set[str] = set()
    waiting = [path]
    while waiting and len(found) < MAX_FILES:
        here = waiting.pop()
        if here in found:
            continue
        found.add(here)
        for name in _scanned(here, stamp(here))[1]:
            place = Path(here).parent / name
            if place.is_file():
                waiting.append(absolute(place))
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def _scanned(path: str, _stamp: tuple[int, int]) -> tuple[bool, tuple[str, ...]]:
    """Whether a file has a ``main``, and what it includes."""
    text = read_text(path) or b""
    if len(text) > MAX_BYTES:
        return False, ()
    names = tuple(name.decode("utf-8", "replace") for name in _INCLUDES.findall(text))
    return bool(MAIN.search(text)), names
