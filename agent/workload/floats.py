"""Floating-point contents: one function per input family, from element indices to doubles, then rounded to the type.

Bounds ``low <= v <= high`` hold for every family. A domain without bounds is all of the type's finite numbers.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.workload import dtypes, random
from agent.workload.random import Floats, Words

DOMAINS = ("normal", "uniform", "sorted", "constant", "zeros", "ones", "integers", "image")

# Which magnitudes still leave room for sums and squares in each type, and the smallest normal number.
LARGE = {"f16": 200.0, "bf16": 1e15, "f32": 1e15, "f64": 1e120}
TINY = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


@frozen
class _Draw:
    """What a family is made from: counters, a stream key, the number of elements in all, the type, the bounds."""

    index: Words
    key: int
    count: int
    dtype: str
    low: float | None
    high: float | None

    def unit(self, salt: int = 0) -> Floats:
        return random.unit(random.key(self.key, salt), self.index)

    def span(self) -> tuple[float, float]:
        return span(self.low, self.high)

    def within(self, share: Floats) -> Floats:
        """Shares in [0, 1] spread over the interval."""
        low, high = self.span()
        return low + share * (high - low)


def span(low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds, or the interval that stands in for a missing one."""
    if low is None and high is None:
        return -1.0, 1.0
    if low is None:
        assert high is not None
        return high - 2.0 - abs(high), high
    return low, low + 2.0 + abs(low) if high is None else high


