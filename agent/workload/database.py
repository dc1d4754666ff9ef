"""``compile_commands.json``: what the user's build compiles a file with.

It is looked for where clangd does, in the folders above the file and in their ``build``, and in ``out`` and CLion's
``cmake-build-*`` too. Nothing requires one, and one that is broken, huge or another project's does no harm. It
is read where there is time, never between two keys, and once until it changes.
"""

import functools
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from agent.source.workspace import includers
from agent.workload.brought import Bringing
from agent.workload.flags import Taken, folders, macros, merged, taken
from agent.workload.joined.files import stamp

NAME = "compile_commands.json"
LARGEST = 64 << 20
"""Bytes of a database: a longer one is left alone."""
_BUILDS = (
    "",
    "build",
    "out",
    *(f"cmake-build-{kind}" for kind in ("debug", "release", "relwithdebinfo", "minsizerel")),
)
_HEADERS = frozenset((".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc"))
_SOURCES = (".cu", ".cuh")
_SYSTEM = ("/usr/include", "/usr/lib", "/usr/local/include")
_LAUNCHERS = frozenset(("ccache", "sccache", "distcc", "icecc", "env", "time"))


_MOST_KEPT = 256
_kept: dict[
    tuple[tuple[str, ...], Path, tuple[Path, Path]], tuple[tuple[tuple[Path, tuple[int, int]], ...], Taken]
] = {}
"""By command line: what it says, with the state in which the files were that it brings in."""


@frozen
class Built:
    """``flags`` are those that count here, include folders absolute; ``left_out`` what else might have mattered.
    ``entry`` is the file whose entry they are of, ``database`` where it stands: nothing where no database knows the
    file. ``problem`` says why one that lies near cannot be read."""

    database: Path | None = None
    entry: Path | None = None
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""

    def told(self, path: str) -> str:
        """The flags and where they come from, in a line for people; empty where there are none. ``path`` is the file
        that they are for."""
        if self.database is None or self.entry is None or not (self.flags or self.left_out):
            return ""
        other = "" if self.entry == _real(Path(path)) else f", entry of {self.entry.name}"
        said = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{shlex.join(self.flags) or 'none'}     {self.database}{other}{said}"


@frozen
class _Entry:
    file: Path
    folder: Path
    told: Any

    @property
    def words(self) -> tuple[str, ...]:
        """The command line. It is taken apart for the entry that is asked for alone: a database has thousands."""
        return _words(self.told)


def built_as(path: str) -> Built:
    """What the nearest database that knows the file at ``path`` says. A header is compiled as the nearest source that
    includes it is, else as another file of its folder."""
    if not path:
        return Built()
    file = _real(Path(path))
    problem = ""
    for project, database in near(file.parent):
        entries = _entries(database)
        if isinstance(entries, str):
            problem = problem or entries
        elif (entry := _of(file, entries)) is not None:
            found = _taken(entry, (_real(project), _real(database).parent))
            return Built(database, entry.file, found.flags, found.left_out)
    return Built(problem=problem)


