"""Launches to try: a few blocks, and numbers that leave some work for the last of them."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from agent.inference.probing.known import Known
from agent.inference.probing.sampling import kind_of
from agent.inference.probing.subject import AXES, Subject, is_whole_number
from agent.inference.probing.trial import Contents, Three

SMALL = 2
"""What a radius, a stride or the like is."""
FAR = 300_000
"""Beyond this, sines and the like take the long way of reducing their argument."""
_LARGEST = 1 << 14

NARROW = Contents("narrow", 1, 0, 4)
WIDE = Contents("wide", 1, 0, 40)
ONE = Contents("one", 1, 1, 2)


@frozen
class Trial:
    """``numbers`` by scalar, ``size`` the one that stands for sizes; whole numbers in memory are drawn as ``contents``
    says, floats are ``normal``, ``tame`` (within 0 and 1) or ``far`` (where functions take their long way)."""

    grid: Three
    size: int
    numbers: Mapping[str, int | float]
    contents: Contents
    floats: str = "normal"


def trials(subject: Subject, told: Known, block: Three) -> Iterator[Trial]:
    """What the launch in sight says first, where it says any of it and is no large one; then ours."""
    sides = {axis: 2 for axis in AXES if subject.uses(f"ctaid.{axis}")} or {"x": 1}
    if len(sides) == 1 and "x" in sides and subject.uses("ctaid.x"):
        sides["x"] = 3
    grid = _grid(sides)
    reach = max(grid[at] * block[at] for at in range(3))
    if told.arguments and all(abs(value) <= _LARGEST for value in told.arguments.values()):
        yield Trial(grid, reach - 3, {**_numbers(subject, reach - 3), **_of(subject, told)}, NARROW)
    for size, contents, floats in (
        (reach - 3, NARROW, "normal"), (reach, WIDE, "tame"), (34, NARROW, "far"), (2 * reach + 5, NARROW, "normal"),
        (4 * reach, NARROW, "tame"), (12, WIDE, "normal"), (100, ONE, "tame"), (16 * reach, NARROW, "normal"),
        (3, NARROW, "tame"),
    ):  # fmt: skip
        size = max(min(size, _most(grid)), 1)
        numbers = _numbers(subject, size, float(FAR) if floats == "far" else 0.5)
        yield Trial(grid, size, _staggered(numbers, size) if floats == "far" else numbers, contents, floats)


def _staggered(numbers: Mapping[str, int | float], size: int) -> dict[str, int | float]:
    """Each further size half of the one before: an index stays below what it runs up to, or that below it."""
    found, sized = dict(numbers), [name for name, value in numbers.items() if value == size]
    for turn, name in enumerate(sized):
        found[name] = max(size >> turn, 1)
    return found


def _most(grid: Three) -> int:
    """Of a size: squares of it are elements of a buffer where the grid has several sides."""
    return 1024 if grid[1] * grid[2] > 1 else _LARGEST


def _grid(sides: Mapping[str, int]) -> Three:
    x, y, z = (sides.get(axis, 1) for axis in AXES)
    return x, y, z


def _of(subject: Subject, told: Known) -> dict[str, int | float]:
    return {one.name: told.arguments[one.name] for one in subject.scalars if one.name in told.arguments}


def _numbers(subject: Subject, size: int, number: float = 0.5) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for one in subject.scalars:
        if one.dtype == "bool":
            found[one.name] = 1
        elif is_whole_number(one.dtype):
            found[one.name] = SMALL if kind_of(one.name) == "small" else min(size, 127 if one.dtype == "i8" else size)
        else:
            found[one.name] = number if one.dtype != "f16" else 0.5
    return found
