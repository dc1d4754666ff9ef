"""The files of a workspace that the index is about, and their texts. Nothing outside its folders is read."""

import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp.terminal.hints.exclude import SKIPPED, Pattern, excluded, patterns
from cuda_lsp.terminal.hints.walk import Left, Problem, walk

LARGEST = 2 << 20
"""Bytes of a file that is still read: what is longer was written by a program."""
_IGNORES = 1 << 16
"""Bytes of a ``.gitignore``."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@frozen
class Stamp:
    """A file as it was when it was read. Of one that was ``young`` then, another text may have the same time."""

    modified: int
    size: int
    young: bool = False


class Unread(Exception):
    """A file that is not read; the message says why."""


def found(folders: Sequence[str]) -> Iterator[str | Problem]:
    """The files of the folders, each once, and what could not be looked at. No link is followed; what a ``.gitignore``
    of the workspace excludes is passed over, and so are folders of builds and of other people's code."""
    excludes = _excludes(folders)
    for one in walk(folders, excludes):
        if not isinstance(one, Left):
            yield one


def _excludes(folders: Sequence[str]) -> Callable[[str, bool, bool], bool]:
    roots = {os.path.normpath(folder) for folder in folders}
    known: dict[str, tuple[Pattern, ...]] = {}

    def of(folder: str) -> tuple[Pattern, ...]:
        """What holds in a folder: what holds around it, then its own."""
        if folder not in known:
            above = patterns(SKIPPED, folder) if folder in roots else of(os.path.dirname(folder))  # noqa: PTH120
            known[folder] = (*above, *_ignored(folder))
        return known[folder]

    # a folder that was named is looked through, whatever it is called
    return lambda path, is_folder, named: not named and excluded(path, is_folder, of(os.path.dirname(path)))  # noqa: PTH120


def _ignored(folder: str) -> Iterator[Pattern]:
    try:
        with (Path(folder) / ".gitignore").open("rb") as file:
            lines = file.read(_IGNORES).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        if line.strip() and not line.startswith("#") and "\\" not in line:
            try:
                yield from patterns([line.rstrip()], folder)
            except ValueError:
                continue  # what means nothing excludes nothing


def stamp(path: str, now: int) -> Stamp:
    """Raises OSError where it is gone."""
    status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
    return Stamp(status.st_mtime_ns, status.st_size, now - status.st_mtime_ns < 2_000_000_000)


def read(path: str) -> bytes:
    """A file's text in UTF-8, as an editor shows it. Raises Unread."""
    try:
        # another process may have put a pipe or a link there since
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise Unread(f"longer than {LARGEST >> 20} MiB")
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Unread(f"cannot be read ({error.strerror or error})") from error
    return as_utf8(data)


def as_utf8(data: bytes) -> bytes:
    """Raises Unread for what is no text. A mark at the beginning is no part of it; what is not UTF-8 is taken for
    Latin-1, in which each byte is one character."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode()
    if b"\0" in data:
        raise Unread("a binary file")
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1").encode()
    return data


_SLASHES = re.compile(r"[/\\]+\Z")


def folder_path(path: str) -> str:
    """A folder as its files' paths begin."""
    return os.path.normpath(_SLASHES.sub("", path) or os.sep)
