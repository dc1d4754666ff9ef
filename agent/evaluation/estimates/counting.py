"""Counts of sampled blocks at the declared size: taken there, or extrapolated from smaller sizes where that takes long.

What a block counts grows linearly with what its threads loop over. So three smaller sizes are counted, a line is drawn
through the outer two, and the middle one must lie on it; else nothing is claimed for the declared size.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log2
from typing import Any, Protocol

from attrs import evolve, field, fields, frozen

from agent.evaluation import runs
from agent.evaluation.declared import MAX_STEPS, sample_sizes
from agent.evaluation.oracles.truth import Bench
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Rule, Sizes, bound_at, declared, describe, loop_sizes
from agent.execution.compiler.result import Build
from agent.execution.device import LaunchCounters, LineCounters
from agent.workload.binding import Argument, Bound, BoundFill, BoundLaunch, PointerArgument, within
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import Workload

BLOCKS = 9
SECONDS = 2.0
PATIENT = 6 * SECONDS
"""For one run, where another recipe is left and where none is. Counts are the same at every depth: a ratio of two
estimates must not hang on how each was counted."""

OFF_LINE = 0.1
"""How far, relatively, the middle size may lie off the line through the other two."""


@frozen
class Recipe:
    """How to count for ``target``: at ``points`` (fraction of the target, sizes), one for the target or three. ``at``
    are the target's sizes in words where they are not the declared ones."""

    target: Mapping[str, int]
    points: tuple[tuple[float, Mapping[str, int]], ...]
    note: str = ""
    at: str = ""


@frozen
class Kind:
    """Launches of one plan that do the same work up to the contents of their buffers: one of them is run."""

    launch: BoundLaunch = field(repr=False)
    times: int


@frozen
class Counts:
    bound: Bound = field(repr=False)
    kinds: tuple[Kind, ...]
    counters: tuple[LaunchCounters, ...] = field(repr=False)
    recipe: Recipe


class Ground(Protocol):
    """What sizes are cut by, as a contract knows it: small ones that the program runs at, and what each allows."""

    @property
    def base(self) -> Mapping[str, int]: ...
    @property
    def rules(self) -> Mapping[str, Rule]: ...


def recipes(bench: Bench, contract: Ground, slow: bool) -> list[Recipe]:
    """Best first. ``slow``: blocks are known to take long at the declared size, so that is left to the line."""
    top, fewer = declared(bench.workload), sample_sizes(bench, dict(contract.base))
    repeats = frozenset(name for name in top if fewer[name] != top[name])
    # launches that do the same are counted once, so that however many of them cost no more than a few
    targets = [top] + ([fewer] if repeats else [])
    loops = loop_sizes(bench.workload, bench.original)
    lines = lines_to(targets, contract, loops, frozenset(top) - repeats)
    found = [*([] if slow else [_direct(sizes, top) for sizes in targets]), *lines, _direct(contract.base, top)]
    return [one if dict(one.target) == top else evolve(one, at=describe(one.target)) for one in found]


def lines_to(targets: Sequence[Sizes], ground: Ground, loops: frozenset[str], others: frozenset[str]) -> list[Recipe]:
    """Recipes that reach ``targets`` from three smaller sizes, best first: of what threads loop over, then of all that
    ``others`` names too."""
    found = [
        recipe
        for sizes in targets
        for only in dict.fromkeys((loops, others))
        for divisor in (64, 16, 4)
        for draw in (_in_step, _line)
        if only and (recipe := draw(sizes, ground, divisor, only, loops)) is not None
    ]
    return sorted(found, key=_short)


FEW = 16
"""Turns of a loop that say little: rewrites take several at a time, by tiles or unrolled."""


def _short(recipe: Recipe) -> bool:
    """Whether its smallest point is so small that a rewrite's counts may bend there: only where others fail."""
    smallest = recipe.points[0][1]
    return any(size < min(FEW, recipe.target[name]) for name, size in smallest.items())


def _direct(sizes: Sizes, top: Sizes) -> Recipe:
    return Recipe(
        dict(sizes), ((1.0, dict(sizes)),), "" if dict(sizes) == dict(top) else f"counted at {describe(sizes)}"
    )


STEP = 128
"""Turns of a loop that a warp walks along together, unrolled by four, take this many elements."""


