"""What is tried because one of the two programs names it: sizes, values and places that it compares something with.

See ``literals`` for where the numbers come from; those of the plans' expressions count too. A number that both hold is
left out. One that the rewrite alone holds may be where it misbehaves, and comes first; one that it dropped may be where
the original does something that the rewrite forgot. Conditions may stand together, so several sizes are set at once,
remainders are met beside every other number, and values are planted at the sizes as well.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.contents.literals import Literals, Residue, literals
from agent.evaluation.contents.planting import LARGEST
from agent.evaluation.runs import Case
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import bound_at, declared
from agent.evaluation.trial import Trial
from agent.workload.binding import BoundLaunch, ValueArgument
from agent.workload.dtypes import is_float
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression
from agent.workload.generators import families
from agent.workload.plan import Launch, Plan, Repeat, Step
from agent.workload.workload import Access, Workload

MOST_SIZES = {"screen": 6, "full": 40}
BUDGET = {"screen": 5_000_000, "full": 100_000_000}
"""Thread-instructions of the original for all these sizes together, by what the base size takes."""

MOST_VALUES = 16
"""Numbers planted in one run: more of them would each be too rare."""

MOST_RARE = 96
_FACTORS = 4
"""Arguments of launches by which ties are scaled."""

_RUNS = {"screen": 1, "full": 4}

_ALIKE = 64.0
"""Values in one run are apart by this factor at most: beside far larger ones, what is wrong with a small one passes for
a loss of precision."""

_BESIDE = {"screen": 1, "full": 2}
"""Runs with values at each size that is aimed at."""

_FAINT = 16
"""Numbers of those that nothing is compared with."""

_TOGETHER = 256
"""Ways to set several sizes at once that are looked at; the cheapest are tried."""

_ANCHORS = 8
_LARGEST_FAINT = 1e6


@frozen
class Aim:
    """``cases`` that run whole. ``larger`` sizes are beyond what that depth runs whole; ``left`` says in words what was
    not tried. ``found`` are the rewrite's own numbers, ``dropped`` those of the original that it lacks."""

    cases: tuple[Case, ...] = ()
    larger: tuple[dict[str, int], ...] = ()
    left: tuple[str, ...] = ()
    found: Literals = field(factory=Literals, repr=False)
    dropped: Literals = field(factory=Literals, repr=False)


def aim(trial: Trial, whole: Case | None = None) -> Aim:
    """What the numbers of one side alone ask to be tried. ``whole``: the largest case that runs whole."""
    assert trial.build is not None
    prepared, depth = trial.prepared, trial.prepared.setting.depth
    new, old = literals(trial.build.ptx), literals(prepared.build.ptx)
    ours, theirs = _planned(trial.candidate.plan), _planned(prepared.original.plan)
    found, dropped = _with(new.beyond(old), ours - theirs), _with(old.beyond(new), theirs - ours)
    (own, huge), (gone, beyond) = _values(found), _values(dropped)
    values, huge = [*own, *gone], [*huge, *beyond]
    sizes, larger, left = _sizes(trial, found, dropped)
    groups, family = _groups(values), families(prepared.workload)[0]
    floats = found.floats | dropped.floats
    data = _groups([value for value in values if _holds_whole(prepared.workload) or value in floats])
    beside = data[: _BESIDE[depth]] or [()]
    at = [evolve(runs.case(item, family, runs.draw_seed()), planted=some) for item in sizes for some in beside]
    if huge:
        left = (*left, f"values as large as {huge[0]:.3g}, a number that one of the two programs alone holds")
    large = [evolve(whole, seed=runs.draw_seed(), planted=data[0])] if data and whole and depth == FULL else []
    few = _rare(trial, found, dropped, new.ties | old.ties)
    large += [evolve(whole, seed=runs.draw_seed(), rare=few)] if few and whole else []
    return Aim((*_planted(trial, groups), *large, *at), larger, left, found, dropped)


def _rare(trial: Trial, found: Literals, dropped: Literals, halves: frozenset[tuple[str, float]]) -> tuple[float, ...]:
    """What one side alone tests floats for being equal to, or sorts to the other side where they are equal; and, where
    the two round in other ways or scale otherwise before it, ``halves`` of both, also before a scale by an argument of
    a launch. Among many of them the original itself moves with each unit in the last place, so they are to be few."""
    buffers = trial.prepared.workload.buffers
    if not any(buffer.access is not Access.OUT and is_float(buffer.dtype) for buffer in buffers):
        return ()
    sides = [sorted(side.equal | {value for _, value in side.edges}, key=abs) for side in (found, dropped)]
    ties = sorted({value for _, value in halves}, key=abs) if found.ties | dropped.ties else []
    scaled = [value for factor in _factors(trial) for tie in ties for value in (tie * factor, tie / factor)]
    values = dict.fromkeys(value for value in (*sides[0], *sides[1], *ties, *scaled) if 0 < abs(value) <= LARGEST)
    return tuple(values)[:MOST_RARE]


