"""Which sizes are run: small enough for seconds, large enough for several blocks, a partial tile and loop turns."""

from collections.abc import Iterator, Mapping
from math import prod

from attrs import frozen

from agent.evaluation.draws import draw_between
from agent.workload.bind import bind
from agent.workload.binding import Bound, BoundLaunch, ValueArgument
from agent.workload.dtypes import integer_range, is_float
from agent.workload.errors import WorkloadError
from agent.workload.program import Program
from agent.workload.workload import Workload

Sizes = Mapping[str, int]

_LADDER = sorted({part * 2**power for power in range(24) for part in (2, 3)} | {1})
"""1, 2, 3, 4, 6, 8, 12, ...: powers of two, and half way between them (a partial tile)."""

_TURNS = 2.5
"""A size that only a loop sees is this many times the block, for several turns with a partial last one."""


@frozen
class Rule:
    """What the original allows for one size: multiples of ``multiple``, not below ``minimum`` (as far as was tried),
    nor above ``maximum``: what the types hold that it is passed in."""

    name: str
    multiple: int = 1
    minimum: int = 1
    maximum: int | None = None

    def fit(self, value: int) -> int:
        """The smallest allowed value that is not below ``value``; the largest allowed where there is none."""
        value = max(value, self.minimum)
        fitting = -(-value // self.multiple) * self.multiple
        if self.maximum is not None and fitting > self.maximum:
            return max(self.minimum, self.maximum // self.multiple * self.multiple)
        return fitting

    def allows(self, value: int) -> bool:
        below = self.maximum is None or value <= self.maximum
        return below and value >= self.minimum and value % self.multiple == 0


def bound_at(workload: Workload, program: Program, sizes: Sizes | None = None) -> Bound:
    """``program``'s plan at ``sizes``; raises WorkloadError."""
    return bind(workload, program.plan, sizes, program.document)


def ceilings(workload: Workload, original: Program) -> dict[str, int]:
    """The largest value of each size that is passed as it is in an integer type: C would make another number of a
    larger one. A declared size beyond it is the user's own, and stands."""
    top, found = declared(workload), dict[str, int]()
    bound = _launches(bound_at(workload, original))
    for launch in original.plan.launches():
        own = next((one for one in bound if one.kernel == launch.kernel), None)
        for told, passed in zip(launch.arguments, own.arguments if own is not None else (), strict=False):
            name = str(told)
            if (
                name in top
                and isinstance(passed, ValueArgument)
                and passed.dtype != "bool"
                and not is_float(passed.dtype)
            ):
                high = max(top[name], integer_range(passed.dtype)[1])
                found[name] = min(high, found.get(name, high))
    return found


def declared(workload: Workload) -> dict[str, int]:
    return {size.name: size.value for size in workload.sizes}


def describe(sizes: Sizes) -> str:
    """``rows=64 cols=4099``; a workload without sizes has one."""
    return " ".join(f"{name}={value}" for name, value in sizes.items()) or "the only size"


def bases(workload: Workload, original: Program) -> Iterator[dict[str, int]]:
    """Small sizes to build on, best first: one with partial tiles, then powers of two, then ever larger ones."""
    partial = _small(workload, original)
    seen: list[dict[str, int]] = []
    whole = {name: _power(value) for name, value in partial.items()}
    top = declared(workload)
    growing = [{name: min(top[name], value * 4**turn) for name, value in whole.items()} for turn in (1, 2)]
    for sizes in (partial, whole, *growing, top):
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def _small(workload: Workload, original: Program) -> dict[str, int]:
    top = declared(workload)
    full = bound_at(workload, original)
    found = {size.name: _one(size.name, size.minimum, top, full, workload, original) for size in workload.sizes}
    return found if _bindable(workload, original, found) else top


def _one(name: str, minimum: int, top: dict[str, int], full: Bound, workload: Workload, original: Program) -> int:
    """The small value of one size, the others as declared."""
    steps = [value for value in _LADDER if minimum <= value < top[name]]
    half = max(minimum, top[name] // 2)
    less = _try(workload, original, top | {name: half})
    if less is None or not steps:
        return top[name]
    if len(less.steps) != len(full.steps) and _grids(less)[:3] == _grids(full)[:3]:
        return next((value for value in steps if value >= 3), top[name])
    if _grids(less) == _grids(full):
        threads = max((prod(launch.block) for launch in _launches(full)), default=1)
        return min(top[name], max(minimum, int(_TURNS * threads)))
    for value in steps:
        bound = _try(workload, original, top | {name: value})
        if bound is not None and _several(bound, full):
            return 3 if value == 2 and top[name] >= 3 else value
    return top[name]


def _several(bound: Bound, full: Bound) -> bool:
    """Two blocks or more along every axis where the declared size has them. Plans whose number of launches hangs on the
    size are judged by their first."""
    some, all_ = _grids(bound), _grids(full)
    if len(some) != len(all_):
        some, all_ = some[:3], all_[:3]
    return bool(some) and all(now >= min(2, then) for now, then in zip(some, all_, strict=True))


def least(workload: Workload, original: Program, within: Sizes) -> dict[str, int]:
    """The smallest sizes of one scale that launch anything, none above ``within``: `n / 128` blocks need n = 128."""
    for value in _LADDER:
        sizes = {size.name: min(max(size.minimum, value), within[size.name]) for size in workload.sizes}
        if _bindable(workload, original, sizes):
            return sizes
    return dict(within)


def loop_sizes(workload: Workload, original: Program) -> frozenset[str]:
    """Sizes that neither the grids nor the number of launches hang on: what threads loop over."""
    top = declared(workload)
    full = bound_at(workload, original)
    found: set[str] = set()
    for size in workload.sizes:
        less = _try(workload, original, top | {size.name: max(size.minimum, top[size.name] // 2)})
        if less is not None and _grids(less) == _grids(full):
            found.add(size.name)
    return frozenset(found)


def _try(workload: Workload, original: Program, sizes: Sizes) -> Bound | None:
    try:
        return bound_at(workload, original, sizes)
    except WorkloadError:
        return None


def _bindable(workload: Workload, original: Program, sizes: Sizes) -> bool:
    return _try(workload, original, sizes) is not None


def _launches(bound: Bound) -> list[BoundLaunch]:
    return [step for step in bound.steps if isinstance(step, BoundLaunch)]


def _grids(bound: Bound) -> list[int]:
    return [axis for launch in _launches(bound) for axis in launch.grid]


def _power(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def next_prime(value: int) -> int:
    """The smallest prime that is not below ``value``."""
    candidate = max(2, value)
    while any(candidate % divisor == 0 for divisor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def variants(base: Sizes, rules: Mapping[str, Rule]) -> dict[str, dict[str, int]]:
    """The further sizes to try, by name, inside the rules; those that fall together are tried once.

    ``plus one`` and ``minus one`` stand next to the base, ``primes`` fit no tile, ``smallest`` is one (or the least
    allowed).
    """
    made = {
        "base": dict(base),
        "plus one": {name: rules[name].fit(value + 1) for name, value in base.items()},
        "minus one": {name: rules[name].fit(value - rules[name].multiple) for name, value in base.items()},
        "primes": {
            name: rules[name].fit(next_prime(value + max(1, value // 8) + place % 3))
            for place, (name, value) in enumerate(base.items())
        },
        "smallest": {name: rules[name].fit(1) for name in base},
    }
    distinct: dict[str, dict[str, int]] = {}
    for name, sizes in made.items():
        if sizes not in distinct.values():
            distinct[name] = sizes
    return distinct


def hidden(base: Sizes, rules: Mapping[str, Rule], draw: "Draw") -> dict[str, int]:
    """A size between half and one and a half times the base that nobody could know before it was drawn."""
    return {name: rules[name].fit(draw(max(1, value // 2), value + value // 2 + 1)) for name, value in base.items()}


class Draw:
    """``draw(low, high)``: a number ``low <= n <= high`` from a secret source."""

    def __call__(self, low: int, high: int) -> int:
        return draw_between(low, high)
