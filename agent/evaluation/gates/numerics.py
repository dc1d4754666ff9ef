"""Precision: the candidate's error against the original's own, both measured against float64."""

from time import monotonic

from attrs import evolve

from agent.evaluation.comparators import Comparison
from agent.evaluation.comparators.base import LESS, SAME, worst
from agent.evaluation.doubts import BEYOND, OPEN, ROW, Doubt, Settled, further, gathered, gross, settled
from agent.evaluation.trial import FAILED, NOT_APPLICABLE, Ruling, Trial, gate, passed, undecided, wrong

SECONDS = {"screen": 60.0, "full": 120.0}
"""After this long no further contents are run: what they told so far decides."""


@gate(
    "numerics",
    order=70,
    reason="no loss of precision goes unseen: the budget is four times the original's own error and two units",
    answers="half or tf32 arithmetic inside a float kernel, dropped compensation, unstable one-pass formulas",
)
def numerics(trial: Trial) -> Ruling:
    found = [item for item in trial.comparisons if item.errors is not None]
    if not found and not trial.doubts:
        return Ruling(NOT_APPLICABLE, "outputs are compared exactly", trial)
    if found and worst(found).grade == LESS:
        return _less(trial, worst(found).message)
    return _doubted(trial) if trial.doubts else passed(trial, _words(trial))


def _doubted(trial: Trial) -> Ruling:
    """Each doubt is settled; the first that is no luck decides."""
    end = monotonic() + SECONDS[trial.prepared.setting.depth]
    known: dict[object, Settled] = {}
    for doubt in gathered(trial.doubts):
        found = _settle(trial, doubt, end)
        if isinstance(found, Ruling):
            return found
        known[doubt.kind] = found
    allowed = [_allowed(item.comparison, known[item.kind]) for item in trial.doubts]
    trial = evolve(trial, comparisons=(*trial.comparisons, *allowed), doubts=())
    most = max(known.values(), key=lambda item: item.own)
    luck = f"the original was lucky in {len(known)} of these runs: on further contents it errs by up to {most.own:.1e}"
    return passed(trial, f"{_words(trial)}; {luck}")


def _settle(trial: Trial, doubt: Doubt, end: float) -> Settled | Ruling:
    """What is allowed as luck, or the ruling that ends the trial."""
    assert trial.build is not None and doubt.comparison.errors is not None
    prepared, first, name = trial.prepared, doubt.comparison.errors, doubt.comparison.output
    bench = evolve(prepared.bench, setting=prepared.setting)
    more: list[Comparison] = []
    state = settled(first, more)
    for seen in further(bench, trial.build, trial.candidate, doubt):
        bad = next((item for item in seen if gross(item, [doubt.comparison, *more])), None)
        if bad is not None:
            return wrong(trial, f"{bad.message} ({doubt.case})")
        more += [item for item in seen if item.output == name]
        state = settled(first, more)
        if state.state != OPEN or monotonic() > end:
            break
    if prepared.setting.cancelled():
        return undecided(trial, "cancelled")
    told = f"the original errs by up to {state.own:.1e} in {state.runs} such runs"
    if state.state == BEYOND:
        return _less(trial, f"{doubt.comparison.message}; {told}")
    if state.state == OPEN and state.runs <= ROW:
        return _less(trial, f"{doubt.comparison.message}; too few runs to call it luck: {told}")
    return state


def _allowed(item: Comparison, state: Settled) -> Comparison:
    assert item.errors is not None
    limit, limit_rms = max(item.errors.limit, state.limit), max(item.errors.limit_rms, state.limit_rms)
    return Comparison(item.output, SAME, errors=evolve(item.errors, limit=limit, limit_rms=limit_rms))


def _less(trial: Trial, why: str) -> Ruling:
    trial = evolve(trial, comparisons=(*trial.comparisons, *(item.comparison for item in trial.doubts)), doubts=())
    if trial.allow_lossy:
        return passed(trial, f"less precise, as allowed: {why}")
    return Ruling(FAILED, f"less precise: {why}", trial, "less")


def _words(trial: Trial) -> str:
    found = [item.errors for item in trial.comparisons if item.errors is not None]
    peak = max(found, key=lambda item: item.candidate)
    return (
        f"error {peak.candidate:.1e} of the output's scale, the original's {peak.original:.1e}, "
        f"allowed {peak.limit:.1e}"
    )
