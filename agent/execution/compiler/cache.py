"""Results of compilations, kept in memory and on disk.

Files are named by the hash of everything that went in. Nothing here ever fails a compilation: a full disk or a
read-only home costs speed only.
"""

import contextlib
import os
import threading
from collections import OrderedDict
from pathlib import Path

from agent.execution import kept
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
            kept.prune(folder(), ON_DISK)


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
    with contextlib.suppress(RuntimeError):  # no home
        result: Result | None = kept.read(_path(key), Build, CompileFailure)
        return result
    return None


def _write(key: str, result: Result) -> None:
    kept.write(_path(key), result)
