"""Values kept in files: written whole and renamed into place, so that several processes may share a folder."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from agent.execution import wire

_DIGEST = 32


def read(path: Path, *kinds: type[Any]) -> Any:
    """The value in a file, one of ``kinds``; None where there is none. A file that cannot be read back as it was
    written is deleted."""
    with contextlib.suppress(OSError, RuntimeError):
        data = path.read_bytes()
        digest, body = data[:_DIGEST], data[_DIGEST:]
        if hashlib.sha256(body).digest() == digest:
            with contextlib.suppress(wire.WireError):
                value = wire.decode(body, *kinds)
                os.utime(path)  # recently used: pruned last
                return value
        path.unlink(missing_ok=True)
    return None


def write(path: Path, value: object) -> None:
    """Raises OSError where there is no room, or no right to write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = wire.encode(value)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def prune(place: Path, limit: int) -> None:
    """Delete the files that were used longest ago until ``place`` holds at most ``limit`` bytes."""
    found: list[tuple[float, int, Path]] = []
    for path in place.iterdir():
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