def _factors(trial: Trial) -> list[float]:
    """Floats that launches pass by value, but for those by which nothing is scaled."""
    passed = (item for step in _launches(trial) for item in step.arguments if isinstance(item, ValueArgument))
    values = dict.fromkeys(float(item.value) for item in passed if is_float(item.dtype))
    return [value for value in values if math.isfinite(value) and abs(value) not in (0.0, 1.0)][:_FACTORS]


def _with(found: Literals, planned: frozenset[int | Residue]) -> Literals:
    """Those of the code and of the plan."""
    return evolve(
        found,
        whole=found.whole | {item for item in planned if isinstance(item, int)},
        residues=found.residues | {item for item in planned if isinstance(item, tuple)},
    )


def _holds_whole(workload: Workload) -> bool:
    """Whether any input has whole numbers: else those that are compared are no data, and beside a size that they may be
    they would only ask what a rewrite does to numbers as large as it."""
    return any(buffer.access is not Access.OUT and not is_float(buffer.dtype) for buffer in workload.buffers)


def _planned(plan: Plan) -> frozenset[int | Residue]:
    """The numbers of a plan's expressions, and the remainders that they ask for."""
    found: set[int | Residue] = set()
    for expression in _expressions(plan.steps):
        found |= _numbers_of(expression)
    for _, expression in plan.locals:
        found |= _numbers_of(expression)
    for scratch in plan.scratch:
        found |= _numbers_of(scratch.extent)
    return frozenset(found)


def _expressions(steps: tuple[Step, ...]) -> Iterator[Expression]:
    for step in steps:
        if isinstance(step, Launch):
            yield from (*step.grid, *step.block, step.shared, *step.arguments)
        elif isinstance(step, Repeat):
            yield from filter(None, (step.count, step.start, step.update, step.condition))
            yield from _expressions(step.body)


def _numbers_of(expression: Expression) -> set[int | Residue]:
    nodes = list(_nodes(expression))
    numbers = {int(node.value) for node in nodes if node.op == "number" and isinstance(node.value, int)}
    divisors = {
        int(part.value)
        for node in nodes
        for part in node.operands[1:]
        if node.op == "%" and part.op == "number" and isinstance(part.value, int) and part.value > 1
    }
    rests = {(divisor, rest) for divisor in divisors for rest in (0, *numbers) if 0 <= rest < divisor}
    return {*numbers, *rests}


def _nodes(expression: Expression) -> Iterator[Expression]:
    yield expression
    for part in expression.operands:
        yield from _nodes(part)


def _values(found: Literals) -> tuple[list[float], list[float]]:
    """Those to plant, those with a fraction first (what a size or a loop counts to has none), and those too large."""
    order = sorted(found.real, key=lambda value: (value == int(value), -abs(value)))
    faint = sorted((value for value in found.faint_real if abs(value) < _LARGEST_FAINT), key=lambda value: -abs(value))
    kept = [value for value in order if abs(value) <= LARGEST]
    return [*kept, *faint[:_FAINT]], [value for value in order if abs(value) > LARGEST]


def _groups(values: list[float]) -> list[tuple[float, ...]]:
    """The values by their magnitude, so many in each as one run has room for; those with a fraction first."""
    found: list[list[float]] = []
    for value in sorted(values, key=abs):
        least = min((abs(one) for one in found[-1] if one), default=abs(value)) if found else 0.0
        if found and abs(value) <= _ALIKE * least and len(found[-1]) < MOST_VALUES:
            found[-1].append(value)
        else:
            found.append([value])
    order = {value: place for place, value in enumerate(values)}
    return sorted(map(tuple, found), key=lambda group: min(order[value] for value in group))


def _planted(trial: Trial, groups: list[tuple[float, ...]]) -> Iterator[Case]:
    """The base size with each group of values, what is left of them in one."""
    contract, depth = trial.prepared.contract, trial.prepared.setting.depth
    family, most = families(trial.prepared.workload)[0], _RUNS[depth]
    rest = [value for group in groups[most - 1 :] for value in group][:MOST_VALUES]
    for some in (*groups[: most - 1], *([tuple(rest)] if rest else [])):
        yield Case(tuple(contract.base.items()), family, runs.draw_seed(), planted=some)


