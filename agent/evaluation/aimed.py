"""What is tried because the rewrite itself names it: sizes, values and places that it compares something with.

See ``literals`` for where the numbers come from. The original's own numbers are left out: what it does there is no
secret of the rewrite.
"""

from collections.abc import Iterator
from math import prod

from attrs import field, frozen

from agent.evaluation import runs
from agent.evaluation.literals import Literals, literals
from agent.evaluation.planting import LARGEST
from agent.evaluation.runs import Case
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import bound_at, declared
from agent.evaluation.trial import Trial
from agent.workload.binding import BoundLaunch
from agent.workload.errors import WorkloadError
from agent.workload.generators import families

MOST_SIZES = {"screen": 6, "full": 40}
BUDGET = {"screen": 5_000_000, "full": 100_000_000}
"""Thread-instructions of the original for all these sizes together, by what the base size takes."""

MOST_VALUES = 16
"""Numbers planted in one run: more of them would each be too rare."""

_RUNS = {"screen": 1, "full": 3}


@frozen
class Aim:
    """``cases`` that run whole. ``larger`` sizes are beyond what that depth runs whole; ``left`` says in words what was
    not tried."""

    cases: tuple[Case, ...] = ()
    larger: tuple[dict[str, int], ...] = ()
    left: tuple[str, ...] = ()
    found: Literals = field(factory=Literals, repr=False)


def aim(trial: Trial) -> Aim:
    """What the rewrite's own numbers ask to be tried."""
    assert trial.build is not None
    prepared = trial.prepared
    found = literals(trial.build.ptx).beyond(literals(prepared.build.ptx))
    sizes, larger, left = _sizes(trial, found)
    family = families(prepared.workload)[0]
    at = [runs.case(item, family, runs.draw_seed()) for item in sizes]
    values, huge = _values(found)
    if huge:
        left = (*left, f"values as large as {huge[0]:.3g}, a number in the rewrite's own code")
    return Aim((*_planted(trial, values), *at), larger, left, found)


def _values(found: Literals) -> tuple[list[float], list[float]]:
    """Those to plant, those with a fraction first (what a size or a loop counts to has none), and those too large."""
    order = sorted(found.real, key=lambda value: (value == int(value), -abs(value)))
    return [value for value in order if abs(value) <= LARGEST], [value for value in order if abs(value) > LARGEST]


def _planted(trial: Trial, values: list[float]) -> Iterator[Case]:
    """The base size with as many of the values as one run has room for, and the rest in further runs."""
    contract, depth = trial.prepared.contract, trial.prepared.setting.depth
    family = families(trial.prepared.workload)[0]
    for turn in range(min(_RUNS[depth], -(-len(values) // MOST_VALUES))):
        some = tuple(values[turn * MOST_VALUES : (turn + 1) * MOST_VALUES])
        yield Case(tuple(contract.base.items()), family, runs.draw_seed(), planted=some)


def _sizes(trial: Trial, found: Literals) -> tuple[list[dict[str, int]], tuple[dict[str, int], ...], tuple[str, ...]]:
    """Each size of the contract set to each number, the others as in the base; cheap ones first."""
    prepared = trial.prepared
    contract, depth = prepared.contract, prepared.setting.depth
    wanted: dict[tuple[tuple[str, int], ...], int] = {}
    for name in contract.base:
        for value in _targets(trial, found):
            sizes = {**contract.base, name: value}
            if contract.rules[name].allows(value) and sizes not in contract.tried.values():
                wanted.setdefault(tuple(sizes.items()), _cost(trial, sizes))
    chosen: list[dict[str, int]] = []
    spent, more = 0, 0
    larger: list[dict[str, int]] = []
    for key, cost in sorted(wanted.items(), key=lambda item: item[1]):
        spent += cost
        if spent <= BUDGET[depth] and len(chosen) < MOST_SIZES[depth]:
            chosen.append(dict(key))
        elif len(chosen) < MOST_SIZES[depth]:
            larger.append(dict(key))
        else:
            more += 1
    left = (f"{more} further sizes that numbers in the rewrite's own code point to",) if more and depth == FULL else ()
    return chosen, tuple(larger), left


def _targets(trial: Trial, found: Literals) -> list[int]:
    """The numbers, the next ones for a full verdict, and what makes a grid of so many blocks."""
    near = (0, 1, -1) if trial.prepared.setting.depth == FULL else (0, 1)
    plain = [value + step for step in near for value in sorted(found.whole) if value + step > 0]
    blocks = {step.block[0] for step in _launches(trial)}
    grids = [value * block for block in sorted(blocks) for value in sorted(found.whole) if value > 1]
    top = 4 * max(declared(trial.prepared.workload).values(), default=1)
    return [value for value in dict.fromkeys((*plain, *grids)) if value <= top]


def _cost(trial: Trial, sizes: dict[str, int]) -> int:
    """Thread-instructions of the original, if they grow with each size."""
    base = trial.prepared.contract.base
    known = trial.prepared.cache.truths.get(trial.prepared.cases[0]) if trial.prepared.cases else None
    own = known.answer.thread_instructions if known is not None else 0
    return int(max(own, 1000) * prod(max(1.0, sizes[name] / max(1, base[name])) for name in base))


def near(trial: Trial, found: Literals) -> tuple[float, ...]:
    """The parts of the declared grid where a thread or a block of one of those numbers stands."""
    launches = _launches(trial)
    parts = {
        part
        for value in found.whole
        for step in launches
        for part in ((value // step.block[0]) / prod(step.grid), value / prod(step.grid))
        if value > 0 and 0 <= part < 1
    }
    return tuple(sorted(parts, reverse=True)[: MOST_SIZES[trial.prepared.setting.depth]])


def _launches(trial: Trial) -> list[BoundLaunch]:
    try:
        bound = trial.bound or bound_at(trial.prepared.workload, trial.candidate)
    except WorkloadError:
        return []
    return [step for step in bound.steps if isinstance(step, BoundLaunch)]
