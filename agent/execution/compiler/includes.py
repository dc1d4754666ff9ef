"""Which files the compiler may read: the user's include folders inside the workspace, and CUDA's own.

NVRTC quotes the lines it complains about, and a complaint may travel to a language model. So every ``#include`` of the
source, of the headers held in memory and of each header that they reach in the user's folders is looked at before
anything is compiled. An include that leads elsewhere, or whose target is hidden behind a macro, is refused.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import field, frozen

from agent.workload.database import near

# A directive wherever it might stand. Comments and strings are not told apart, since whoever wants to smuggle an
# include past us would begin there; but nothing can make a directive of a "#" that other text of its line precedes,
# unless that text ends a comment. NVRTC takes blanks, form feeds, carriage returns and comments around "#".
_HASH = re.compile(r"#|%:|\?\?=")
_WORD = re.compile(r"(?:include_next|include|import|embed)\b")
_BLANKS = re.compile(r"(?:\s|\\\r?\n|\\\r)*")
_REST = re.compile(r"[^\n\r]*")
_OPERAND = re.compile(r"""(?:"(?P<quoted>[^"]*)"|<(?P<angled>[^>]*)>)""")
# Thrust includes files whose names its own macros make up; a source that redefines one of these chooses the file.
_COMPUTED = re.compile(
    r"\b(?:define|undef|push_macro|pop_macro)\b[\s(\\\"]*(?P<name>_*THRUST_\w*(?:INCLUDE|HEADER|SYSTEM)\w*)"
)
_LINE = re.compile(r"\s*#\s*(?:line\s+)?(\d+)")
_SPLICE = re.compile(r"\\\r?\n|\\\r")
_HEADER_SUFFIXES = frozenset(
    (".h", ".hh", ".hpp", ".hxx", ".cuh", ".cu", ".inl", ".inc", ".ipp", ".tpp", ".def", ".c", ".cc", ".cpp", ".cxx")
)
_ROOT_MARKS = (".git", ".hg", ".cuda-lsp.toml", "compile_commands.json")
_MORE_FOLDERS = "CUDA_LSP_INCLUDE_PATH"


class Refused(Exception):
    """An include that the compiler must not follow: ``target`` is as written, the message says what to do."""

    def __init__(self, target: str, message: str) -> None:
        super().__init__(message)
        self.target = target


@frozen
class Search:
    """``folders`` are searched in order. ``explicit`` are those that a flag named, ``own`` the source file's folder,
    ``cuda`` CUDA's."""

    explicit: tuple[Path, ...]
    own: Path | None
    cuda: tuple[Path, ...]
    outside: tuple[Path, ...] = ()
    _real: dict[Path, Path] = field(factory=dict, eq=False, repr=False)

    @property
    def folders(self) -> tuple[Path, ...]:
        return (*self.explicit, *((self.own,) if self.own is not None else ()), *self.cuda)


def workspace(path: str) -> Path | None:
    """The nearest folder above a source file that looks like a project's root, else the file's own folder."""
    folder = Path(path).absolute().parent
    if not path or not folder.is_dir():
        return None
    above = (folder, *folder.parents)
    marked = (parent for parent in above if any((parent / mark).exists() for mark in _ROOT_MARKS))
    return next(marked, None) or next((project for project, _ in near(folder)), folder)


def search(path: str, flagged: Iterable[str], cuda: tuple[Path, ...]) -> Search:
    """The folders for a source file at ``path`` whose flags name ``flagged`` (relative to it, or to the root)."""
    root = workspace(path)
    own = Path(path).absolute().parent if root is not None else None
    allowed = [Path(entry).resolve() for entry in os.environ.get(_MORE_FOLDERS, "").split(os.pathsep) if entry]
    allowed += [root.resolve()] if root is not None else []
    inside: list[Path] = []
    outside: list[Path] = []
    for name in flagged:
        bases = [base for base in (own, root) if base is not None] or [Path.cwd()]
        folder = next((base / name for base in bases if (base / name).is_dir()), bases[0] / name)
        real = folder.resolve()
        if any(real.is_relative_to(place.resolve()) for place in cuda):
            continue
        (inside if any(real.is_relative_to(place) for place in allowed) else outside).append(real)
    return Search(tuple(inside), own, cuda, tuple(outside))


def check(text: str, headers: tuple[tuple[str, str], ...], where: Search, here: Path) -> str:
    """Raise :class:`Refused` for an include that leads out of the allowed folders; give a hash of all that was reached.

    ``here`` is the compiler's working folder, which NVRTC searches first.
    """
    held = dict(headers)
    digest = hashlib.sha256()
    seen: set[Path] = set()
    waiting: list[tuple[str, Path]] = [(text, here), *((body, here) for _, body in headers)]
    while waiting:
        body, folder = waiting.pop()
        for name in included(body):
            if name in held:
                continue
            for file in _hits(name, folder, where):
                if file not in seen and _judge(file, name, where):
                    seen.add(file)
                    content = file.read_bytes()
                    digest.update(f"{file}\0{len(content)}\0".encode() + content)
                    waiting.append((content.decode("utf-8", "replace"), file.parent))
    return digest.hexdigest()


