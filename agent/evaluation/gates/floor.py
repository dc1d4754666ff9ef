"""No program moves its bytes faster than the card can."""

from attrs import evolve

from agent.evaluation.measures.room import least
from agent.evaluation.trial import NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed
from agent.execution.timing import Timer


@gate(
    "floor",
    order=95,
    reason="a time that the card's memory cannot keep to is no time, whatever the clock said",
    answers="work left out, timers that were fooled, data that never left the cache",
)
def beneath(trial: Trial) -> Ruling:
    timer, found = trial.prepared.setting.device, trial.measured
    if not isinstance(timer, Timer) or found is None:
        return Ruling(NOT_APPLICABLE, "nothing was timed", trial)
    figures = timer.figures(trial.prepared.setting.cancelled)
    limit = figures if isinstance(figures, str) else least(trial.prepared, figures)
    if isinstance(limit, str):
        return Ruling(NOT_CHECKED, f"the floor: {limit}", trial)
    trial = evolve(trial, floor=limit)
    if found.candidate_seconds < limit.seconds:
        words = f"{found.candidate_seconds * 1e6:.2f} us is below the floor: {limit.words}"
        return Ruling(NOT_CHECKED, words, evolve(trial, untimed=words))
    return passed(trial, f"{limit.seconds / found.candidate_seconds:.0%} of the floor ({limit.words})")
