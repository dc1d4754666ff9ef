"""What scans found, kept in the user's cache by all that it depends on: the same text is not counted twice.

What took too long is kept as well, under the time that it had: with more, or anew when asked for, it is tried again.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs
from attrs import evolve

import cuda_lsp
from agent.execution import kept
from agent.execution.compiler.includes import Refused, included, workspace
from agent.workload.static.run_line import run_line
from cuda_lsp.scanning.kernel import Asked
from cuda_lsp.scanning.values import Cause, Scanned

SCHEMA = 1
"""Raised when what is kept changes its meaning."""

ON_DISK = 64 << 20
LARGEST = 4 << 20
"""Bytes of a header: a longer one is not read by the compiler's side either."""

PASSING = (Cause.LEFT, Cause.FAULT)


def folder() -> Path:
    return Path(platformdirs.user_cache_dir("cuda-lsp", appauthor=False)) / "scans"


def key(text: bytes, one: Scanned, asked: Asked) -> str:
    """A digest of all that a result depends on: the file and what it includes, the settings, how it is asked for, and
    the run line of a Makefile beside the file."""
    digest = hashlib.sha256()
    told = (SCHEMA, cuda_lsp.__version__, one.path, one.kernel, one.line, asked.target, asked.seconds, asked.flags)
    digest.update(repr((*told, asked.settings, asked.hints, run_line(one.path))).encode("utf-8", "replace"))
    for name, content in _reached(text, Path(one.path), _folders((*asked.settings.flags, *asked.flags))):
        digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "replace") + content)
    return digest.hexdigest()


def get(name: str, one: Scanned) -> Scanned | None:
    """What was kept under ``name`` of this kernel."""
    with contextlib.suppress(RuntimeError):  # no home
        found: Scanned | None = kept.read(folder() / f"{name}.scan", Scanned)
        if found is not None and (found.path, found.kernel, found.line) == (one.path, one.kernel, one.line):
            return evolve(found, kept=True)
    return None


def put(name: str, found: Scanned) -> None:
    """Keep it. A full disk or a read-only home costs time only."""
    if found.cause not in PASSING:
        with contextlib.suppress(OSError, RuntimeError):
            kept.write(folder() / f"{name}.scan", found)


def prune() -> None:
    with contextlib.suppress(OSError, RuntimeError):
        kept.prune(folder(), ON_DISK)


def _folders(flags: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(flag[2:]) for flag in flags if flag.startswith("-I") and len(flag) > 2)


def _reached(text: bytes, path: Path, folders: tuple[Path, ...]) -> Iterator[tuple[str, bytes]]:
    """The file and every header that it may reach by name inside its workspace and the include folders, which is where
    the compiler may read. CUDA's own are not looked at: they are the version's."""
    roots = [folder.resolve() for folder in (workspace(str(path)), *folders) if folder is not None]
    seen = {path}
    waiting = [(path, text)]
    while waiting:
        file, content = waiting.pop()
        yield str(file), content
        for name in _included(content):
            for spelled in (file.parent / name, *(folder / name for folder in folders)):
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    place = spelled.resolve()  # one file has many spellings, and a cycle of them no end
                    if place in seen or not any(place.is_relative_to(root) for root in roots):
                        continue
                    seen.add(place)
                    if place.is_file() and place.stat().st_size <= LARGEST:
                        waiting.append((place, place.read_bytes()))


def _included(content: bytes) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(Refused):  # a name that a macro makes up: the compiler does not follow it either
        found.extend(included(content.decode("utf-8", "replace")))
    return found
