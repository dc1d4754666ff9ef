"""The files of a workspace that the index is about, and their texts. Nothing outside its folders is read."""

import codecs
import contextlib
import os
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp.terminal.hints.exclude import SKIPPED, Pattern, excluded, patterns
from cuda_lsp.terminal.hints.walk import Left, Problem, walk

LARGEST = 2 << 20
"""Bytes of a file that is still read: what is longer was written by a program."""
MOST_FOLDERS = 200_000
"""Folders that are looked into: whoever opens the root of a disk does not mean all of it."""
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


class Looking:
    """The files of some folders, and what could not be looked at. They are looked for in a thread: in a large tree the
    next may be far, and questions come meanwhile. No link is followed; what a ``.gitignore`` of the workspace excludes
    is passed over, and so are folders of builds and of other people's code."""

    def __init__(self, folders: Sequence[str], most_folders: int = MOST_FOLDERS) -> None:
        self._folders = [folder_path(folder) for folder in folders]
        self._most = most_folders
        self._patterns: dict[str, tuple[Pattern, ...]] = {}
        self._found: queue.SimpleQueue[str | Problem | None] = queue.SimpleQueue()
        self._looked_into = 0
        self._stopped = False
        threading.Thread(target=self._look, name="cuda-lsp looking", daemon=True).start()

    def next(self, seconds: float) -> str | Problem | None:
        """The next, each file once; None at the end. Raises queue.Empty where none is found in so many seconds."""
        return self._found.get(timeout=max(seconds, 0.001))

    def stop(self) -> None:
        self._stopped = True

    def _look(self) -> None:
        with contextlib.suppress(_Stopped):
            for one in walk(self._folders, self._excludes):
                if not isinstance(one, Left):
                    self._found.put(one)
            if self._looked_into > self._most:
                self._found.put(Problem("", f"there are more than {self._most} folders: the rest is not in the index"))
        self._found.put(None)

    def _excludes(self, path: str, is_folder: bool, named: bool) -> bool:
        if self._stopped:
            raise _Stopped
        if named:
            return False  # a folder that was opened is looked through, whatever it is called
        if excluded(path, is_folder, self._in(os.path.dirname(path))):  # noqa: PTH120
            return True
        self._looked_into += is_folder
        return is_folder and self._looked_into > self._most

    def _in(self, folder: str) -> tuple[Pattern, ...]:
        """What holds in a folder: what holds around it, then its own."""
        if folder not in self._patterns:
            is_top = folder in self._folders
            above = patterns(SKIPPED, folder) if is_top else self._in(os.path.dirname(folder))  # noqa: PTH120
            self._patterns[folder] = (*above, *_ignored(folder))
        return self._patterns[folder]


class _Stopped(Exception):
    """Nobody waits for the rest."""


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
