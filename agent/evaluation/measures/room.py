"""How far the original is from the least time that its bytes take: measured where there is a card, else estimated."""

from agent.evaluation.estimates.estimate import Estimate, Headroom, headroom
from agent.evaluation.estimates.traffic import LAUNCH_SECONDS
from agent.evaluation.measures.floor import Floor, floor
from agent.evaluation.measures.measuring import SCREEN, Unmeasured, control
from agent.evaluation.measures.statistics import seconds
from agent.evaluation.oracles.truth import outputs
from agent.evaluation.prepare import Prepared
from agent.evaluation.sizes import bound_at, declared
from agent.execution.timing import Figures, Timer
from agent.workload.errors import WorkloadError

_BELOW = 0.95
"""An original that is said to be this much faster than its floor shows that the floor's bytes are wrong."""


def room(prepared: Prepared) -> Headroom:
    """The original's time against its floor: both from the card where it can be timed there, else both estimated. Once
    for each original: what is timed is the control that the first screen needs anyway."""
    if prepared.cache.room is None:
        prepared.cache.room = _measured(prepared) or headroom(prepared)
    return prepared.cache.room


def least(prepared: Prepared, figures: Figures) -> Floor | str:
    """The least time at the declared size on a card with these figures, or why there is none."""
    estimate, top = prepared.original_estimate, declared(prepared.workload)
    if not isinstance(estimate, Estimate):
        return estimate
    if dict(estimate.recipe.target) != top:
        return "its bytes could not be counted at the declared size"
    bound = bound_at(prepared.workload, prepared.original)
    return floor(estimate.needed_bytes, sum(buffer.nbytes for buffer in outputs(bound)), figures)


def original_seconds(prepared: Prepared) -> float | str:
    """What the original takes at the declared size on the card that there is, or why nobody could measure it."""
    timer = prepared.setting.device
    if not isinstance(timer, Timer):
        return "nothing can be timed on this device"
    try:
        timed = control(prepared, timer, declared(prepared.workload), SCREEN)
    except WorkloadError as error:
        return str(error)
    return timed.reason if isinstance(timed, Unmeasured) else seconds([timed.cold], 0)


def _measured(prepared: Prepared) -> Headroom | None:
    timer, estimate = prepared.setting.device, prepared.original_estimate
    if not isinstance(timer, Timer) or not isinstance(estimate, Estimate) or prepared.setting.cancelled():
        return None
    figures = timer.figures(prepared.setting.cancelled)
    found = figures if isinstance(figures, str) else least(prepared, figures)
    taken = found if isinstance(found, str) else original_seconds(prepared)
    if isinstance(found, str) or isinstance(taken, str):
        return None
    ratio = taken / max(found.seconds, LAUNCH_SECONDS)
    notes = [f"{taken * 1e6:.2f} us; {found.words}"]
    if found.seconds < LAUNCH_SECONDS:
        notes.append("so small that a launch takes longer than the work")
    doubts = ("it is below the floor, whose bytes are therefore too many",) if ratio < _BELOW else ()
    return Headroom(
        ratio, int(estimate.dram_bytes), int(estimate.needed_bytes), "; ".join((*notes, *doubts)), doubts=doubts,
        measured=True,
    )  # fmt: skip
