"""The macros that a program's Makefile, settings and ``compile_commands.json`` define for the compiler."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from agent.source.includes import workspace_of
from agent.workload.database import built_as
from agent.workload.flags import folders, macros
from agent.workload.joined.conditionals import BuildFlag

NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_BYTES = 200_000
_DEFINE = re.compile(r"(?:^|\s)-D\s*([A-Za-z_]\w*)(?:=(\S*))?")
_ASSIGNMENT = re.compile(r"^\w*(FLAGS|DEFS|DEFINES|OPTS)\w*[ \t]*[:?+]?=")
_INCLUDE = re.compile(r"(?:^|\s)-I\s*([\w./+-]+)(?=\s|$)")
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")
_SET = re.compile(r"^[ \t]*(\w+)[ \t]*([:?+]?=)[ \t]*([^#\n]*?)[ \t]*(?:#.*)?$", re.M)
_PLAIN = re.compile(r"[\w.+-]+")


def build_flags(path: str, further: tuple[str, ...] = ()) -> Mapping[str, BuildFlag]:
    """The macros that a source file is compiled with: those of the project's settings and ``compile_commands.json``,
    else those of the Makefile beside it. ``further`` flags, of a command line, overrule all."""
    stated = _stated(path, further)
    others = {name: flag for name, flag in _of_makefile(path).items() if name not in stated}
    return others | {name: flag for name, flag in stated.items() if flag is not None}


def _stated(path: str, further: tuple[str, ...]) -> Mapping[str, BuildFlag | None]:
    """What settings, database and ``further`` flags define; None for what they undefine."""
    from agent.workload.settings import SettingsError, settings_of  # these read workloads, and so types

    try:
        settings = settings_of(path)
    except SettingsError:  # said where the file is looked at
        return {}
    database = settings.built.database.name if settings.built.database is not None else ""
    project = settings.path.name if settings.path is not None else database
    told = [(settings.built.flags, database), (settings.flags, project), (further, "the flags of the command line")]
    found: dict[str, BuildFlag | None] = {}
    for flags, where in told:
        for name, body in macros(flags).items():
            before = found.get(name)
            if body is None:
                found[name] = None
            elif before is None or before.body != body:
                found[name] = BuildFlag(name, body, where, True, stated=True)
    return found


def _of_makefile(path: str) -> Mapping[str, BuildFlag]:
    """What the Makefile beside a source file defines. Certain is what a list of flags holds outside every condition;
    anything else (one target's, an unknown variable's, different values) may be so or not. CMake's are never so."""
    for name in (*NAMES, "CMakeLists.txt") if path else ():
        file = Path(path).parent / name
        try:
            if file.is_file() and (status := file.stat()).st_size <= MAX_BYTES:
                return _read(str(file), status.st_mtime_ns)
        except OSError:
            continue
    return {}


@functools.lru_cache(maxsize=256)
def _read(file: str, _changed: int) -> Mapping[str, BuildFlag]:
    found: dict[str, BuildFlag] = {}
    depth = 0
    text = Path(file).read_text("utf-8", "replace")
    for line, row in enumerate(text.replace("\\\n", "  ").split("\n"), 1):
        bare = row.split("#")[0]
        if re.match(r"\s*if(n?eq|n?def)\b", bare):
            depth += 1
        elif re.match(r"\s*endif\b", bare):
            depth -= 1
        listed = depth == 0 and _ASSIGNMENT.match(bare) is not None
        for name, body in _DEFINE.findall(bare):
            flag = BuildFlag(name, body or "1", f"{Path(file).name} line {line}", listed and _is_plain(body))
            before = found.get(name, flag)
            found[name] = evolve(before, certain=flag == evolve(before, where=flag.where) and flag.certain)
    return found


def include_folders(path: str) -> tuple[str, ...]:
    """The include folders inside the workspace that ``compile_commands.json`` names for a source file, and those of its
    Makefile, as written out or by variables that it sets once, to a plain value. The Makefile stands beside the file,
    or else in the folder above."""
    built = [Path(folder) for folder in folders(built_as(path).flags)]
    top = workspace_of(path) if built else None
    inside = tuple(str(one) for one in built if top is not None and one.resolve().is_relative_to(top))
    return tuple(dict.fromkeys((*inside, *_folders_of_makefile(path))))


def _folders_of_makefile(path: str) -> tuple[str, ...]:
    here = Path(path).parent
    for folder in (here, here.parent) if path else ():
        files = [file for name in NAMES if (file := folder / name).is_file()]
        if files:
            top = workspace_of(str(files[0]))
            named = [folder / one for file in files for one in _included(file)]
            return tuple(dict.fromkeys(str(one) for one in named if one.resolve().is_relative_to(top)))
    return ()


def _included(makefile: Path) -> list[str]:
    try:
        return _INCLUDE.findall(_expanded(makefile.read_text("utf-8", "replace")[:MAX_BYTES]))
    except OSError:
        return []


def _expanded(text: str) -> str:
    told: dict[str, list[tuple[str, str]]] = {}
    for name, sign, value in _SET.findall(text):
        told.setdefault(name, []).append((sign, value))
    known = {name: sets[0][1] for name, sets in told.items() if len(sets) == 1 and sets[0][0] in ("=", ":=")}
    plain = {name: value for name, value in known.items() if _PLAIN.fullmatch(value.replace("/", ""))}
    return _VARIABLE.sub(lambda found: plain.get(found[1], found[0]), text)


def _is_plain(body: str) -> bool:
    return not body or _PLAIN.fullmatch(body) is not None