def _in_step(
    sizes: Sizes, contract: Ground, divisor: int, only: frozenset[str], loops: frozenset[str]
) -> Recipe | None:
    """One size about as small as in :func:`_line`, but such that loops over it end as at the declared size: those that
    take several elements at a time, or are unrolled, have the same remainder at all points. None where :func:`_line`
    does as well, or where grids would get down to the base."""
    if len(only) != 1:
        return None
    (name,) = only
    size, rule = sizes[name], contract.rules[name]
    step = max(STEP, 1 << round(log2(max(1, size / (4 * divisor)))))
    first = size % step or step
    values = [first + step * turns for turns in (0, 1, 3)]
    if size % step == 0 or values[-1] > size / 2 or any(not rule.allows(value) for value in values):
        return None
    if name not in loops and first < 2 * contract.base[name]:
        return None
    points = tuple((value / size, {**sizes, name: value}) for value in values)
    return Recipe(dict(sizes), points, f"extrapolated from {describe(points[-1][1])}")


def _line(sizes: Sizes, contract: Ground, divisor: int, only: frozenset[str], loops: frozenset[str]) -> Recipe | None:
    """Sizes over four, two and one times ``divisor``; None where rounding bends the line, or where grids would get
    down to the base: a few blocks, some partial, are not like the many."""
    cut = [name for name in sizes if name in only]
    if any(sizes[name] // (4 * divisor) < contract.base[name] for name in cut if name not in loops):
        return None
    points: list[tuple[float, Mapping[str, int]]] = []
    for times in (4, 2, 1):
        smaller = {**sizes, **{name: contract.rules[name].fit(sizes[name] // (times * divisor)) for name in cut}}
        parts = [smaller[name] / sizes[name] for name in cut]
        if max(abs(part * times * divisor - 1) for part in parts) > 0.02:
            return None
        points.append((sum(parts) / len(parts), smaller))
    return Recipe(dict(sizes), tuple(points), f"extrapolated from {describe(points[-1][1])}")


def count(
    program: Program,
    build: Build,
    workload: Workload,
    setting: Setting,
    choices: Sequence[Recipe],
    seconds: float | None = None,
    most: int = BLOCKS,
) -> Counts | str:
    """Counts by the first recipe that works out, or why none did. ``seconds`` caps each run; of a large grid ``most``
    blocks are run."""
    reason = "no sizes to count at"
    seconds = seconds or (SECONDS if len(choices) > 1 else PATIENT)
    for recipe in choices:
        found = _follow(recipe, program, build, workload, setting, seconds, most)
        if isinstance(found, Counts):
            return found
        reason = found
    return reason


def _follow(
    recipe: Recipe, program: Program, build: Build, workload: Workload, setting: Setting, seconds: float, most: int
) -> Counts | str:
    try:
        bound = bound_at(workload, program, recipe.target)
        kinds = kinds_of(bound)
        points: list[tuple[float, tuple[LaunchCounters, ...]]] = []
        # the dearest first: where it takes too long, the others are not even begun
        for part, sizes in reversed(recipe.points):
            smaller = bound_at(workload, program, sizes)
            picked = partial(interior if _grids(smaller) == _grids(bound) else full_ones, most=most)
            found = _run(smaller, build, workload, setting, seconds, picked)
            if isinstance(found, str):
                return found
            if len(found) != len(kinds):
                return "the launches differ between the sizes that were counted"
            points.append((part, found))
    except WorkloadError as error:
        return str(error)
    if len(points) == 1:
        return Counts(bound, kinds, points[0][1], recipe)
    lines = [_extrapolate(kind, [(part, found[at]) for part, found in points]) for at, kind in enumerate(kinds)]
    if any(line is None for line in lines):
        return f"counts do not grow linearly from {describe(recipe.points[0][1])} on"
    return Counts(bound, kinds, tuple(line for line in lines if line is not None), recipe)


def interior(total: int, most: int = BLOCKS) -> tuple[int, ...]:
    """BLOCKS blocks (``most``, a multiple of three, or one) from inside the grid: the last are often partial, and few
    stand for all."""
    if total <= most:
        return tuple(range(total))
    part = max(1, most // 3)
    places = (1, 3, 5) if most > 1 else (3,)
    starts = (min(max(0, total * place // 6), total - part) for place in places)
    return tuple(sorted({start + offset for start in starts for offset in range(part)}))


def full_ones(total: int, most: int = BLOCKS) -> tuple[int, ...]:
    """Of a grid that is smaller than the one it stands for: without the last block, which few are like."""
    return interior(max(1, total - 1), most)


def _grids(bound: Bound) -> list[tuple[int, int, int]]:
    return [kind.launch.grid for kind in kinds_of(bound)]


def _run(
    bound: Bound, build: Build, workload: Workload, setting: Setting, seconds: float, picked: runs.Blocks
) -> tuple[LaunchCounters, ...] | str:
    kinds = kinds_of(bound)
    if len(kinds) > 4 * MAX_STEPS:
        return f"the plan has {len(kinds)} different launches"
    chosen = runs.case(bound.sizes, families(workload)[0], 1, lazy=True)
    clears = tuple(step for step in bound.steps if isinstance(step, BoundFill))[:MAX_STEPS]
    reduced = evolve(bound, steps=(*clears, *(kind.launch for kind in kinds)))
    before = runs.contents(reduced, chosen)
    answer = runs.run(setting, build, before, blocks=picked, count=True, seconds=seconds, checks=frozenset())
    if answer.status != "ok":
        return answer.message or (answer.faults[0].message if answer.faults else answer.status)
    return answer.counters if len(answer.counters) == len(kinds) else "the device counts nothing"


def kinds_of(bound: Bound) -> tuple[Kind, ...]:
    """The distinct launches in order of appearance, each with how often it comes. Which of two swapped buffers an
    argument names makes no difference."""
    first: dict[object, BoundLaunch] = {}
    times: Counter[object] = Counter()
    sizes = {buffer.name: buffer.nbytes for buffer in bound.buffers}
    for step in bound.steps:
        if isinstance(step, BoundLaunch):
            key = (step.kernel, step.grid, step.block, step.shared, tuple(_shape(a, sizes) for a in step.arguments))
            first.setdefault(key, step)
            times[key] += 1
    return tuple(Kind(first[key], times[key]) for key in first)


def _shape(argument: Argument, sizes: Mapping[str, int]) -> object:
    return tuple(
        (one.offset, sizes[one.held.buffer], one.held.offset) if isinstance(one.held, PointerArgument) else one
        for one in within(argument)
    )


def _extrapolate(kind: Kind, points: Sequence[tuple[float, LaunchCounters]]) -> LaunchCounters | None:
    """``points`` run from the largest size to the smallest; the result is as if BLOCKS blocks had run at the target."""
    (high, large), (between, middle), (low, small) = points

    def at(part: float, old: float, new: float) -> float:
        return old + (new - old) * (part - low) / (high - low)

    def line(get: Callable[[LaunchCounters], float]) -> int:
        old, new = get(small) / max(1, small.blocks_run), get(large) / max(1, large.blocks_run)
        return max(0, round(BLOCKS * at(1.0, old, new)))

    for name in ("instructions", "sectors", "requests", "cache_lines"):
        here, old, new = (item.total(name) / max(1, item.blocks_run) for item in (middle, small, large))
        if abs(here - at(between, old, new)) > OFF_LINE * max(here, 1.0):
            return None
    mappings: dict[str, Any] = {name: _by_name(large, line, name) for name in _MAPPINGS}
    return LaunchCounters(
        kernel=kind.launch.kernel,
        grid=kind.launch.grid,
        block=kind.launch.block,
        blocks_run=BLOCKS,
        lines={number: _line_at(number, line) for number in large.lines},
        **mappings,
    )


def _line_at(number: int, line: Callable[[Callable[[LaunchCounters], float]], int]) -> LineCounters:
    none = LineCounters()
    return LineCounters(
        **{
            one.name: line(lambda item, name=one.name: getattr(item.lines.get(number, none), name))  # type: ignore[misc]
            for one in fields(LineCounters)
        }
    )


_MAPPINGS = ("mix", "touched_read", "touched_written", "block_touched", "queued", "queued_at_one", "compound")


def _by_name(
    large: LaunchCounters, line: Callable[[Callable[[LaunchCounters], float]], int], which: str
) -> dict[str, int]:
    return {name: line(lambda item, name=name: getattr(item, which).get(name, 0)) for name in getattr(large, which)}  # type: ignore[misc]
