"""PyTorch beside the original: how fast is what everybody would write?"""

import statistics
from functools import partial

from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.oracles.referred import Refers, as_they_are, numbers
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import bound_at, declared
from agent.evaluation.trial import NOT_APPLICABLE, Ruling, Trial, gate, passed
from agent.evaluation.verdict import Baseline
from agent.execution.timing import Exclusive, Figures, Timer

MOST_BYTES = 4 << 30
"""Of inputs at the declared size; they go through a pipe."""

WAYS = (("eager", False), ("torch.compile", True))


@gate(
    "baseline",
    order=94,
    reason="an original that nobody would run is easily beaten",
    answers="a speed-up over a slow original that one line of PyTorch has as well",
)
def baseline(trial: Trial) -> Ruling:
    """The user's PyTorch function on the same card and workload, as it is and compiled. It refuses nothing."""
    setting = trial.prepared.setting
    timer, asked = setting.device, setting.reference
    if (
        not (isinstance(timer, Timer) and isinstance(timer, Exclusive))
        or asked is None
        or trial.measured is None
        or setting.depth != FULL
    ):
        return Ruling(NOT_APPLICABLE, "no PyTorch function to time beside it", trial)
    known = trial.prepared.cache.baselines
    if known is None:
        known = trial.prepared.cache.baselines = _timed(trial, timer.figures(setting.cancelled), timer, asked)
    found = tuple(one for one in known if isinstance(one, Baseline))
    for words in (one for one in known if isinstance(one, str)):
        trial = trial.unchecked(f"the time of PyTorch: {words}")
    said = ", ".join(f"{one.name} {one.seconds * 1e6:.2f} us" for one in found)
    return passed(evolve(trial, baselines=found), said) if found else Ruling(NOT_APPLICABLE, "not timed", trial)


def _timed(trial: Trial, figures: Figures | str, card: Exclusive, asked: Refers) -> tuple[Baseline | str, ...]:
    prepared = trial.prepared
    bound = bound_at(prepared.workload, prepared.original, declared(prepared.workload))
    if isinstance(figures, str):
        return (figures,)
    if sum(buffer.nbytes for buffer in bound.buffers) > MOST_BYTES:
        return (f"more than {MOST_BYTES >> 30} GiB at the declared size",)
    first = prepared.cases[0]
    before = runs.contents(bound, runs.case(declared(prepared.workload), first.family, first.seed))
    tensors, named = as_they_are(bound, before.given), numbers(prepared.workload, bound)
    found: list[Baseline | str] = []
    for name, compiled in WAYS:
        ask = partial(asked.times, tensors, named, compiled, figures.flush, prepared.setting.cancelled)
        times = card.exclusively(ask, prepared.setting.cancelled)
        if isinstance(times, str) or times is None:
            found.append(f"{name}: {times or 'cancelled'}")
        else:
            found.append(Baseline(f"{prepared.workload.reference} {name}", statistics.median(times)))
    return tuple(found)
