"""What was read off the files of a folder, kept in the user's cache: one shelf for each folder.

A shelf is written whole and renamed into place; one that is damaged or of another version is as if it were not there. A
disk that is full or cannot be written costs the time to read the files again.
"""

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

import platformdirs
from attrs import field, frozen

from agent.execution import kept
from agent.execution.wire import WireError
from cuda_lsp.indexing.files import Stamp

SCHEMA = 3
"""Raised when what is read off a file changes."""
ON_DISK = 256 << 20


@frozen
class Record:
    """What is known of one file on disk."""

    stamp: Stamp
    facts: bytes = field(repr=False)
    rows: bytes = field(repr=False)


@frozen
class Kept:
    name: str
    record: Record


@frozen
class Shelf:
    schema: int
    folder: str
    files: tuple[Kept, ...]


def place() -> Path:
    return Path(platformdirs.user_cache_dir("cuda-lsp", appauthor=False)) / "index"


def load(folder: str) -> dict[str, Record]:
    """By name, what is kept of a folder's files. Of those that were young when they were read, nothing."""
    with contextlib.suppress(RuntimeError, WireError):  # no home
        shelf = kept.read(_file(folder), Shelf)
        if shelf is not None and (shelf.schema, shelf.folder) == (SCHEMA, folder):
            return {one.name: one.record for one in shelf.files if not one.record.stamp.young}
    return {}


def save(folder: str, records: Iterable[tuple[str, Record]]) -> None:
    shelf = Shelf(SCHEMA, folder, tuple(Kept(name, record) for name, record in records))
    with contextlib.suppress(OSError, RuntimeError):
        if shelf.files:
            kept.write(_file(folder), shelf)
        else:
            _file(folder).unlink(missing_ok=True)


def prune() -> None:
    with contextlib.suppress(OSError, RuntimeError):
        kept.prune(place(), ON_DISK)


def _file(folder: str) -> Path:
    name = hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return place() / f"{name}.shelf"