def near(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The databases of the folders above, each behind the folder that it is for, the nearest first."""
    for above in (folder, *folder.parents):
        for build in _BUILDS:
            if os.path.isfile(place := above / build / NAME):  # noqa: PTH113 (a folder that may not be read is none)
                yield above, place


def entries_of(database: Path) -> int | str:
    """How many CUDA files a database knows, or why it cannot be read."""
    found = _entries(database)
    return found if isinstance(found, str) else len({entry.file for entry in found})


def _entries(database: Path) -> tuple[_Entry, ...] | str:
    try:
        status = database.stat()
    except OSError as error:
        return f"{database} cannot be read: {error}"
    return _read(str(database), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _read(database: str, _changed: int, size: int) -> tuple[_Entry, ...] | str:
    """The entries of CUDA files, or why there are none to be had. What is no entry is passed over."""
    if size > LARGEST:
        return f"{database} is larger than {LARGEST >> 20} MB and is not read: name the flags in .cuda-lsp.toml"
    try:
        told = json.loads(Path(database).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"{database} cannot be read and is left alone: {str(error) or 'nested too deeply'}"
    if not isinstance(told, list):
        return f"{database} is no list of entries and is left alone"
    found = (_entry(one, Path(database).parent) for one in told)
    return tuple(entry for entry in found if entry is not None)


def _entry(told: Any, beside: Path) -> _Entry | None:
    if not isinstance(told, dict) or not isinstance(name := told.get("file"), str) or "\0" in name:
        return None
    folder = told.get("directory", "")
    arguments = told.get("arguments", told.get("command"))
    if not isinstance(folder, str) or "\0" in folder:
        return None
    if not name.lower().endswith(_SOURCES) and not _is_of_nvcc(arguments):
        return None
    place = Path(os.path.normpath(beside / folder))
    return _Entry(Path(os.path.normpath(place / name)), place, arguments)


def _is_of_nvcc(arguments: Any) -> bool:
    """Whether a command line is nvcc's at a glance."""
    first = arguments[:1] if isinstance(arguments, list) else [arguments]
    return any(isinstance(word, str) and "nvcc" in word for word in first)


def _words(arguments: Any) -> tuple[str, ...]:
    """A command line in words; none where it is none."""
    if isinstance(arguments, str):
        try:
            words = shlex.split(arguments, posix=os.name != "nt")
        except ValueError:  # a quote without its end
            return ()
        return tuple(word.strip('"') for word in words) if os.name == "nt" else tuple(words)
    if isinstance(arguments, list) and all(isinstance(word, str) for word in arguments):
        return tuple(arguments)
    return ()


def _of(file: Path, entries: Sequence[_Entry]) -> _Entry | None:
    """The entry of a file, or the one that a header is compiled with."""
    own = _named(file, entries)
    if own is not None or file.suffix.lower() not in _HEADERS:
        return own
    for source in includers(str(file)):
        if (entry := _named(source, entries)) is not None:
            return entry
    beside = (entry for entry in entries if entry.file.parent.name == file.parent.name)
    return next((entry for entry in beside if entry.words and _real(entry.file.parent) == file.parent), None)


def _named(file: Path, entries: Sequence[_Entry]) -> _Entry | None:
    """Of several entries of one file the first that nvcc compiles, or the first."""
    found = [entry for entry in entries if entry.file.name == file.name and entry.words and _real(entry.file) == file]
    return next((entry for entry in found if _compiler(entry.words)[0].startswith("nvcc")), (*found, None)[0])


def _compiler(words: tuple[str, ...]) -> tuple[str, int]:
    """The bare name of the compiler of a command line, and its place."""
    names = [word.replace("\\", "/").rpartition("/")[2].lower() for word in words]
    at = next((place for place, name in enumerate(names) if name not in _LAUNCHERS and "=" not in name), 0)
    return names[at], at


def _taken(entry: _Entry, roots: tuple[Path, Path]) -> Taken:
    """What counts of an entry's command line, with the files that it names below ``roots``."""
    words = entry.words
    return _brought(words[_compiler(words)[1] + 1 :], entry.folder, roots)


def _brought(words: tuple[str, ...], folder: Path, roots: tuple[Path, Path]) -> Taken:
    key = words, folder, roots
    stamps, known = _kept.get(key, ((), None))
    if known is not None and all(stamp(str(path)) == before for path, before in stamps):
        return known
    bringing = Bringing(folder, roots)
    found = taken(tuple(bringing.expanded(words)), folder)
    flags = tuple(flag for flag in found.flags if not _is_idle(flag))
    more = taken(tuple(bringing.macros(found.forced, folders(flags), macros(flags))), folder)
    told = Taken(merged(flags, more.flags), (*found.left_out, *more.left_out, *bringing.left_out))
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[key] = tuple((path, stamp(str(path))) for path in bringing.read), told
    return told


def _is_idle(flag: str) -> bool:
    """Include folders that are not there, the system's, and those of a CUDA toolkit: the compiler here has its own."""
    if not flag.startswith("-I"):
        return False
    folder = Path(flag[2:])
    try:
        return any(map(folder.is_relative_to, _SYSTEM)) or not folder.is_dir() or (folder / "cuda_runtime.h").is_file()
    except OSError:
        return True


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a circle of links
        return path.absolute()
