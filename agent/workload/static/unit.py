"""Which files are read together for a kernel: the program that launches it, found from the file that it stands in."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

from agent.source.document import Document, parse
from agent.source.includes import workspace_of
from agent.source.kernel import Kernel
from agent.source.lexing import Macro
from agent.workload.joined.build_flags import NAMES, build_flags, include_folders
from agent.workload.joined.conditionals import BuildFlag, Definition
from agent.workload.joined.files import MAIN, MAX_FILES, SOURCES, absolute, closure, has_main, read_text, sources, stamp
from agent.workload.joined.joining import Joined, Place, join
from agent.workload.workload import Origin, Workload


@frozen(eq=False)
class Unit:
    """A program's files as one document; ``own`` is the file that the user looks at (``path``, absolute), ``root``
    the one with ``main``.

    ``kernels`` are the names of the kernels that stand in ``own``: only those can be launched by a plan.
    """

    own: Document
    path: str
    document: Document
    joined: Joined
    root: str
    kernels: frozenset[str]

    def kernel(self, kernel: Kernel) -> Kernel | None:
        """A kernel of the own file as the joined document has it; None where its ``#if`` leaves it out."""
        for found in self.document.kernels:
            path, line = self.joined.place(found.line)
            if found.name == kernel.name and line == kernel.line and path == self.path:
                return found
        return None

    def line(self, line: int | None) -> int | None:
        """A line of the own file for a joined one; None for one in another file."""
        if line is None:
            return None
        path, there = self.joined.place(line)
        return there if path == self.path else None

    def at(self, line: int) -> str:
        """``line 12``, or ``line 12 of main.cu`` for another file."""
        path, there = self.joined.place(line)
        return f"line {there}" if path == self.path else f"line {there} of {Path(path).name}"

    def origin(self, origin: Origin) -> Origin:
        """An origin with the line that the user sees, and the file where that is another one."""
        if origin.line is None:
            return origin
        path, there = self.joined.place(origin.line)
        return evolve(origin, line=there, file="" if path == self.path else Path(path).name)

    def placed(self, workload: Workload) -> Workload:
        """A workload with origins as the user sees them."""
        return evolve(
            workload,
            sizes=tuple(evolve(size, origin=self.origin(size.origin)) for size in workload.sizes),
            constants=tuple(evolve(part, origin=self.origin(part.origin)) for part in workload.constants),
            buffers=tuple(evolve(buffer, origin=self.origin(buffer.origin)) for buffer in workload.buffers),
            origin=self.origin(workload.origin),
        )


def alone(document: Document) -> Unit:
    """The unit of one file, read as it stands."""
    path = _absolute(document)
    names = frozenset(kernel.name for kernel in document.kernels)
    joined = Joined(document.text, (Place(1, 0, path, 1, path),), _macros(document), {})
    return Unit(document, path, document, joined, path, names)


def compiled_twin(document: Document, kernel: Kernel) -> Kernel:
    """Of several definitions of one name, of which `#if` leaves out all but one, that one; else the kernel itself."""
    twins = [one for one in document.kernels if one.qualified_name == kernel.qualified_name]
    if len(twins) < 2:
        return kernel
    unit = unit_of(document, kernel)
    return next((one for one in twins if unit.kernel(one) is not None), kernel)


def unit_of(document: Document, kernel: Kernel, flags: tuple[str, ...] = ()) -> Unit:
    """The program that launches ``kernel``, as one document. ``flags`` are those of a command line.

    It is the document's own file where that has a ``main``; else a source file with a ``main`` that includes it; else
    the one source file with a ``main`` in its folder (or a folder above, within the workspace). Other sources of the
    folder that are no programs of their own are linked with it. Where there is no such program, the file is all.
    """
    files = _files(document, kernel.name)
    parts = sorted(frozenset[str]().union(*(closure(path) for path in files)))
    stamps = tuple(stamp(path) for path in parts)
    return _unit(document, files, stamps, tuple(build_flags(files[0], flags).values()), include_folders(files[0]))


