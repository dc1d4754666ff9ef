"""How findings are written, one by one as they come: nothing waits for the last file."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import click
from attrs import define, field, frozen
from rich.cells import cell_len

from agent.evaluation.plain import unstructure
from cuda_lsp.terminal.exits import Exit
from cuda_lsp.terminal.hints.reported import Reported
from cuda_lsp.terminal.hints.walk import Problem
from cuda_lsp.terminal.output import envelope
from cuda_lsp.terminal.profile_table import printable

FIELDS: dict[str, Any] = {
    "findings": tuple[Reported, ...],
    "problems": tuple[Problem, ...],
    "files": int,
    "kernels": int,
    "damaged": int,
    "known": int,
    "ran": int,
    "unrun": dict[str, int],
    "left": dict[str, int],
}
"""What JSON has beside the envelope."""


@define
class Tally:
    """What was seen so far. ``known`` findings stand in the baseline, ``left`` counts what was passed over, by why.
    ``ran`` kernels were counted, ``unrun`` ones were to be, by why they were not."""

    files: int = 0
    kernels: int = 0
    damaged: int = 0
    known: int = 0
    ran: int = 0
    unrun: Counter[str] = field(factory=Counter)
    shown: Counter[str] = field(factory=Counter)
    left: Counter[str] = field(factory=Counter)
    problems: list[Problem] = field(factory=list)
    unread: list[str] = field(factory=list)
    """Files with parse errors in which no kernel was found, and where the first error is."""


@frozen
class Form:
    """``begin`` and ``end`` are written around the findings, ``between`` between two of them."""

    one: Callable[[Reported], str]
    begin: Callable[[], str] = lambda: ""
    end: Callable[[Tally, Exit], str] = lambda tally, code: ""
    between: str = ""


def text_form() -> Form:
    """``path:line:column: severity RULE message``; on a terminal with the line and a mark below it."""
    on_terminal = sys.stdout.isatty()
    return Form(lambda found: as_text(found, on_terminal) + "\n")


def as_text(found: Reported, with_source: bool) -> str:
    place = f"{printable(found.path)}:{found.place.line}:{found.place.column}"
    said = f"{place}: {found.severity} {found.rule} {printable(found.message)}"
    if not with_source:
        return said
    before, marked, after = (printable(part) for part in (found.source.before, found.source.marked, found.source.after))
    number = str(found.place.line)
    gutter, mark = " " * len(number), " " * cell_len(before) + "^" * max(1, cell_len(marked))
    return f"{said}\n  {number} | {before}{marked}{after}\n  {gutter} | {click.style(mark, bold=True)}"


def json_form() -> Form:
    """The object of every ``--json``, written piece by piece."""

    def begin() -> str:
        told = json.dumps({name: value for name, value in envelope("hints", Exit.OK).items() if name != "exit"})
        return told[:-1] + ', "findings": [\n'

    def end(tally: Tally, code: Exit) -> str:
        names = [name for name in FIELDS if name != "findings"]
        told = envelope("hints", code, **{name: getattr(tally, name) for name in names})
        rest = {name: told[name] for name in (*names, "exit")}
        return "\n], " + json.dumps(rest)[1:] + "\n"

    return Form(lambda found: json.dumps(unstructure(found)), begin, end, ",\n")
