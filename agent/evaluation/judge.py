"""A candidate through the gates, cheap to dear, to a verdict on three axes."""

import hashlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from time import monotonic

from attrs import evolve, frozen

from agent.evaluation.comparators.base import LESS, Errors, worst
from agent.evaluation.deadline import ended
from agent.evaluation.draws import drawing, fresh_root
from agent.evaluation.estimates.estimate import Estimate, estimate, moved_counters, speed
from agent.evaluation.estimates.uneven import uneven
from agent.evaluation.gates import gates
from agent.evaluation.limits import limits
from agent.evaluation.measures.measurement import evidence_of, measured_speed
from agent.evaluation.prepare import Prepared
from agent.evaluation.ran import Ran
from agent.evaluation.setting import FULL
from agent.evaluation.trial import FAILED, UNDECIDED, Gate, Ruling, Trial, result, undecided
from agent.evaluation.unjudged import unjudged
from agent.evaluation.verdict import Correctness, Evidence, GateResult, Precision, Speed, Timing, Verdict
from agent.execution.device import Fault
from agent.execution.timing import Timer
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.program import Program

_NOTHING = 1e-200
"""Outputs below this scale are all zeros: errors relative to them mean nothing."""

FIRST_PROCESSES = 4
"""The one that runs the candidate, and those with which the timing begins (a control, a race, a check): they come
while the first gates work."""

BETTER = 0.5
"""``better``: the error, largest and root mean square, is at most this part of the original's, everywhere."""


def judge(
    prepared: Prepared,
    candidate: Program,
    allow_lossy: bool = False,
    progress: Callable[[GateResult], None] | None = None,
    scope: str = "plan",
) -> Verdict:
    """Run the gates until one says no. ``progress`` is told each gate's result; ``scope`` is what the rewrite may
    change (``drop-in``, ``relaunch``, ``plan``). A workload's own ``lossy`` allows what ``allow_lossy`` does. Never
    raises for what the candidate is or does; ShortExtent where the original goes beyond an extent that was probed."""
    return _through(Trial(prepared, candidate, allow_lossy, scope), progress, fresh_root())[0]


@frozen
class Judged:
    """A verdict with what it takes to repeat it: the root of all that was drawn for this candidate, and each run of the
    correctness gate with its digests."""

    verdict: Verdict
    secret: str
    runs: tuple[Ran, ...]


def examine(
    prepared: Prepared,
    candidate: Program,
    allow_lossy: bool = False,
    progress: Callable[[GateResult], None] | None = None,
    scope: str = "plan",
    secret: str = "",
) -> Judged:
    """As :func:`judge`, for a record; with the numbers of an earlier verdict where its ``secret`` is given."""
    root = secret or fresh_root()
    verdict, trial = _through(Trial(prepared, candidate, allow_lossy, scope, kept=True), progress, root)
    return Judged(verdict, root, trial.runs)


def _through(trial: Trial, progress: Callable[[GateResult], None] | None, secret: str) -> tuple[Verdict, Trial]:
    trial = evolve(trial, allow_lossy=trial.allow_lossy or trial.prepared.workload.lossy)
    cancelled, device = trial.prepared.setting.cancelled, trial.prepared.setting.device
    if isinstance(device, Timer):
        device.begin(FIRST_PROCESSES)
    results: list[GateResult] = []
    last: Ruling | None = None
    for gate in gates():
        start = monotonic()
        with drawing(secret, gate.name):
            last = undecided(trial, "cancelled") if cancelled() else _ruling(gate, trial)
        if last.outcome == UNDECIDED and last.reason.startswith("cancelled") and cancelled():
            last = evolve(last, reason=ended(trial.prepared.setting))
        trial = last.trial
        results.append(result(gate, last, monotonic() - start))
        if progress is not None:
            progress(results[-1])
        if last.outcome in (FAILED, UNDECIDED):
            break
    assert last is not None
    return _verdict(trial, tuple(results), last), trial


def _ruling(gate: Gate, trial: Trial) -> Ruling:
    """What a gate says; a plan that has no numbers at some size is no reason to lose the verdict."""
    try:
        return gate.run(trial)
    except (WorkloadError, SourceError) as error:
        return undecided(trial, str(error))


def _verdict(trial: Trial, results: tuple[GateResult, ...], last: Ruling) -> Verdict:
    ended = last.outcome in (FAILED, UNDECIDED)
    state = last.state if ended and last.state != "less" else "right"
    estimated = _estimate(trial) if state == "right" and not trial.prepared.setting.cancelled() else "not right"
    return Verdict(
        correctness=_correctness(trial, state, last.reason if state != "right" else "", last.fault),
        precision=_precision(trial, state),
        speed=_speed(trial, estimated) if state == "right" else Speed("none", note=f"the rewrite is {state}"),
        gates=results,
        evidence=_evidence(trial, estimated, any(item.gate == "memory" for item in results)),
    )


def _estimate(trial: Trial) -> Estimate | str:
    prepared = trial.prepared
    known = prepared.original_estimate
    if isinstance(known, str):
        return known
    assert trial.build is not None
    return estimate(trial.candidate, trial.build, prepared.workload, prepared.setting, [known.recipe])


