"""Texture fetches by hand: exact fractions, one texel at a time, after the guide's formulas."""

from fractions import Fraction
from itertools import product
from math import floor

import numpy as np

from agent.workload.textures import View


def index_of(index: int, count: int, mode: str, normalized: bool) -> int | None:
    """The texel that an index stands for, None for the border."""
    if mode == "border":
        return index if 0 <= index < count else None
    if mode == "wrap" and normalized:
        return index - count * floor(Fraction(index, count))
    if mode == "mirror" and normalized:
        turn, rest = divmod(index, count)
        return rest if turn % 2 == 0 else count - 1 - rest
    return min(max(index, 0), count - 1)


def fetched(view: View, texels: np.ndarray, place: tuple[float, ...]) -> list[float]:
    """What a fetch at float coordinates gives by channel. ``texels``: (depth, height, width, channels), as many axes as
    the view has; coordinates come x first."""
    axes: list[list[tuple[int | None, Fraction]]] = []
    for number, coordinate in enumerate(place):
        count, mode = view.extents[number], view.address[number]
        at = Fraction(float(np.float32(coordinate))) * (count if view.normalized else 1)
        if view.filter == "nearest":
            axes.append([(index_of(floor(at), count, mode, view.normalized), Fraction(1))])
            continue
        fixed = Fraction(floor((at - Fraction(1, 2)) * 256 + Fraction(1, 2)), 256)
        first = floor(fixed)
        weight = fixed - first
        axes.append(
            [
                (index_of(first, count, mode, view.normalized), 1 - weight),
                (index_of(first + 1, count, mode, view.normalized), weight),
            ]
        )
    sums = [Fraction(0)] * texels.shape[-1]
    for corner in product(*axes):
        weight = Fraction(1)
        for _, part in corner:
            weight *= part
        at = [index for index, _ in corner]
        if None not in at:
            sums = [
                one + weight * value
                for one, value in zip(sums, map(exact, texels[tuple(reversed(at))], [view] * 4), strict=True)
            ]
    return [float(np.float32(float(one))) for one in sums]


def exact(value: np.generic, view: View) -> Fraction:
    if not view.as_float:
        return Fraction(value.item())
    most = np.iinfo(value.dtype).max
    return max(Fraction(value.item(), most), Fraction(-1))
