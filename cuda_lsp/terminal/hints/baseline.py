"""Findings that are known and put up with: a file of them, so that new ones alone count.

A finding is known by its rule, its path, its line without regard to blanks, and which one of several on such lines it
is. Lines that move, or are indented otherwise, stay known.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.hints.reported import Reported

SCHEMA = 1
_FIELDS = {"path": str, "rule": str, "line": str, "occurrence": int}

Known = Callable[[Reported], bool]


def read_baseline(file: str) -> Known:
    """Whether a finding stands in a baseline. Raises CommandError for a file that is none."""
    try:
        told = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(Exit.INPUT, f"{file} cannot be read: {error.strerror or error}; {_MEND}") from None
    except ValueError as error:
        raise CommandError(Exit.INPUT, f"{file} is no baseline: {error}; {_MEND}") from None
    entries = told.get("known") if isinstance(told, dict) and told.get("schema") == SCHEMA else None
    if not isinstance(entries, list) or not all(_sound(entry) for entry in entries):
        raise CommandError(Exit.INPUT, f"{file} is no baseline of schema {SCHEMA}; {_MEND}")
    known = {tuple(entry[name] for name in _FIELDS) for entry in entries}
    return lambda finding: tuple(_entry(finding, file)[name] for name in _FIELDS) in known


_MEND = "make one with --write-baseline"


def _sound(entry: object) -> bool:
    return isinstance(entry, dict) and all(type(entry.get(name)) is kind for name, kind in _FIELDS.items())


def _entry(finding: Reported, file: str) -> dict[str, Any]:
    """Paths count from the baseline's folder: where the command is run does not matter."""
    values = (path_from(os.path.dirname(os.path.abspath(file)), finding.path), finding.rule, finding.line_hash)  # noqa: PTH100, PTH120
    return dict(zip(_FIELDS, (*values, finding.occurrence), strict=True))


def path_from(folder: str, path: str) -> str:
    """``path`` as seen from ``folder``, with slashes; absolute where there is no way from one to the other."""
    try:
        seen = os.path.relpath(path, folder)
    except ValueError:  # another drive
        seen = os.path.abspath(path)  # noqa: PTH100
    return seen.replace(os.sep, "/")


@frozen
class NewBaseline:
    """Both raise CommandError where it cannot be written. ``commit`` puts it in the place of an old one."""

    add: Callable[[Reported], None]
    commit: Callable[[], None]


@contextmanager
def new_baseline(file: str) -> Iterator[NewBaseline]:
    """A baseline that is written as findings come. Without ``commit`` nothing is left of it. Raises CommandError."""
    beside, between = Path(f"{file}.{os.getpid()}.tmp"), "\n"
    with _writing(file):
        sink = beside.open("w", encoding="utf-8", newline="\n")

    def add(finding: Reported) -> None:
        nonlocal between
        with _writing(file):
            sink.write(between + json.dumps(_entry(finding, file)))
        between = ",\n"

    def commit() -> None:
        with _writing(file):
            sink.write("\n]}\n")
            sink.close()
            beside.replace(file)

    try:
        with _writing(file):
            sink.write(f'{{"schema": {SCHEMA}, "known": [')
        yield NewBaseline(add, commit)
    finally:
        with suppress(OSError):
            sink.close()
        beside.unlink(missing_ok=True)


@contextmanager
def _writing(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(Exit.INPUT, f"{file} cannot be written: {error.strerror or error}") from None
