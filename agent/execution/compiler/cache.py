"""Results of compilations, kept in memory and on disk.

Files are named by the hash of everything that went in, written whole and renamed into place, so that several processes
may share the folder. A file that cannot be read back as it was written is deleted and forgotten. Nothing here ever
fails a compilation: a full disk or a read-only home costs speed only.
"""

import contextlib
import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path

from agent.execution import wire
from agent.execution.compiler.result import Build, CompileFailure

IN_MEMORY = 256
ON_DISK = 256 << 20
_PRUNE_EVERY = 64

Result = Build | CompileFailure

_lock = threading.Lock()
_recent: OrderedDict[str, Result] = OrderedDict()
_written = 0


def folder() -> Path:
    """``$XDG_CACHE_HOME/cuda-lsp/builds``, or ``~/.cache/cuda-lsp/builds``."""
    home = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "cuda-lsp" / "builds"


def get(key: str) -> Result | None:
    with _lock:
        if key in _recent:
            _recent.move_to_end(key)
            return _recent[key]
    result = _read(key)
    if result is not None:
        _remember(key, result)
    return result


def put(key: str, result: Result) -> None:
    global _written
    _remember(key, result)
    with contextlib.suppress(OSError, RuntimeError):  # no home, no room, no right to write
        _write(key, result)
        _written += 1
        if _written % _PRUNE_EVERY == 1:
            prune(folder(), ON_DISK)


def forget() -> None:
    """Drop what is kept in memory (tests; the disk stays)."""
    with _lock:
        _recent.clear()


def _remember(key: str, result: Result) -> None:
    with _lock:
        _recent[key] = result
        _recent.move_to_end(key)
        while len(_recent) > IN_MEMORY:
            _recent.popitem(last=False)


def _path(key: str) -> Path:
    return folder() / f"{key}.build"


def _read(key: str) -> Result | None:
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(key)
        data = path.read_bytes()
        digest, body = data[:32], data[32:]
        if hashlib.sha256(body).digest() == digest:
            with contextlib.suppress(wire.WireError):
                result: Result = wire.decode(body, Build, CompileFailure)
                os.utime(path)  # recently used: pruned last
                return result
        path.unlink(missing_ok=True)
    return None


def _write(key: str, result: Result) -> None:
    path = _path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    body = wire.encode(result)
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
