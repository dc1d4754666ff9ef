"""One lock for each card, across processes and users: many may run at once, but who times is alone."""

import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from agent.execution.process import never

LONG = 2.0
"""Seconds of waiting that are worth a word."""


class LockCancelled(Exception):
    """The caller no longer wants the card."""


def folder() -> Path:
    """One for all users and editors of a machine, whatever their environments call their own."""
    common = Path("/tmp")
    return common if sys.platform == "linux" and common.is_dir() else Path(tempfile.gettempdir())


def place(address: str, kind: str = "gpu") -> Path:
    """The lock file of the card at this PCI address; ``gate`` is the one that everybody goes through to it."""
    return folder() / f"cuda-lsp-{kind}-{re.sub(r'[^0-9A-Za-z]', '-', address) or 'unknown'}.lock"


@contextlib.contextmanager
def held(address: str, alone: bool, cancelled: Callable[[], bool] = never) -> Iterator[str]:
    """Hold the card, ``alone`` or among others that only run. Gives a note where the platform has no such locks or the
    file cannot be opened: then nothing keeps others away. Raises LockCancelled.

    Who had to wait is told how long. Who waits to be alone keeps the gate shut behind itself: those that only run come
    and go all the time, and would never all be gone.
    """
    if sys.platform == "win32":
        yield "other processes were not kept off the card: this platform has no shared file locks"
        return
    with contextlib.ExitStack() as stack:
        file = _open(place(address), stack)
        if file is None:
            yield f"other processes were not kept off the card: {place(address)} cannot be opened"
            return
        begun = time.monotonic()
        with contextlib.ExitStack() as passage:
            gate = _open(place(address, "gate"), passage)
            if gate is not None:
                _wait(gate, alone, cancelled)
            _wait(file, alone, cancelled)
        waited = time.monotonic() - begun
        yield f"waited {waited:.0f} s for another process that had the card" if waited >= LONG else ""


def _open(path: Path, stack: contextlib.ExitStack) -> "IO[bytes] | None":
    with contextlib.suppress(OSError):
        if not path.exists():
            path.touch(mode=0o666)
            path.chmod(0o666)
    with contextlib.suppress(OSError):
        return stack.enter_context(path.open("rb"))
    return None


def _wait(file: "IO[bytes]", alone: bool, cancelled: Callable[[], bool]) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        if cancelled():
            raise LockCancelled
        time.sleep(0.02)
