"""At which values of the scalars a kernel is tried.

Sizes are small, prime to each other and not multiples of the block; each is varied alone over values on both sides of
one, two and three blocks, then together, then at values that the forms are only checked on.
"""

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

_SMALL = re.compile(
    r"(?:^|_)(?:k|r|t|(?i:rad\w*|stride|step|pad\w*|off|offset|shift|dil\w*|halo|order|level|iter\w*|start|begin|first"
    r"|kernel_?\w*|filter_?\w*|ksize|window|win|group\w*|mode|dim|axis|seed|incx|incy|inc|pass|stage|flag\w*))(?:$|_)"
)
_BASES = (7, 9, 6, 11, 8, 10, 12, 13, 14, 15)
_SMALL_BASES = (2, 3, 4, 2, 3, 4, 2, 3)
_BLOCK_BASES = (2, 3, 2)
_MOST_TOGETHER = 5
_DRAWN = 4  # at random, and as many for each variable that matters; the last of them are only checked on
_LARGE = 4200  # no size is tried beyond


@frozen
class Variable:
    """``kind``: ``size``, ``small`` (a radius, a stride: what is less than the sizes), ``blocks`` (of a grid that
    nothing bounds)."""

    name: str
    kind: str


def kind_of(name: str) -> str:
    """By the name alone, which only chooses where to look first."""
    return "small" if _SMALL.search(name) else "size"


@frozen
class Design:
    """``side`` is the longest side of a block; sizes are multiples of ``unit``. No variable goes beyond its ``caps``,
    where it has one: the work had become too much there."""

    variables: tuple[Variable, ...]
    side: int
    unit: int = 1
    caps: Mapping[str, int] = field(factory=dict)

    def base(self) -> dict[str, int]:
        """The values that all others differ from in one."""
        sizes = _BASES if self.unit == 1 else tuple(self.unit * count for count in (2, 3, 1, 4))
        rows = {"size": itertools.cycle(sizes), "small": itertools.cycle(_SMALL_BASES), "blocks": iter(_BLOCK_BASES)}
        return {variable.name: next(rows[variable.kind]) for variable in self.variables}

    def alone(self) -> Iterator[dict[str, int]]:
        """The base, then every variable by itself."""
        start = self.base()
        yield start
        for variable in self.variables:
            for value in self._values(variable.kind):
                if value != start[variable.name]:
                    yield {**start, variable.name: value}

    def _values(self, kind: str) -> tuple[int, ...]:
        if kind == "blocks":
            return (1, 4, 5)
        if kind == "small":
            return (1, 5, 6)
        if self.unit > 1:
            counts = (1, 2, 3, 4, 5, 8, 13, 22)
            return tuple(self.unit * count for count in counts if self.unit * count <= _LARGE)
        side = self.side
        steps = (side + 1, 2 * side + 3, 3 * side, 4 * side + 2, 8 * side + 5, 16 * side + 9, 32 * side + 3)
        # no more than twice the one before: where the work has become too much, the larger ones are left out
        return (16, 17, *(value for value in (*steps, 64 * side + 17) if value <= _LARGE))

    def together(self, relevant: Sequence[str]) -> Iterator[dict[str, int]]:
        """Combinations of the variables that matter, and then what is held out."""
        start = self.base()
        if not start:
            return
        kinds = {variable.name: variable.kind for variable in self.variables}
        step = {"size": 6 if self.unit == 1 else self.unit, "small": 2, "blocks": 2}
        more = {name: start[name] + step[kinds[name]] for name in relevant}
        many = len(relevant) > _MOST_TOGETHER
        counts = (2,) if many else range(2, len(relevant) + 1)
        for count in counts:
            for chosen in itertools.combinations(relevant, count):
                yield {**start, **{name: more[name] for name in chosen}}
        rng = random.Random(7)
        for _ in range(_DRAWN + 4 * min(len(relevant), 4)):
            drawn = {name: self._drawn(kinds[name], len(relevant), rng) for name in start}
            yield {name: min(value, self.caps.get(name, value)) for name, value in drawn.items()}

    def far(self, relevant: Sequence[str]) -> Iterator[dict[str, int]]:
        """Each size that matters well beyond what forms are made from, as long as that is no great work: one that
        seemed to change nothing may begin to there."""
        start = self.base()
        for variable in self.variables:
            if variable.kind == "size" and variable.name in relevant and variable.name not in self.caps:
                yield {**start, variable.name: max(self._values("size")) * 4 + self.unit}

    def _drawn(self, kind: str, relevant: int, rng: random.Random) -> int:
        if kind == "blocks":
            return rng.randint(1, 6)
        if kind == "small":
            return rng.randint(1, 5)
        if self.unit > 1:
            return self.unit * rng.randint(1, 4)
        return rng.randint(6, min(20 * self.side + 20, _LARGE) if relevant <= 1 else 40 if relevant == 2 else 20)


def moved(samples: Sequence[Mapping[str, int]], seen: Sequence[Sequence[int]]) -> list[str]:
    """Names whose change alone, against the first sample, changes any of what was ``seen``."""
    found: dict[str, None] = {}
    for values, told in zip(samples, seen, strict=True):
        changed = [name for name, value in values.items() if value != samples[0][name]]
        if len(changed) == 1 and list(told) != list(seen[0]):
            found.setdefault(changed[0])
    return sorted(found)
