"""A kernel whose faults somebody else has named, and what the checks of the memory gate find in it."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from agent.analysis.rules.checking import check
from agent.analysis.rules.selection import Selection
from agent.evaluation import runs
from agent.evaluation.contracts.contract import place
from agent.evaluation.prepare import unoptimised
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bound_at
from agent.execution.compiler import Options, build
from agent.execution.compiler.result import CompileFailure
from agent.execution.device import Fault, Where
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.settings import Settings

RACE, BOUNDS, BARRIER, UNSET, OTHER = "race", "bounds", "barrier", "unset", "other"

_CLASSES = {
    "shared-memory race": RACE,
    "global-memory race": RACE,
    "race on a tested value": RACE,
    "race of a test with an atomic": RACE,
    "race on a polled flag": RACE,
    "race behind a lock without a fence": RACE,
    "out-of-bounds read": BOUNDS,
    "out-of-bounds write": BOUNDS,
    "misaligned access": BOUNDS,
    "null pointer": BOUNDS,
    "write to read-only memory": BOUNDS,
    "divergent barrier": BARRIER,
    "barrier of a split warp": BARRIER,
    "deadlock": BARRIER,
    "step limit": BARRIER,
    "invalid shuffle mask": BARRIER,
    "incomplete warp": BARRIER,
    "uninitialised read": UNSET,
    "left out by the host": UNSET,
}
"""Kinds of faults (:class:`agent.execution.device.Fault`) by the words that suites use."""

SEED = 0x1DE5
_MOST = 400_000_000
"""Thread-instructions: what these kernels do not end within, they never end within."""


@frozen
class Labelled:
    """One kernel of a suite. ``wanted`` are the classes that its authors say it has; none: it is sound. ``workloads``
    are entries of settings for its kernel, each tried; none: what the host code says. ``apart`` says why the label is
    about something else than what CUDA promises, or empty. ``allowed`` may be found beside what is wanted. ``lines``
    are those that a report may name (none: any). ``rules`` of ``cuda-lsp hints`` are asked too: what they find in host
    code counts as memory that is not set."""

    suite: str
    name: str
    text: str = field(repr=False)
    kernel: str
    wanted: frozenset[str]
    workloads: tuple[Mapping[str, Any], ...] = ()
    flags: tuple[str, ...] = ()
    apart: str = ""
    allowed: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    rules: tuple[str, ...] = ()


@frozen
class Seen:
    """What was found. ``problem`` is why nothing could be run, or empty. ``harmless`` are classes of which only reports
    were made that sound programs give too (equal values, polled flags, tested values)."""

    case: Labelled
    found: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    faults: tuple[Fault, ...] = field(default=(), repr=False)
    problem: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """``agreed``; ``named`` (the fault is reported, as one that sound programs have too); ``missed``;
        ``invented``; ``apart``; ``not run``."""
        if self.problem:
            return "not run"
        if self.case.apart:
            return "apart"
        if self.found - self.case.wanted - self.case.allowed or self.elsewhere:
            return "invented"
        if self.case.wanted - self.found - self.harmless:
            return "missed"
        return "agreed" if self.case.wanted <= self.found else "named"

    @property
    def elsewhere(self) -> tuple[Fault, ...]:
        """Faults at other lines than those that are known to have one."""
        told = [fault for fault in self.faults if not fault.benign and not _thrown_away(fault)]
        return tuple(one for one in told if self.case.lines and one.where.line not in self.case.lines)


def look(case: Labelled, checker: Emulator | None = None) -> Seen:
    """Run the kernel as the memory gate does: optimised and unoptimised code, every check."""
    begun = time.monotonic()
    document = parse(case.text.encode(), case.name)
    faults: list[Fault] = []
    entries: tuple[Mapping[str, Any] | None, ...] = case.workloads or (None,)
    try:
        for entry in entries:
            faults += _faults(document, case, entry, checker or Emulator())
        faults += _hinted(document, case)
    except (WorkloadError, SourceError, _NotRun) as error:
        return Seen(case, problem=str(error), seconds=time.monotonic() - begun)
    classes = [(_CLASSES.get(fault.kind, OTHER), fault) for fault in faults if not _thrown_away(fault)]
    found = frozenset(kind for kind, fault in classes if not fault.benign)
    harmless = frozenset(kind for kind, fault in classes if fault.benign) - found
    return Seen(case, found, harmless, tuple(faults), seconds=time.monotonic() - begun)


class _NotRun(Exception):
    """Why a kernel was not run, in words."""


def _thrown_away(fault: Fault) -> bool:
    """Reading unset global or local memory is no fault before the value is used; what suites leave unset is many."""
    return fault.kind == "uninitialised read" and "shared memory" not in fault.message


def _hinted(document: Document, case: Labelled) -> Iterator[Fault]:
    for found in (
        check(document, document.kernel(case.kernel), None, Selection(select=case.rules)) if case.rules else ()
    ):
        where = Where(case.name, document.line(found.span.start), (0, 0, 0), (0, 0, 0))
        yield Fault("left out by the host", case.kernel, where, found.message)


def _faults(document: Document, case: Labelled, entry: Mapping[str, Any] | None, checker: Emulator) -> Iterator[Fault]:
    settings = Settings(workloads={case.kernel: entry}) if entry is not None else Settings()
    workload = find_workload(document, document.kernel(case.kernel), settings)
    program = Program(document, workload.plan, case.name)
    options = Options(arch="sm_90", flags=(*workload.flags, *case.flags))
    setting = Setting(device=checker, target=find_target("H200"), options=options, step_cap=_MOST)
    before = runs.contents(bound_at(workload, program), runs.case({}, families(workload)[0], SEED))
    for chosen in (options, unoptimised(options)):
        built = build(program, chosen)
        if isinstance(built, CompileFailure):
            raise _NotRun(f"does not compile: {built.message.splitlines()[0] if built.message else built.kind}")
        answer = runs.run(setting, built, before, checks=runs.ALL_CHECKS, seconds=20.0)
        if answer.status not in ("ok", "fault"):
            raise _NotRun(f"{answer.status}: {answer.message}")
        yield from answer.faults


def report(seen: Iterable[Seen]) -> Iterator[str]:
    """A line for each suite, then what is not agreed, with the first report of each."""
    rows = list(seen)
    columns = ("agreed", "named", "missed", "invented", "apart", "not run")
    yield f"{'suite':12} {'kernels':>8}" + "".join(f"{column:>10}" for column in columns)
    for suite in dict.fromkeys(row.case.suite for row in rows):
        mine = [row.outcome for row in rows if row.case.suite == suite]
        yield f"{suite:12} {len(mine):8}" + "".join(f"{mine.count(column):10}" for column in columns)
    for row in rows:
        if row.outcome not in ("agreed", "named"):
            wanted = "+".join(sorted(row.case.wanted)) or "sound"
            yield f"  {row.outcome}: {row.case.suite}/{row.case.name} ({wanted}): {_why(row)}"


def _why(row: Seen) -> str:
    if row.problem or row.case.apart:
        return row.problem or row.case.apart
    first = next((fault for fault in row.faults if not fault.benign and not _thrown_away(fault)), None)
    return f"{first.kind}, {place(first)}" if first else "nothing found"
