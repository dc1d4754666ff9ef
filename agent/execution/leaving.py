"""What a process must not leave behind, also where it is ended from outside: temporary folders, and what it started.

The folders of a process bear its name, and those of its children begin with it. So whoever ends a process can clear up
after it, and a process that a signal ends can clear up after all that it started.
"""

import atexit
import contextlib
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

SCRATCH = "CUDA_LSP_SCRATCH"
"""In a child's environment: how its temporary folders are called."""

_NAME = re.compile(r"cuda-lsp-[0-9a-f]{16}(\.[0-9a-f]{8})*")
_given = os.environ.get(SCRATCH, "")
_own = _given if _NAME.fullmatch(_given) else f"cuda-lsp-{secrets.token_hex(8)}"
_ended = threading.Event()


def name_of_child() -> str:
    """A name for the folders of a process to be started, as the value of :data:`SCRATCH` in its environment."""
    return f"{_own}.{secrets.token_hex(4)}"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A private, empty folder that is gone afterwards, whatever ends this process. Raises OSError."""
    if _ended.is_set():
        threading.Event().wait()  # the process is being ended, and this thread with it
    place = Path(tempfile.gettempdir(), f"{_own}-{secrets.token_hex(4)}")
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@atexit.register
def discard(name: str = _own) -> None:
    """Remove the folders of a process by that name, and of all that it started."""
    with contextlib.suppress(OSError):
        for place in Path(tempfile.gettempdir()).glob(f"{name}*"):
            shutil.rmtree(place, ignore_errors=True)


def leave_nothing(last: bool = True) -> None:
    """End every process that this one started, and remove every folder. ``last``: the process does nothing more, so
    that none of its threads may begin anything."""
    if last:
        _ended.set()
    if sys.platform != "win32":
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    discard()


def running() -> tuple[int, ...]:
    """The processes of this system, as it lists them; some may be gone by the time they are looked at."""
    with contextlib.suppress(OSError):
        return tuple(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return ()


def descendants(pid: int) -> tuple[int, ...]:
    """Every process below one, parents first, by the system's own account; none where it keeps none (/proc)."""
    below: dict[int, list[int]] = {}
    for one in running():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # the name in the second field may hold anything but a last bracket
            parent = int(Path(f"/proc/{one}/stat").read_bytes().rpartition(b")")[2].split()[1])
            below.setdefault(parent, []).append(one)
    found = list(below.get(pid, ()))
    for one in found:
        found += below.get(one, ())
    return tuple(found)
