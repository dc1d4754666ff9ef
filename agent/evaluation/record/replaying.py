"""A record's verdict found again: the same gates over the same programs, with the same numbers or with fresh ones.

Nothing of a record is trusted. Its sources go the way of any candidate (a compiler that may crash, no header outside of
CUDA's own, the emulator or a runner of their own); its flags are those that reach NVRTC and nothing else; its sizes are
looked at before anything is laid out; the user's own limits on time hold, never the record's alone.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.draws import fresh_root
from agent.evaluation.judge import Judged, examine
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.record.form import Record, Secrets, Source
from agent.evaluation.record.sources import text_hash
from agent.evaluation.record.values import RecordError
from agent.evaluation.setting import FULL, SCREEN, Setting
from agent.evaluation.sizes import bases, bound_at
from agent.execution.compiler.flags import translate
from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.leaving import scratch
from agent.execution.targets import UnknownTarget, find_target
from agent.source.document import parse
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.plan import Plan, Repeat, Step
from agent.workload.program import Program

LARGEST_SOURCE = 4 << 20
"""Bytes of a source, as of any file that is read."""

LARGEST_START = 4 << 30
"""Bytes of all buffers at the smallest sizes that the original is tried at: they are laid out before anything runs."""

MOST_STEPS = 2_000_000_000

DEEPEST = 16
"""Repeats inside one another."""

MOST = {"sizes": 32, "constants": 1000, "buffers": 200, "comparators": 200}
"""Entries of a workload: each size is varied by itself, each buffer laid out."""
_ARCH = re.compile(r"sm_\d{2,3}[af]?")
_ROOT = re.compile(r"[0-9a-f]{32}")
_ODD = re.compile(r"^\W+|[^\w.+ -]")


@frozen
class Reopened:
    """A record's programs, parsed, in a folder of their own where no header lies."""

    record: Record
    original: Program
    candidate: Program


@frozen
class Again:
    """The verdict found again with its programs' ``prepared``, or why the original could not be run here."""

    prepared: Prepared | None
    judged: Judged | None
    failure: Failure | None = None


@contextmanager
def reopened(record: Record) -> Iterator[Reopened]:
    """The record's programs. Raises RecordError where they are none."""
    _check(record)
    with scratch() as folder:
        (folder / ".cuda-lsp.toml").touch()  # the end of what an #include may reach
        original = _program(record.original, record.workload.plan, folder, "original")
        candidate = _program(record.candidate, record.plan, folder, "rewrite")
        _fits(record, original)
        yield Reopened(record, original, candidate)


def rerun(
    found: Reopened, device: Device, arch: str, seconds: float, cancelled: Callable[[], bool], fresh: bool
) -> Again:
    """Judge again on ``device``, compiled for ``arch``; ``fresh`` with other numbers than the record's. ``seconds`` cap
    it beside what the record says. Raises RecordError where it takes more memory than there is."""
    record = found.record
    secrets = Secrets(fresh_root(), fresh_root()) if fresh else record.secrets
    setting = _setting(record, device, arch, seconds, cancelled, secrets.original)
    try:
        prepared = prepare(found.original, record.workload, setting)
        if isinstance(prepared, Failure):
            return Again(None, None, prepared)
        if prepared.contract.broken:
            return Again(prepared, None)
        deep = evolve(prepared, setting=evolve(setting, depth=record.settings.depth))
        asked = record.settings
        return Again(deep, examine(deep, found.candidate, asked.lossy, scope=asked.scope, secret=secrets.candidate))
    except ShortExtent as error:
        return Again(None, None, Failure("workload", str(error)))
    except MemoryError:
        raise RecordError("a replay of this record needs more memory than there is here") from None


def _setting(
    record: Record, device: Device, arch: str, seconds: float, cancelled: Callable[[], bool], secret: str
) -> Setting:
    asked = record.settings
    return Setting(
        device=device,
        target=find_target(asked.target),
        options=Options(arch=arch, flags=asked.flags, fmad=asked.fmad),
        depth=asked.prepared,
        seconds=max(1.0, min(asked.seconds, seconds)),
        step_cap=max(1, min(asked.step_cap, MOST_STEPS)),
        cancelled=cancelled,
        special=asked.special,
        architectures=asked.architectures,
        secret=secret,
    )


def _check(record: Record) -> None:
    """What is not seen by types. Raises RecordError."""
    asked = record.settings
    for source in (record.original, record.candidate):
        if len(source.text) > LARGEST_SOURCE:
            raise RecordError(f"{source.file} is larger than {LARGEST_SOURCE >> 20} MB")
        if text_hash(source.text) != source.sha256:
            raise RecordError(f"{source.file} is not the text that its hash is of")
    _one_of("settings.depth", asked.depth, (SCREEN, FULL))
    _one_of("settings.prepared", asked.prepared, (SCREEN, FULL))
    _one_of("settings.special", asked.special, ("report", "refuse"))
    _one_of("settings.scope", asked.scope, ("drop-in", "relaunch", "plan"))
    for what, most in MOST.items():
        if len(getattr(record.workload, what)) > most:
            raise RecordError(f"the record's workload has more than {most} {what}")
    for plan in (record.workload.plan, record.plan):
        if _depth(plan.steps) > DEEPEST:
            raise RecordError(f"the record's plan has more than {DEEPEST} repeats inside one another")
    for arch in (asked.arch, *asked.architectures):
        if not _ARCH.fullmatch(arch):
            raise RecordError(f"{arch!r} is no architecture")
    for flag in asked.flags:
        if translate((flag,)).passed != (flag,) or not flag.isprintable() or len(flag) > 1000:
            raise RecordError(f"the record asks for the compiler flag {flag[:60]!r}, which no replay passes on")
    for root in (record.secrets.original, record.secrets.candidate):
        if not _ROOT.fullmatch(root):
            raise RecordError("the record's seeds are no 32 hexadecimal digits")
    try:
        find_target(asked.target)
    except UnknownTarget as error:
        raise RecordError(str(error)) from None


def _depth(steps: tuple[Step, ...]) -> int:
    return max((1 + _depth(step.body) if isinstance(step, Repeat) else 1 for step in steps), default=0)


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise RecordError(f"`{what}` is {value[:60]!r}; it may be {' or '.join(known)}")


def _program(source: Source, plan: Plan, folder: Path, label: str) -> Program:
    """Under the file's own name, but for what a compiler might take for an option or a folder. Nothing is written."""
    name = _ODD.sub("_", source.file[-100:]) or "kernel.cu"
    return Program(parse(source.text.encode("utf-8", "replace"), str(folder / name)), plan, label)


def _fits(record: Record, original: Program) -> None:
    """The workload as numbers, before anything is made of them. A candidate's plan is the gates' to judge."""
    try:
        bound_at(record.workload, original)
        smallest = bound_at(record.workload, original, next(bases(record.workload, original)))
    except (WorkloadError, SourceError) as error:
        raise RecordError(f"the record's workload cannot be run: {error}") from None
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise RecordError(f"the record's workload means nothing ({type(error).__name__})") from None
    nbytes = sum(buffer.nbytes for buffer in smallest.buffers)
    if nbytes > LARGEST_START:
        raise RecordError(
            f"the record's workload takes {nbytes / 1e9:.1f} GB at its smallest sizes: too much to replay"
        )
