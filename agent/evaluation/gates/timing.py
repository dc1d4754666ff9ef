"""Measured speed: original and candidate alternate in one process, on fresh contents, every output checked."""

from attrs import evolve

from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import CONFIRM, SCREEN, measure
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import declared
from agent.evaluation.trial import NOT_APPLICABLE, NOT_CHECKED, Ruling, Trial, gate, passed, wrong
from agent.execution.timing import Timer


@gate(
    "timing",
    order=90,
    reason="a speed is believed only where it was measured fairly and the timed calls gave right answers",
    answers=(
        "results kept from the original's call, work left out while a clock runs, warm caches, clock ramps, noise sold "
        "as speed"
    ),
)
def timing(trial: Trial) -> Ruling:
    timer = trial.prepared.setting.device
    if not isinstance(timer, Timer):
        return Ruling(NOT_APPLICABLE, "nothing can be timed on this device", trial)
    confirms = 2 * CONFIRM.processes + 1 if trial.prepared.setting.depth == FULL else 0
    found = measure(trial, timer, declared(trial.prepared.workload), SCREEN, then=confirms)
    if not isinstance(found, Measurement):
        if found.wrong:
            return wrong(trial, found.reason)
        return Ruling(NOT_CHECKED, found.reason, evolve(trial, untimed=found.reason))
    return passed(evolve(trial, measured=found), said(found))


def said(found: Measurement) -> str:
    """A measurement in a line."""
    times = f"{found.original_seconds * 1e6:.2f} us to {found.candidate_seconds * 1e6:.2f} us"
    control = f"the original against itself {found.control.low:.3f} to {found.control.high:.3f}"
    blocks = sum(len(race.cold) for race in found.races)
    ratio = f"ratio {found.cold.ratio:.3f} ({found.cold.low:.3f} to {found.cold.high:.3f})"
    ran = f"{blocks} blocks in {len(found.races)} process{'es' * (len(found.races) != 1)}"
    return f"{found.state}: {times}, {ratio}; {control}; {ran}"