def stretch(count: int) -> int:
    """Elements of one value in the family ``constant-rows``."""
    return max(1, -(-count // 8))


def _normal(draw: _Draw) -> Floats:
    values = random.normal(draw.key, draw.index)
    if draw.low is None and draw.high is None:
        return values
    return draw.within(np.clip(0.5 + values / 6.0, 0.0, 1.0))


def _uniform(draw: _Draw) -> Floats:
    return draw.within(draw.unit())


def _large_mean(draw: _Draw) -> Floats:
    """A mean a thousand times the spread: cancellation shows where a variance is the difference of two large sums."""
    if draw.low is None and draw.high is None:
        return 1000.0 + random.normal(draw.key, draw.index)
    low, high = draw.span()
    return high - 1e-3 * draw.unit() * (high - low)


def _spikes(draw: _Draw) -> Floats:
    """Mostly small values, one in 97 large."""
    chosen = random.below(random.key(draw.key, 1), draw.index, 97) == 0
    if draw.low is None and draw.high is None:
        return np.where(chosen, 100.0, 0.01) * random.normal(draw.key, draw.index)
    return draw.within(np.where(chosen, 1.0 - 0.1 * draw.unit(), 0.01 * draw.unit()))


def _ties(draw: _Draw) -> Floats:
    """Four distinct values only."""
    return draw.within(random.below(draw.key, draw.index, 4).astype(np.float64) / 3.0)


def _sorted(draw: _Draw) -> Floats:
    return draw.within((draw.index.astype(np.float64) + draw.unit()) / max(draw.count, 1))


def _constant_rows(draw: _Draw) -> Floats:
    """Eight long stretches of one value each, so that most rows of most shapes are constant."""
    return draw.within(random.unit(draw.key, draw.index // np.uint64(stretch(draw.count))))


def _signed_zeros(draw: _Draw) -> Floats:
    """One third +0, one third -0 (where negative values are allowed), one third numbers."""
    which = random.below(random.key(draw.key, 1), draw.index, 3)
    minus = -0.0 if draw.low is None or draw.low < 0 else 0.0
    return np.where(which == 0, 0.0, np.where(which == 1, minus, draw.within(draw.unit())))


def _denormals(draw: _Draw) -> Floats:
    """Half of the values below the smallest normal number of the type."""
    signed = draw.unit(2) * 2.0 - 1.0 if draw.low is None or draw.low < 0 else draw.unit(2)
    tiny = signed * TINY[draw.dtype]
    if draw.high is not None and draw.high <= 0:
        tiny = -np.abs(tiny)
    return np.where(random.below(random.key(draw.key, 1), draw.index, 2) == 0, tiny, draw.within(draw.unit()))


def _small_integers(draw: _Draw) -> Floats:
    """Whole numbers of at most 8 in magnitude: sums of them are exact, so results can be compared exactly."""
    low, high = whole_bounds(draw.low, draw.high)
    return low + random.below(draw.key, draw.index, int(high - low) + 1).astype(np.float64)


def whole_bounds(low: float | None, high: float | None) -> tuple[float, float]:
    """The small whole numbers inside the bounds: at most seventeen, nearest to zero."""
    least = float("-inf") if low is None else float(np.ceil(low))
    most = float("inf") if high is None else float(np.floor(high))
    first = min(max(least, -8.0), most)
    return first, max(first, min(most, first + 16.0))


def _all_negative(draw: _Draw) -> Floats:
    """Strictly negative: a maximum that starts from zero is wrong here."""
    low, top = negative_span(draw.low, draw.high)
    return low + draw.unit() * (top - low)


def negative_span(low: float | None, high: float | None) -> tuple[float, float]:
    """The part of the bounds that is strictly negative."""
    least, most = (-2.0, -1.0) if low is None and high is None else span(low, high)
    return least, min(most, 0.5 * least if least < 0 else most, -1e-30)


def _large_magnitude(draw: _Draw) -> Floats:
    if draw.low is None and draw.high is None:
        return random.normal(draw.key, draw.index) * LARGE[draw.dtype]
    return draw.within(np.where(draw.unit(1) < 0.5, 0.0, 1.0) * (1.0 - 0.01 * draw.unit()))


def _large_negative(draw: _Draw) -> Floats:
    """Far below zero, as masks make them: a maximum that starts from -1e4 or -1e9 is wrong here."""
    return -LARGE[draw.dtype] * (0.5 + 0.5 * draw.unit())


def _nan_inf(draw: _Draw) -> Floats:
    """Numbers with one NaN and one infinity of each sign in about 64."""
    which = random.below(random.key(draw.key, 1), draw.index, 64)
    values = draw.within(draw.unit())
    return np.select([which == 0, which == 1, which == 2], [np.nan, np.inf, -np.inf], values)


def _image(draw: _Draw) -> Floats:
    """A slow triangle wave with noise, in [0, 1] unless bounds say otherwise."""
    wave = np.abs((draw.index % np.uint64(512)).astype(np.float64) / 256.0 - 1.0)
    share = 0.9 * wave + 0.1 * draw.unit()
    return share if draw.low is None and draw.high is None else draw.within(share)


_FAMILIES: Mapping[str, Callable[[_Draw], Floats]] = {
    "normal": _normal,
    "uniform": _uniform,
    "large-mean": _large_mean,
    "spikes": _spikes,
    "ties": _ties,
    "sorted": _sorted,
    "constant-rows": _constant_rows,
    "signed-zeros": _signed_zeros,
    "denormals": _denormals,
    "all-negative": _all_negative,
    "large-magnitude": _large_magnitude,
    "large-negative": _large_negative,
}
FAMILIES = tuple(_FAMILIES)
_EXTRA: Mapping[str, Callable[[_Draw], Floats]] = {"small-integers": _small_integers, "nan-inf": _nan_inf}

# Domains that say more than a range: their contents are the same in every family.
_FIXED: Mapping[str, Callable[[_Draw], Floats]] = {
    "sorted": _sorted,
    "constant": lambda draw: np.full(len(draw.index), draw.span()[0]),
    "zeros": lambda draw: np.zeros(len(draw.index)),
    "ones": lambda draw: np.ones(len(draw.index)),
    "integers": _small_integers,
    "image": _image,
}


def formula(kind: str, low: float | None, high: float | None, family: str) -> str:
    """What computes the contents: the name of a family, or of a domain that is the same in every family."""
    if kind in _FIXED:
        return "small-integers" if kind == "integers" else kind
    return family if family in (*FAMILIES, *_EXTRA) and possible(family, kind, low, high) else kind


def possible(family: str, kind: str, low: float | None, high: float | None) -> bool:
    """Whether the family has members inside the domain."""
    if kind in _FIXED:
        return family == {"integers": "small-integers", "sorted": "sorted"}.get(kind, "uniform")
    zero = (low is None or low <= 0) and (high is None or high >= 0)
    free = low is None and high is None
    return {
        "signed-zeros": zero,
        "denormals": zero,
        "all-negative": low is None or low < 0,
        "large-magnitude": free,
        "large-negative": free,
        "nan-inf": free,
        "small-integers": free or _holds_integers(low, high),
    }.get(family, True)


def _holds_integers(low: float | None, high: float | None) -> bool:
    return low is None or high is None or np.floor(high) > np.ceil(low)


def values(
    dtype: str, count: int, kind: str, low: float | None, high: float | None, family: str, key: int
) -> Callable[[int, int], npt.NDArray[np.generic]]:
    """Elements ``first <= i < last`` of a buffer of ``count`` scalars, as an array of the type (bf16 as its bits)."""
    name = formula(kind, low, high, family)
    fill = {**_FIXED, **_FAMILIES, **_EXTRA}[name]
    if fill is _uniform and dtype != "f64":
        return _fast_uniform(dtype, low, high, key)
    if fill is _normal and dtype != "f64" and low is None and high is None:
        return lambda first, last: _rounded(random.normal_halves(key, first, last - first), dtype, None, None)

    def make(first: int, last: int) -> npt.NDArray[np.generic]:
        index = np.arange(first, last, dtype=np.uint64)
        return _rounded(fill(_Draw(index, key, count, dtype, low, high)), dtype, low, high)

    return make


def single_uniform(low: float | None, high: float | None) -> tuple[float, float]:
    """Scale of 24 random bits and offset, rounded to single precision."""
    bottom, top = span(low, high)
    return float(np.float32((top - bottom) * 2.0**-24)), float(np.float32(bottom))


def _fast_uniform(
    dtype: str, low: float | None, high: float | None, key: int
) -> Callable[[int, int], npt.NDArray[np.generic]]:
    """Uniform values with 24 random bits each, all in single precision."""
    scale, offset = map(np.float32, single_uniform(low, high))

    def make(first: int, last: int) -> npt.NDArray[np.generic]:
        drawn = random.halves(key, first, last - first) >> np.uint32(8)
        found = drawn.astype(np.float32)
        found *= scale
        found += offset
        return _rounded(found, dtype, low, high)

    return make


def _rounded(
    found: npt.NDArray[np.floating], dtype: str, low: float | None, high: float | None
) -> npt.NDArray[np.generic]:
    """To the type, and back inside the bounds where rounding left them. A bound that the type lacks moves inward."""
    if low is not None or high is not None:
        found = np.clip(found, low, high)
    if dtype == "bf16":
        return _to_bf16(found.astype(np.float32), low, high)
    target: npt.DTypeLike = dtypes.numpy_dtype(dtype)
    with np.errstate(over="ignore"):
        result: npt.NDArray[np.generic] = found.astype(target, copy=False)
    if low is None and high is None:
        return result
    inside: npt.NDArray[np.generic] = np.clip(result, _inner(low, target, 1), _inner(high, target, -1))
    return inside.astype(target, copy=False)


def limits(dtype: str, low: float | None, high: float | None) -> tuple[float, float, float, float]:
    """The bounds, infinite where there is none, and the nearest numbers of the type inside them (bf16: the bounds)."""
    target: npt.DTypeLike = np.float64 if dtype == "bf16" else dtypes.numpy_dtype(dtype)
    inner = (_inner(low, target, 1), _inner(high, target, -1))
    return (
        -np.inf if low is None else low,
        np.inf if high is None else high,
        -np.inf if inner[0] is None else float(inner[0]),
        np.inf if inner[1] is None else float(inner[1]),
    )


def _inner(bound: float | None, target: npt.DTypeLike, inwards: int) -> npt.NDArray[np.generic] | None:
    """The nearest number of the type that is not outside the bound."""
    if bound is None:
        return None
    nearest: npt.NDArray[np.floating] = np.array(bound).astype(target)
    outside = (bound - float(nearest)) * inwards > 0
    return np.nextafter(nearest, np.full_like(nearest, inwards * np.inf)) if outside else nearest


def _to_bf16(found: npt.NDArray[np.float32], low: float | None, high: float | None) -> npt.NDArray[np.uint16]:
    """Round to nearest even; a value that rounding pushed out of the bounds is cut off toward zero or stepped back."""
    bits = found.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    rounded[np.isnan(found)] = 0x7FC0
    for _ in range(2):
        value = (rounded.astype(np.uint32) << np.uint32(16)).view(np.float32)
        down = np.zeros(len(value), bool) if high is None else value > high
        up = np.zeros(len(value), bool) if low is None else value < low
        toward_zero = (down & (value > 0)) | (up & (value < 0))
        away = (down | up) & ~toward_zero
        rounded = rounded - toward_zero.astype(np.uint16) + away.astype(np.uint16)
    return rounded