def _speed(trial: Trial, estimated: Estimate | str) -> Speed:
    if trial.measured is not None and not trial.untimed:
        return measured_speed(trial.measured, trial.elsewhere, trial.floor)
    setting = trial.prepared.setting
    found = speed(trial.prepared.original_estimate, estimated, setting)
    if found.state == "estimated" and setting.depth == FULL and uneven(trial):
        words = "no estimate: blocks that were not counted do more than those that were"
        found = Speed("none", target=setting.target.name, note=words)
    return evolve(found, note="; ".join(filter(None, (trial.untimed, found.note))))


def _correctness(trial: Trial, state: str, reason: str, fault: Fault | None) -> Correctness:
    return Correctness(
        state=state,
        device=trial.prepared.setting.device.name,
        reason=reason,
        families=trial.families,
        sizes=trial.sizes,
        largest=trial.largest,
        sampled=trial.sampled,
        fault=fault,
    )


def _precision(trial: Trial, state: str) -> Precision:
    prepared = trial.prepared
    measured = [item for item in trial.comparisons if item.errors is not None]
    if state != "right":
        return Precision("unchecked", oracle=f"the rewrite is {state}")
    if not measured:
        return Precision("same", oracle=prepared.oracle)
    errors = [item.errors for item in measured if item.errors is not None]
    candidate, original = max(item.candidate for item in errors), max(item.original for item in errors)
    if worst(measured).grade == LESS:
        return Precision("less", candidate, original, prepared.oracle)
    if not trial.oracle_used:
        equal = candidate == 0.0 and all(item.candidate_rms == 0.0 for item in errors)
        words = f"{prepared.oracle}; every bit is the original's" if equal else prepared.oracle
        return Precision("same" if equal else "unchecked", candidate, None, words)
    return Precision("better" if _better(errors) else "same", candidate, original, prepared.oracle)


def _better(errors: list[Errors]) -> bool:
    pairs = [(item.candidate, item.original) for item in errors]
    pairs += [(item.candidate_rms, item.original_rms) for item in errors]
    return any(original > 0 for _, original in pairs) and all(mine <= BETTER * theirs for mine, theirs in pairs)


def _said_once(*found: str) -> tuple[str, ...]:
    """Without what stands there a second time, with the reason behind a colon."""
    return tuple(text for text in dict.fromkeys(found) if not any(other.startswith(f"{text}: ") for other in found))


def _evidence(trial: Trial, estimated: Estimate | str, races: bool) -> Evidence:
    prepared = trial.prepared
    setting, tested, built = prepared.setting, prepared.selftest, trial.build or prepared.build
    return Evidence(
        original_hash=fingerprint(prepared.original),
        candidate_hash=fingerprint(trial.candidate),
        compiler=prepared.build.compiler,
        flags=setting.options.flags,
        arch=setting.options.arch,
        device=setting.device.name,
        contract=prepared.contract.summary,
        seeds=trial.seeds,
        mutants_killed=tested.killed,
        mutants_not_applicable=tested.not_applicable,
        errors=_worst_errors(trial),
        counters=moved_counters(prepared.original_estimate, estimated),
        resources=trial.resources,
        not_checked=_said_once(
            *trial.not_checked,
            *_unasked(prepared),
            *limits(prepared.workload, trial.beyond, races, built.ptx, sorted(trial.inexact)),
            *unjudged(prepared.original, trial.candidate, prepared.workload),
            *_one_card(trial),
        ),
        tool=tool(),
        timing=_timing(trial),
        inexact=tuple(sorted(trial.inexact)),
        baselines=trial.baselines,
    )


def _unasked(prepared: Prepared) -> tuple[str, ...]:
    """The user's own reference, where nobody let it run."""
    named = prepared.workload.reference
    return (f"against {named}, which was not run",) if named is not None and prepared.setting.reference is None else ()


def _one_card(trial: Trial) -> tuple[str, ...]:
    """What a measurement says nothing about."""
    timed = trial.measured is not None and not trial.untimed
    return (f"speed on other cards than {trial.prepared.setting.device.name}",) if timed else ()


def _timing(trial: Trial) -> Timing | None:
    timer = trial.prepared.setting.device
    if trial.measured is None or not isinstance(timer, Timer):
        return None
    return evidence_of(trial.measured, trial.floor, timer.figures())


def _worst_errors(trial: Trial) -> dict[str, float]:
    """The largest of each, over all runs and outputs."""
    found = [item.errors for item in trial.comparisons if item.errors is not None]
    errors = [item for item in found if item.scale > _NOTHING]
    if not errors:
        return {}
    return {
        "candidate max": max(item.candidate for item in errors),
        "original max": max(item.original for item in errors),
        "candidate rms": max(item.candidate_rms for item in errors),
        "original rms": max(item.original_rms for item in errors),
        "allowed max": max(item.limit for item in errors),
        "lanes apart": float(sum(item.apart for item in errors)),
    }


def fingerprint(program: Program) -> str:
    """A hash of a program's text and plan."""
    return hashlib.sha256(program.document.text + repr(program.plan).encode()).hexdigest()


def tool() -> str:
    """Name and version of what made a verdict."""
    try:
        return f"cuda-lsp {version('cuda-lsp')}"
    except PackageNotFoundError:
        return "cuda-lsp (not installed)"
