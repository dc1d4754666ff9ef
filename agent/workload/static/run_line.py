"""The arguments that a program's own Makefile runs it with."""

import functools
import re
import shlex
from pathlib import Path

from attrs import frozen

from agent.workload.joined.build_flags import MAX_BYTES, NAMES

_TARGET = re.compile(r"^(run|test|check|bench)[\w-]*\s*:(?!=)")
_PROGRAM = re.compile(r"(?:^|[\s@;&])(?:\./|\$[({]\w*DIR[)}]/)(\S+)(.*)$")
_VARIABLE = re.compile(r"\$[({](\w+)[)}]|\$[@<]")
_ASSIGNED = re.compile(r"^(\w+)[ \t]*[:?]?=[ \t]*([\w./-]+)[ \t]*(?:#.*)?$", re.M)
_MAIN = re.compile(rb"\bmain\s*\(")
_SOURCES = (".cu", ".cpp", ".cc", ".c")
_MAX_SOURCES = 64
_ENDS = ("|", ">", ">>", "<", "&&", "||", ";", "&", "2>&1", "2>")


@frozen
class RunLine:
    """``arguments`` as the program gets them, from ``argv[1]`` on; ``where`` names file and line."""

    arguments: tuple[str, ...]
    where: str


def run_line(path: str) -> RunLine | None:
    """How the Makefile beside a file runs the program first: see :func:`run_lines`. None where it does not."""
    return next(iter(run_lines(path)), None)


def run_lines(path: str) -> tuple[RunLine, ...]:
    """How the Makefile beside a file runs the program: the recipe lines of targets such as ``run`` or ``test`` that
    start a program of this folder, up to the first whose arguments are not written out."""
    if not path:
        return ()
    folder, stem = Path(path).parent, Path(path).stem
    for name in NAMES:
        try:
            file = folder / name
            if file.is_file() and (status := file.stat()).st_size <= MAX_BYTES:
                return _read(str(file), status.st_mtime_ns, stem)
        except OSError:
            continue
    return ()


@functools.lru_cache(maxsize=256)
def _read(file: str, _changed: int, stem: str) -> tuple[RunLine, ...]:
    lines_told: list[RunLine] = []
    text = Path(file).read_text("utf-8", "replace").replace("\\\n", "  ")
    inside = False
    line = 0
    for row in text.split("\n"):
        line += 1
        if not row.startswith("\t"):
            inside = bool(_TARGET.match(row)) if row.strip() and not row.startswith("#") else inside
            continue
        commented = row.lstrip("\t @-").startswith("#")
        found = _PROGRAM.search(row) if inside and not commented else None
        if found is not None and _is_program(found[1], text, Path(file).parent, stem):
            arguments = _arguments(found[2])
            if arguments is None:
                break
            lines_told.append(RunLine(arguments, f"{Path(file).name} line {line}"))
    return tuple(lines_told)


def _is_program(name: str, text: str, folder: Path, stem: str) -> bool:
    """Whether a recipe runs what the file is built into: it has the file's name; or it is a variable of the Makefile,
    and no other source of the folder could be meant by it."""
    assigned = dict(_ASSIGNED.findall(text))
    told = _VARIABLE.sub(lambda match: assigned.get(match[1] or "", match[0]), name)
    if told.split("/")[-1].split(".")[0] == stem:
        return True
    return _VARIABLE.search(name) is not None and not _other_programs(folder, stem)


def _other_programs(folder: Path, stem: str) -> bool:
    sources = [path for path in sorted(folder.iterdir()) if path.suffix in _SOURCES and path.stem != stem]
    return len(sources) > _MAX_SOURCES or any(_has_main(path) for path in sources)


def _has_main(path: Path) -> bool:
    """A file that is too large to be read, or cannot be, might have one."""
    try:
        return path.is_file() and (path.stat().st_size > 10 * MAX_BYTES or bool(_MAIN.search(path.read_bytes())))
    except OSError:
        return True


def _arguments(text: str) -> tuple[str, ...] | None:
    """None where an argument is a variable, whose value would have to be guessed."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    kept: list[str] = []
    for word in words:
        if word in _ENDS or word[0] in "<>|;&":
            break
        if "$" in word or "`" in word:
            return None
        kept.append(word)
    return tuple(kept)
