"""``.cuda-lsp.toml``: settings of a project, and workloads that do not stand in the source.

::

    target = "H200"
    architectures = ["sm_80", "sm_90"]
    flags = ["--use_fast_math"]
    include = ["include"]

    [workload.softmax]
    sizes = { rows = 4096, cols = "65536 min 2" }
    constants = { alpha = 0.5 }
    buffers = { x = "f32[rows * cols] in normal", y = "f32[rows * cols] out" }
    plan = "launch softmax<<<rows, 256>>>(x, y, rows, cols)"
    compare = { y = "numeric 1e-5" }

Each entry means what the same words mean in a directive. ``[model]`` names a language model, ``[hints]`` says which
rules run.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from attrs import evolve, field, frozen

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.database import Built, built_as
from agent.workload.errors import WorkloadError
from agent.workload.flags import merged
from agent.workload.statements import FLAGS, read_statements
from agent.workload.workload import Origin, Workload

FILE = ".cuda-lsp.toml"
_PROJECT = ("target", "architectures", "flags", "include", "workload", "model", "hints")
_WORKLOAD = (
    "sizes",
    "constants",
    "buffers",
    "symbols",
    "textures",
    "surfaces",
    "scratch",
    "locals",
    "plan",
    "compare",
    "flags",
    "lossy",
    "reference",
)
_STATEMENT = {
    "sizes": "size {name} = {value}",
    "constants": "const {name} = {value}",
    "buffers": "buffer {name}: {value}",
    "symbols": "symbol {name}: {value}",
    "textures": "texture {name}: {value}",
    "surfaces": "surface {name}: {value}",
    "scratch": "scratch {name}: {value}",
    "locals": "local {name} = {value}",
    "compare": "compare {name} {value}",
}


class SettingsError(WorkloadError):
    """A settings file is wrong. The message names the file, the key and what was expected."""


@frozen
class Settings:
    """What a project's settings file says, or nothing where ``path`` is None. ``include`` folders are absolute and
    stand in ``flags`` too, behind what the build compiles the file with (``built``); ``target`` is a card's name, or
    empty. ``model`` is read by ``agent.models.settings``, ``hints`` by whoever runs the rules."""

    path: Path | None = None
    target: str = ""
    architectures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    workloads: Mapping[str, Mapping[str, Any]] = field(factory=dict, repr=False)
    model: Mapping[str, Any] = field(factory=dict, repr=False)
    hints: Mapping[str, Any] = field(factory=dict, repr=False)
    built: Built = field(factory=Built)

    def workload(self, document: Document, kernel: Kernel) -> Workload | None:
        """The workload stated for ``kernel`` (by qualified or bare name), checked at its declared sizes; else None."""
        name = next((n for n in (kernel.qualified_name, kernel.name) if n in self.workloads), None)
        if name is None:
            return None
        where = f"{self.path}: [workload.{name}]"
        try:
            statements = "\n".join(_statements(self.workloads[name]))
            found = read_statements(statements, kernel.qualified_name, Origin("settings", None, str(self.path)))
            if not found.plan.launches():
                raise WorkloadError('nothing is launched; add `plan = "launch kernel<<<grid, block>>>(...)"`')
            bind(found, found.plan, None, document)
        except WorkloadError as error:
            raise SettingsError(f"{where}: {error.message}") from None
        return found


def settings_of(path: str) -> Settings:
    """The settings for a file (nothing for a text without one): its project's, and the flags that its build has for it
    where the project says nothing else. Reads files: not for between two keys. Raises SettingsError."""
    if not path:
        return Settings()
    project, built = read_settings(Path(path).resolve().parent), built_as(path)
    return evolve(project, flags=merged(built.flags, project.flags), built=built)


def read_settings(folder: Path) -> Settings:
    """The settings in ``folder`` or the nearest folder above it that has some; else nothing. Raises SettingsError."""
    for place in (folder, *folder.parents):
        path = place / FILE
        if path.is_file():
            return read_settings_file(path)
    return Settings()


def read_settings_file(path: Path) -> Settings:
    """Read one settings file. Raises SettingsError naming the file, the key and what was expected."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no valid TOML: {error}") from None
    _known(told, _PROJECT, path, "")
    workloads = told.get("workload", {})
    if not isinstance(workloads, dict) or not all(isinstance(entry, dict) for entry in workloads.values()):
        _fail(path, "workload", "a table for each kernel, as in [workload.softmax]")
    model = told.get("model", {})
    if not isinstance(model, dict):
        _fail(path, "model", "a table, as in [model]")
    hints = told.get("hints", {})
    if not isinstance(hints, dict):
        _fail(path, "hints", "a table, as in [hints]")
    for name, entry in workloads.items():
        _known(entry, _WORKLOAD, path, f"workload.{name}.")
        _check_entry(entry, path, f"workload.{name}.")
    flags = _texts(told, "flags", path)
    for flag in flags:
        if not FLAGS.fullmatch(flag):
            _fail(path, "flags", f"defines, include folders and floating-point options only, not `{flag}`")
    target = told.get("target", "")
    if not isinstance(target, str):
        _fail(path, "target", "a card's name in quotes")
    include = tuple((path.parent / folder).resolve() for folder in _texts(told, "include", path))
    paths = tuple(f"-I{folder}" for folder in include)
    architectures = _texts(told, "architectures", path)
    return Settings(path, target, architectures, (*flags, *paths), include, workloads, model, hints)


def _fail(path: Path, key: str, expected: str) -> NoReturn:
    raise SettingsError(f"{path}: `{key}`: expected {expected}")


def _known(table: Mapping[str, Any], known: tuple[str, ...], path: Path, prefix: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean `{prefix}{near[0]}`?" if near else f"; known are {', '.join(known)}"
            raise SettingsError(f"{path}: unknown key `{prefix}{key}`{hint}")


def _texts(table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        _fail(path, key, 'a list of texts, as in ["a", "b"]')
    return tuple(value)


def _check_entry(entry: Mapping[str, Any], path: Path, prefix: str) -> None:
    for key, value in entry.items():
        if key in _STATEMENT:
            plain = isinstance(value, dict) and all(isinstance(v, str | int | float) for v in value.values())
            if not plain:
                _fail(path, prefix + key, "a table of name = value")
        elif key == "lossy" and not isinstance(value, bool):
            _fail(path, prefix + key, "true or false")
        elif key == "reference" and not isinstance(value, str):
            _fail(path, prefix + key, 'text such as "refs.py:softmax"')
        elif key == "plan" and not isinstance(value, str):
            _fail(path, prefix + key, 'text such as "launch kernel<<<grid, block>>>(...)"')
        elif key == "flags":
            _texts(entry, key, path)


def _statements(entry: Mapping[str, Any]) -> Iterator[str]:
    """The same as directive statements."""
    for key, form in _STATEMENT.items():
        for name, value in entry.get(key, {}).items():
            yield form.format(name=name, value=" ".join(str(value).split()))
    if entry.get("plan"):
        yield str(entry["plan"])
    if entry.get("flags"):
        yield "flags " + " ".join(entry["flags"])
    if entry.get("lossy"):
        yield "lossy"
    if entry.get("reference"):
        yield f"reference {entry['reference']}"
