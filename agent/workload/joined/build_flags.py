"""The macros that a program's Makefile defines for the compiler."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from agent.source.includes import workspace_of
from agent.workload.joined.conditionals import BuildFlag

NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_BYTES = 200_000
_DEFINE = re.compile(r"(?:^|\s)-D\s*([A-Za-z_]\w*)(?:=(\S*))?")
_ASSIGNMENT = re.compile(r"^\w*(FLAGS|DEFS|DEFINES|OPTS)\w*[ \t]*[:?+]?=")
_INCLUDE = re.compile(r"(?:^|\s)-I\s*([\w./+-]+)(?=\s|$)")
_PLAIN = re.compile(r"[\w.+-]+")


def build_flags(path: str) -> Mapping[str, BuildFlag]:
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
    """The include folders inside the workspace that the Makefile beside a source file names, as written out."""
    found: list[str] = []
    for name in NAMES if path else ():
        file = Path(path).parent / name
        try:
            if not file.is_file() or file.stat().st_size > MAX_BYTES:
                continue
            named = _INCLUDE.findall(file.read_text("utf-8", "replace"))
        except OSError:
            continue
        top = workspace_of(path)
        found += [str(file.parent / one) for one in named if (file.parent / one).resolve().is_relative_to(top)]
    return tuple(dict.fromkeys(found))


def _is_plain(body: str) -> bool:
    return not body or _PLAIN.fullmatch(body) is not None
