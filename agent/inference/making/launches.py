"""Launches to try: a few blocks, and numbers that leave some work for the last of them."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from agent.inference.probing.known import Known
from agent.inference.probing.sampling import kind_of
from agent.inference.probing.subject import AXES, Subject, is_whole_number
from agent.inference.probing.trial import Contents, Three

SMALL = 2
"""What a radius, a stride or the like is."""
_LARGEST = 1 << 14

NARROW = Contents("narrow", 1, 0, 4)
WIDE = Contents("wide", 1, 0, 40)
ONE = Contents("one", 1, 1, 2)


@frozen
class Trial:
    """``numbers`` by scalar; whole numbers in memory are drawn as ``contents`` says, floats are normal, or within 0 and
    1 where ``tame``."""

    grid: Three
    numbers: Mapping[str, int | float]
    contents: Contents
    tame: bool = False


def trials(subject: Subject, told: Known, block: Three) -> Iterator[Trial]:
    """What the launch in sight says first, where it says any of it and is no large one; then ours."""
    sides = {axis: 2 for axis in AXES if subject.uses(f"ctaid.{axis}")} or {"x": 1}
    if len(sides) == 1 and "x" in sides and subject.uses("ctaid.x"):
        sides["x"] = 3
    grid = _grid(sides)
    reach = max(grid[at] * block[at] for at in range(3))
    if told.arguments and all(abs(value) <= _LARGEST for value in told.arguments.values()):
        yield Trial(grid, {**_numbers(subject, reach - 3), **_of(subject, told)}, NARROW)
    for size, contents, tame in (
        (reach - 3, NARROW, False), (reach, WIDE, True), (2 * reach + 5, NARROW, False), (4 * reach, NARROW, True),
        (12, WIDE, False), (100, ONE, True), (16 * reach, NARROW, False), (3, NARROW, True),
    ):  # fmt: skip
        yield Trial(grid, _numbers(subject, max(min(size, _most(grid)), 1)), contents, tame)


def _most(grid: Three) -> int:
    """Of a size: squares of it are elements of a buffer where the grid has several sides."""
    return 1024 if grid[1] * grid[2] > 1 else _LARGEST


def _grid(sides: Mapping[str, int]) -> Three:
    x, y, z = (sides.get(axis, 1) for axis in AXES)
    return x, y, z


def _of(subject: Subject, told: Known) -> dict[str, int | float]:
    return {one.name: told.arguments[one.name] for one in subject.scalars if one.name in told.arguments}


def _numbers(subject: Subject, size: int) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for one in subject.scalars:
        if one.dtype == "bool":
            found[one.name] = 1
        elif is_whole_number(one.dtype):
            found[one.name] = SMALL if kind_of(one.name) == "small" else min(size, 127 if one.dtype == "i8" else size)
        else:
            found[one.name] = 0.5
    return found
