"""From a verdict, and what it was found with, to its record."""

from datetime import UTC, datetime

from attrs import evolve

from agent.evaluation.judge import Judged, tool
from agent.evaluation.prepare import Prepared
from agent.evaluation.record.environment import environment
from agent.evaluation.record.form import SCHEMA, Checker, Contract, Record, Secrets, Settings, SizeRule
from agent.evaluation.record.scrub import scrubbed
from agent.evaluation.record.sources import Told, told
from agent.evaluation.record.values import opened, plain
from agent.execution.compiler.flags import translate
from agent.workload.program import Program
from agent.workload.workload import Workload

_SOURCES = ("original", "candidate")


def record(prepared: Prepared, candidate: Program, judged: Judged, lossy: bool = False, scope: str = "plan") -> Record:
    """The record of one verdict. It holds the seeds' roots, so nobody may see it while candidates are still judged
    with the same ``prepared``."""
    setting = prepared.setting
    sides = told(prepared.original, setting.options.flags), told(candidate, setting.options.flags)
    made = Record(
        schema=SCHEMA,
        tool=tool(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        kernel=prepared.workload.kernel,
        original=sides[0].source,
        candidate=sides[1].source,
        workload=_workload(prepared),
        plan=candidate.plan,
        settings=_settings(prepared, lossy, scope),
        contract=_contract(prepared),
        checker=Checker(prepared.oracle, *_selftest(prepared)),
        environment=environment(prepared, judged.verdict),
        secrets=Secrets(setting.secret, judged.secret),
        verdict=evolve(judged.verdict, evidence=evolve(judged.verdict.evidence, flags=_flags(setting.options.flags))),
        runs=judged.runs,
        left_out=_left_out(sides, prepared, setting.options.flags),
    )
    return _without_places(made, (prepared.original.document.path, candidate.document.path))


def _flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Those that reach the compiler; include folders are told by nothing but what was found in them."""
    return translate(flags).passed


def _workload(prepared: Prepared) -> Workload:
    """With the plan that the original ran."""
    return evolve(prepared.workload, flags=_flags(prepared.workload.flags), plan=prepared.original.plan)


def _settings(prepared: Prepared, lossy: bool, scope: str) -> Settings:
    setting = prepared.setting
    return Settings(
        depth=setting.depth,
        prepared=prepared.bench.setting.depth,
        target=setting.target.name,
        arch=setting.options.arch,
        flags=_flags(setting.options.flags),
        fmad=setting.options.fmad,
        architectures=setting.architectures,
        special=setting.special,
        lossy=lossy,
        scope=scope,
        seconds=setting.seconds,
        step_cap=setting.step_cap,
    )


def _contract(prepared: Prepared) -> Contract:
    found = prepared.contract
    return Contract(
        summary=found.summary,
        deterministic=found.deterministic,
        unaligned=found.unaligned,
        base=dict(found.base),
        tried={name: dict(sizes) for name, sizes in found.tried.items()},
        rules={name: SizeRule(rule.multiple, rule.minimum) for name, rule in found.rules.items()},
        comparators=dict(found.kinds),
        hazards=tuple(sorted(found.hazards)),
    )


def _selftest(prepared: Prepared) -> tuple[tuple[str, ...], ...]:
    found = prepared.selftest
    return found.killed, found.not_applicable, found.survived, found.silent, found.families


def _left_out(sides: tuple[Told, Told], prepared: Prepared, flags: tuple[str, ...]) -> tuple[str, ...]:
    notes = [note for side in sides for note in side.notes]
    captured = [buffer.name for buffer in prepared.workload.buffers if buffer.domain.kind == "data"]
    if captured:
        notes.append(f"captured contents of {', '.join(captured)}: a replay needs them on its own machine")
    found = translate(flags)
    if found.includes:
        notes.append("include folders: what was used of their headers is part of the sources")
    if found.forced:
        notes.append("files of -include: a replay lacks them")
    notes.append("host code: it is never run, and a replay does not compile it")
    return tuple(dict.fromkeys(notes))


def _without_places(made: Record, paths: tuple[str, ...]) -> Record:
    data = plain(made)
    clean = scrubbed({name: value for name, value in data.items() if name not in _SOURCES}, paths)
    return opened({**data, **clean})
