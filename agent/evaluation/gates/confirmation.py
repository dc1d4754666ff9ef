"""A figure that is shown comes from new processes, never from the search's own best."""

from time import monotonic

from attrs import evolve

from agent.evaluation.gates.timing import said
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import ASIDE, CONFIRM, measure, other_sizes
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import declared
from agent.evaluation.trial import NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed, wrong
from agent.execution.timing import Timer
from agent.workload.errors import WorkloadError

_PROCESSES = 8
"""For four other sizes: what is timed, and what is checked."""

_PATIENCE = 12.0
"""Seconds after which no further size is timed; those left out are named."""


@gate(
    "confirmation",
    order=92,
    reason="the best of many timings is too good: what is shown is measured anew, in new processes and at other sizes",
    answers="lucky runs, tuning to one size, figures that one process happens to give",
)
def confirmation(trial: Trial) -> Ruling:
    timer, first = trial.prepared.setting.device, trial.measured
    if not isinstance(timer, Timer) or trial.prepared.setting.depth != FULL:
        return Ruling(NOT_APPLICABLE, "a screen confirms nothing", trial)
    if first is None:
        return Ruling(NOT_CHECKED, trial.untimed or "nothing was timed", trial)
    if first.state == "slower":
        return Ruling(NOT_APPLICABLE, "slower at once: nothing to confirm", trial)
    timer.ready(2 * CONFIRM.processes + 1)
    found = measure(trial, timer, declared(trial.prepared.workload), CONFIRM, then=_PROCESSES)
    if not isinstance(found, Measurement):
        if found.wrong:
            return wrong(trial, found.reason)
        return Ruling(NOT_CHECKED, found.reason, evolve(trial, measured=None, untimed=found.reason))
    return _elsewhere(evolve(trial, measured=found), timer, found)


def _elsewhere(trial: Trial, timer: Timer, found: Measurement) -> Ruling:
    """The other sizes, as many as there is time for."""
    begun = monotonic()
    timer.ready(_PROCESSES)
    seen: list[Measurement] = []
    for sizes in other_sizes(declared(trial.prepared.workload), trial.prepared.contract.rules):
        words = f"speed at {' '.join(f'{name}={value}' for name, value in sizes.items())}"
        if monotonic() - begun > _PATIENCE or trial.prepared.setting.cancelled():
            trial = trial.unchecked(f"{words} (out of time)")
            continue
        try:
            other = measure(trial, timer, sizes, ASIDE, found.alone)
        except WorkloadError as error:
            trial = trial.unchecked(f"{words}: {error}")
            continue
        if isinstance(other, Measurement):
            seen.append(other)
        elif other.wrong:
            return wrong(trial, f"{other.reason} ({words})")
        else:
            trial = trial.unchecked(f"{words}: {other.reason}")
    return passed(evolve(trial, elsewhere=tuple(seen)), said(found))