def _sizes(
    trial: Trial, found: Literals, dropped: Literals
) -> tuple[list[dict[str, int]], tuple[dict[str, int], ...], tuple[str, ...]]:
    """Each size of the contract set to each number, the others as in the base; then several at once, the numbers that
    were dropped, and what nothing is compared with. Cheap ones first."""
    prepared = trial.prepared
    contract, depth = prepared.contract, prepared.setting.depth
    wanted: dict[tuple[tuple[str, int], ...], tuple[tuple[bool, int, int], int]] = {}
    asked = [(side, *one) for side, numbers in enumerate((found, dropped)) for one in _wanted(trial, numbers)]
    for side, rank, sizes in asked:
        allowed = all(contract.rules[name].allows(value) for name, value in sizes.items())
        if allowed and sizes not in contract.tried.values():
            wanted.setdefault(tuple(sizes.items()), ((rank > 1, side, rank), _cost(trial, sizes)))
    chosen: list[dict[str, int]] = []
    spent, more = 0, 0
    larger: list[dict[str, int]] = []
    for key, ((_, _, rank), cost) in sorted(wanted.items(), key=lambda item: item[1]):
        room = len(chosen) < MOST_SIZES[depth]
        if room and spent + cost <= BUDGET[depth]:
            spent += cost
            chosen.append(dict(key))
        elif room and not rank:
            larger.append(dict(key))
        else:
            more += not rank
    words = "further sizes that numbers which one of the two programs alone holds point to"
    left = (f"{more} {words}",) if more and depth == FULL else ()
    return chosen, tuple(larger), left


def _wanted(trial: Trial, found: Literals) -> Iterator[tuple[int, dict[str, int]]]:
    """Sizes, and how little they are asked for."""
    base = trial.prepared.contract.base
    top = 4 * max(declared(trial.prepared.workload).values(), default=1)
    exact = sorted(value for value in found.whole if 0 < value <= top)
    residues = _residues(trial, found, exact)
    for name in base:
        for value in _targets(trial, found):
            yield 0, {**base, name: value}
        for value in residues:
            yield 1, {**base, name: value}
    if trial.prepared.setting.depth == FULL:
        for sizes in _together(base, [*exact, *residues]):
            yield 1, sizes
    for name in base:
        for value in sorted(value for value in found.faint if 0 < value <= top)[:_FAINT]:
            yield 2, {**base, name: value}


def _residues(trial: Trial, found: Literals, exact: list[int]) -> list[int]:
    """What leaves each rest, from each number on that a condition may be joined with."""
    anchors = dict.fromkeys((1, *declared(trial.prepared.workload).values(), *exact[::-1]))
    near = list(anchors)[:_ANCHORS]
    values = (
        anchor + (rest - anchor) % divisor for divisor, rest in sorted(found.residues)[:_ANCHORS] for anchor in near
    )
    return list(dict.fromkeys(values))


def _together(base: Mapping[str, int], values: list[int]) -> Iterator[dict[str, int]]:
    """Two sizes or more set at once; of too many numbers the largest, which are nobody's loop or tile."""
    names = tuple(base)
    count = min(len(values), int(_TOGETHER ** (1 / max(1, len(names)))) - 1)
    some = sorted(values)[-count:] if count else []
    for chosen in product((None, *some), repeat=len(names)):
        if sum(value is not None for value in chosen) > 1:
            yield {name: base[name] if value is None else value for name, value in zip(names, chosen, strict=True)}


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


def near(trial: Trial, aimed: Aim) -> tuple[float, ...]:
    """The parts of the declared grid where a thread or a block of one of those numbers stands, the rewrite's first."""
    launches = _launches(trial)
    parts = dict.fromkeys((*_parts(launches, aimed.found), *_parts(launches, aimed.dropped)))
    return tuple(parts)[: MOST_SIZES[trial.prepared.setting.depth]]


def _parts(launches: list[BoundLaunch], found: Literals) -> list[float]:
    parts = {
        part
        for value in found.whole | found.faint
        for step in launches
        for part in ((value // step.block[0]) / prod(step.grid), value / prod(step.grid))
        if value > 0 and 0 <= part < 1
    }
    return sorted(parts, reverse=True)


def _launches(trial: Trial) -> list[BoundLaunch]:
    try:
        bound = trial.bound or bound_at(trial.prepared.workload, trial.candidate)
    except WorkloadError:
        return []
    return [step for step in bound.steps if isinstance(step, BoundLaunch)]