@functools.lru_cache(maxsize=8)
def _unit(
    document: Document,
    files: tuple[str, ...],
    _stamps: tuple[tuple[int, int], ...],
    flags: tuple[BuildFlag, ...],
    folders: tuple[str, ...],
) -> Unit:
    path = _absolute(document)
    texts = [(one, document.text if one == path else read_text(one) or b"") for one in files]
    joined = join(texts, {flag.name: flag for flag in flags}, folders, {path: document.text})
    same = joined.text.rstrip(b"\n") == document.text.rstrip(b"\n")
    read = document if same else parse(joined.text, document.path)
    names = frozenset(kernel.name for kernel in document.kernels)
    return Unit(document, path, read, joined, files[0], names)


def _absolute(document: Document) -> str:
    return absolute(document.path) if document.path else ""


def _files(document: Document, kernel: str) -> tuple[str, ...]:
    """What is compiled into the program, the file with ``main`` first; none for a text without a file."""
    own = _absolute(document)
    if not own or not Path(own).is_file():
        return (own,)
    if MAIN.search(document.text):
        programs = [path for path in sources(Path(own).parent) if path == own or has_main(path)]
        return _linked(own, own, programs)
    for folder in _folders(own):
        programs = [path for path in sources(folder) if path != own and has_main(path)]
        including = [path for path in programs if own in closure(path)]
        chosen = _built([path for path in including if _mentions(path, kernel)] or including or programs)
        if len(chosen) == 1:
            return _linked(chosen[0], own, programs)
        if chosen:
            break
    return (own,)


def _built(programs: list[str]) -> list[str]:
    """Of several programs the one that their Makefile names; all where it names none or more than one."""
    for name in NAMES if len(programs) > 1 else ():
        text = (read_text(str(Path(programs[0]).parent / name)) or b"").decode("utf-8", "replace")
        named = [path for path in programs if re.search(rf"(?<![\w./-]){re.escape(Path(path).name)}(?![\w.])", text)]
        if len(named) == 1:
            return named
    return programs


def _folders(path: str) -> Iterator[Path]:
    """The folder of a file, and those above it in its workspace (two at most)."""
    folder, top = Path(path).parent, workspace_of(path)
    yield folder
    for above in list(folder.parents)[:2]:
        if not above.resolve().is_relative_to(top) and not _is_part(path, above):
            return
        yield above


def _is_part(path: str, above: Path) -> bool:
    """Whether a source in ``above`` includes a file, or one beside it: then the file's folder is a part of it."""
    parts = {Path(path).parent}
    try:
        beside = [str(source) for source in above.iterdir() if source.suffix in SOURCES and source.is_file()]
    except OSError:
        return False
    return any(parts & {Path(one).parent for one in closure(source)} for source in beside[:MAX_FILES])


def _linked(root: str, own: str, programs: list[str]) -> tuple[str, ...]:
    """A source with ``main`` and those that are linked with it: where it is the folder's only program, all others."""
    beside = [path for path in sources(Path(root).parent) if path != root] if len(programs) == 1 else []
    mine = (own,) if Path(own).suffix in SOURCES else ()
    return tuple(dict.fromkeys((root, *beside, *mine)))


def _macros(document: Document) -> dict[str, tuple[Definition, ...]]:
    """The macros of a text that is read as it stands: not certain is one that is defined twice, differently."""
    found: dict[str, list[Macro]] = {}
    for macro in document.macros:
        found.setdefault(macro.name, []).append(macro)
    return {
        name: (Definition(0, bodies[0], len({macro.body for macro in bodies}) == 1),) for name, bodies in found.items()
    }


def _mentions(path: str, name: str) -> bool:
    return any(name.encode() in (read_text(one) or b"") for one in closure(path))
