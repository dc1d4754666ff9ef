"""Contents kept in files: what a buffer held when a launch of the user's own program was captured.

A directive names contents by their hash and by nothing else (``data(9f86d081884c7d659a2feaa0c55ad015)``). They lie in
one private folder of the user's; so no directive can make any other file be read, and contents that were changed since
are never taken for those that were captured.
"""

import functools
import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import platformdirs

from agent.workload.errors import WorkloadError

DIGEST = re.compile(r"[0-9a-f]{32}")
"""The first half of a SHA-256, in hexadecimal digits."""

_CHUNK = 1 << 22


def folder() -> Path:
    """``$XDG_STATE_HOME/cuda-lsp/captured``, or ``~/.local/state/cuda-lsp/captured`` on Linux."""
    return Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "captured"


def digest(file: IO[bytes]) -> str:
    """What names the rest of an open file."""
    made = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        made.update(chunk)
    return made.hexdigest()[:32]


def keep(path: Path) -> str:
    """Add a file's contents to the folder; gives what names them. A file of the same disk takes no more room there.
    Raises OSError where there is no room, or no right to write."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("rb") as source:
        name = digest(source)
        target = place / f"{name}.bin"
        if target.is_file() and target.stat().st_size == path.stat().st_size:
            return name
        with tempfile.TemporaryDirectory(dir=place, prefix=".") as beside:
            part = Path(beside) / target.name
            source.seek(0)
            _fill(part, path, source)
            part.chmod(0o400)
            part.replace(target)
    return name


def _fill(part: Path, path: Path, source: IO[bytes]) -> None:
    try:
        part.hardlink_to(path)
    except OSError:  # another disk, or one that knows no links
        with part.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)


def find(name: str, buffer: str) -> Path:
    """The file that holds the contents ``name`` of ``buffer``. Raises WorkloadError where there is none."""
    path = folder() / f"{name}.bin"
    if not DIGEST.fullmatch(name) or not path.is_file():
        raise WorkloadError(
            f"the captured contents {name} of `{buffer}` are not on this machine ({folder()}); capture the launch "
            "again (`cuda-lsp capture`), or state a domain such as `normal` instead"
        )
    return path


def size(name: str, buffer: str) -> int:
    """Bytes of the contents. Raises WorkloadError."""
    return find(name, buffer).stat().st_size


def load(name: str, buffer: str) -> npt.NDArray[np.uint8]:
    """The contents, mapped and not to be written. Raises WorkloadError where they are missing or not those that were
    captured."""
    path = find(name, buffer)
    try:
        found = path.stat()
        return _mapped(path, name, found.st_size, found.st_mtime_ns)
    except OSError as error:
        raise WorkloadError(f"the captured contents of `{buffer}` cannot be read: {path}: {error.strerror}") from None
    except _Changed:
        raise WorkloadError(
            f"{path} no longer holds what was captured for `{buffer}`; delete it and capture the launch again"
        ) from None


class _Changed(Exception):
    pass


@functools.lru_cache(maxsize=64)
def _mapped(path: Path, name: str, length: int, changed: int) -> npt.NDArray[np.uint8]:
    """``length`` and ``changed`` (the time of the last change) tell a file from what it was."""
    with path.open("rb") as file:
        if digest(file) != name:
            raise _Changed
    return np.memmap(path, np.uint8, "r") if length else np.empty(0, np.uint8)
