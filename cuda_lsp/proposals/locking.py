"""One writer at a time among several servers of one user."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PATIENCE = 2.0
"""Seconds. A write takes milliseconds: a lock that is held longer is not waited for, and the last writer wins."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. It is the operating system's, so that a process that dies holds nothing. Raises
    OSError where the folder cannot be written."""
    with (folder / ".lock").open("ab") as file:
        deadline = time.monotonic() + PATIENCE
        while not _taken(file) and time.monotonic() < deadline:
            time.sleep(0.005)
        yield  # closing the file lets the lock go


def _taken(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