def check_host(text: str, path: str, flagged: Iterable[str]) -> None:
    """The same for a whole file with its host code, where system headers are to be had too. Raises :class:`Refused`.

    Only names that lead out are refused: absolute ones, and ``..`` that climbs out of the workspace.
    """
    where = search(path, flagged, ())
    root = workspace(path) or Path.cwd()
    for name in included(text):
        steps_out = Path(name).is_absolute() or ".." in Path(name).parts
        found = [folder / name for folder in where.folders if (folder / name).is_file()]
        inside = found and all(file.resolve().is_relative_to(root.resolve()) for file in found)
        if steps_out and not inside:
            raise Refused(name, f'#include "{name}" leads out of the workspace {root}: it is not followed')


def included(text: str) -> Iterator[str]:
    """Every file that ``text`` may include. Raises Refused for an include whose target is not written out."""
    # Both with and without line splices: inside a raw string a backslash at the end of a line splices nothing.
    for body in dict.fromkeys((text, _SPLICE.sub("", text))):
        for told in _operands(body):
            operand = _OPERAND.match(told)
            target = told.split("//")[0].strip()
            if operand is not None:
                yield operand["quoted"] if operand["quoted"] is not None else operand["angled"]
            elif target and target[0] not in '"<\\':
                raise Refused(
                    target,
                    f"#include {target}: the file is hidden behind a macro, so it cannot be checked before compiling. "
                    "Write its name out",
                )
        for matched in _COMPUTED.finditer(body):
            raise Refused(
                matched["name"], f"{matched['name']} decides which files CUDA's own headers include: it stays"
            )


def _operands(body: str) -> Iterator[str]:
    """What follows each directive on its line. Step by step, since one pattern for all of it takes for ever on a file
    with long comments."""
    for hashed in _HASH.finditer(body):
        if not _begins(body, hashed.start()):
            continue
        word = _WORD.match(body, _gap(body, hashed.end()))
        if word is not None:
            yield body[(start := _gap(body, word.end())) : _REST.match(body, start).end()]  # type: ignore[union-attr]


def _begins(body: str, at: int) -> bool:
    """Whether nothing of its line but blanks and comments precedes a place, or may precede it."""
    while at > 0 and body[at - 1].isspace():
        at -= 1
        if body[at] in "\n\r":
            return True
    return at == 0 or body.endswith("*/", 0, at)


def _gap(body: str, at: int) -> int:
    """Behind the blanks and the comments at a place."""
    while True:
        at = _BLANKS.match(body, at).end()  # type: ignore[union-attr]
        end = body.find("*/", at + 2) if body.startswith("/*", at) else -1
        if end < 0:
            return at
        at = end + 2


def line_of(text: str, target: str) -> int:
    """The user's own line (by the ``#line`` markers) of the first directive that names ``target``; 0 if none does."""
    number = 0
    for line in text.splitlines():
        marker = _LINE.match(line)
        if marker is not None:
            number = int(marker[1]) - 1
            continue
        number += 1
        if target in line and re.search(r"(?:#|%:).*(?:include|import|embed|define|undef)", line):
            return number
    return 0


def _hits(name: str, folder: Path, where: Search) -> list[Path]:
    places = [Path(name)] if Path(name).is_absolute() else [base / name for base in (folder, *where.folders)]
    return [place for place in places if place.is_file()] or ([Path(name)] if Path(name).is_absolute() else [])


def _judge(file: Path, name: str, where: Search) -> bool:
    """Whether the file's own includes must be looked at (it is the user's). Raises Refused if it may not be read."""
    real = file.resolve()
    if any(real.is_relative_to(folder.resolve()) for folder in where.cuda):
        return False
    for folder, bare in (*((folder, True) for folder in where.explicit), *(((where.own, False),) if where.own else ())):
        if real.is_relative_to(folder.resolve()):
            parts = real.relative_to(folder.resolve()).parts
            suffixes = _HEADER_SUFFIXES | {""} if bare else _HEADER_SUFFIXES
            if not any(part.startswith(".") for part in parts) and real.suffix.lower() in suffixes:
                return True
            raise Refused(name, f'#include "{name}": {file.name} is no header, and only headers may be included')
    raise Refused(
        name,
        f'#include "{name}" leads outside the include folders that the compiler may read. '
        f"Name its folder with -I if it lies in the workspace, or in the environment variable {_MORE_FOLDERS} if not",
    )
