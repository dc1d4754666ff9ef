"""No program moves its bytes faster than the card can."""

from attrs import evolve

from agent.evaluation.estimate import Estimate
from agent.evaluation.floor import floor
from agent.evaluation.sizes import bound_at, declared
from agent.evaluation.trial import NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed
from agent.evaluation.truth import outputs
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
    figures, estimate = timer.figures(), trial.prepared.original_estimate
    if isinstance(figures, str) or not isinstance(estimate, Estimate):
        return Ruling(NOT_CHECKED, f"the floor: {figures if isinstance(figures, str) else estimate}", trial)
    if dict(estimate.recipe.target) != declared(trial.prepared.workload):
        return Ruling(NOT_CHECKED, "the floor: its bytes could not be counted at the declared size", trial)
    bound = bound_at(trial.prepared.workload, trial.prepared.original)
    least = floor(estimate.needed_bytes, sum(buffer.nbytes for buffer in outputs(bound)), figures)
    trial = evolve(trial, floor=least)
    if found.candidate_seconds < least.seconds:
        words = f"{found.candidate_seconds * 1e6:.2f} us is below the floor: {least.words}"
        return Ruling(NOT_CHECKED, words, evolve(trial, untimed=words))
    return passed(trial, f"{least.seconds / found.candidate_seconds:.0%} of the floor ({least.words})")
