"""From paths to the files to look at, in an order that does not change from run to run, and one at a time."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

CUDA = frozenset((".cu", ".cuh"))
HEADERS = frozenset((".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tpp"))
"""Looked at only where they hold a kernel."""


@frozen
class Problem:
    """A file or a folder that could not be looked at, and why."""

    path: str
    message: str


@frozen
class Left:
    """What is there and was passed over on purpose, and why."""

    path: str
    reason: str


LINK = "symbolic links, which were not followed (name one to look at it)"
"""None is, so that a loop has no end to find and no file comes twice."""
EXCLUDED = "named paths that a pattern excludes"


Excludes = Callable[[str, bool, bool], bool]
"""Whether an absolute path is excluded: (path, is a folder, was named)."""


def walk(paths: Iterable[str], excludes: Excludes) -> Iterator[str | Problem | Left]:
    """The files of ``paths``, each once: the files of a folder by name, then its folders. What was named is looked at
    whatever its suffix is."""
    seen: set[str] = set()
    for path in paths:
        top, real = os.path.normpath(path), ""
        for found in _named(path, excludes):
            if isinstance(found, str):
                real = real or os.path.realpath(top)  # below it no link is followed
                place = _below_real(found, top, real)
            else:
                place = found.path
            if place not in seen:
                seen.add(place)
                yield found


def _below_real(path: str, top: str, real: str) -> str:
    """What ``os.path.realpath`` gives for a path below ``top``; that asks for each folder on the way to each file."""
    below = path if top == os.curdir else path[len(top) :].lstrip(os.sep)
    return os.path.join(real, below) if below else real  # noqa: PTH118


def _named(path: str, excludes: Excludes) -> Iterator[str | Problem | Left]:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError) as error:
        yield Problem(path, _words(error))
        return
    if excludes(os.path.abspath(path), stat.S_ISDIR(mode), True):  # noqa: PTH100
        yield Left(path, EXCLUDED)
    elif stat.S_ISDIR(mode):
        yield from _below(os.path.normpath(path), excludes)
    elif stat.S_ISREG(mode):
        yield os.path.normpath(path)
    else:
        yield Problem(path, "is neither a file nor a folder")


def _below(top: str, excludes: Excludes) -> Iterator[str | Problem | Left]:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield Problem(folder, _words(error))
            continue
        inner = []
        for entry in listed:
            path = entry.name if folder == os.curdir else entry.path
            is_folder = entry.is_dir(follow_symlinks=False)
            known = os.path.splitext(entry.name)[1].lower() in CUDA | HEADERS  # noqa: PTH122
            if not (is_folder or known or entry.is_symlink()) or excludes(os.path.abspath(path), is_folder, False):  # noqa: PTH100
                continue
            if entry.is_symlink():
                if known or _is_folder(entry):
                    yield Left(path, LINK)
            elif is_folder:
                inner.append(path)
            elif entry.is_file():
                yield path
        waiting += reversed(inner)


def _is_folder(link: os.DirEntry[str]) -> bool:
    """Whether a link leads to a folder, or round and round."""
    try:
        return link.is_dir()
    except OSError:
        return True


def _words(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    reason = error.strerror if isinstance(error, OSError) else "that is no file name"
    return f"cannot be read: {reason or error}"
