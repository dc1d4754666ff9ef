"""Integer contents: ranges, indices, CSR row pointers, permutations. Bounds are ``low <= v < high``."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.workload import dtypes, random
from agent.workload.random import Words

DOMAINS = (
    "integers",
    "uniform",
    "index",
    "offsets",
    "permutation",
    "sorted",
    "constant",
    "zeros",
    "ones",
    "image",
    "iota",
)


@frozen
class _Draw:
    index: Words
    key: int
    count: int
    low: int
    high: int
    family: str

    @property
    def span(self) -> int:
        return max(1, self.high - self.low)


def _plain(draw: _Draw) -> Words:
    """Values in the range: uniform, or few, or rising, or in long stretches, as the family asks."""
    if draw.family == "ties":
        return random.below(draw.key, draw.index, min(4, draw.span))
    if draw.family == "sorted":
        return _rising(draw)
    if draw.family == "constant-rows":
        stretch = draw.index // np.uint64(max(1, -(-draw.count // 8)))
        return random.below(draw.key, stretch, draw.span)
    if draw.family == "small-integers":
        return random.below(draw.key, draw.index, min(16, draw.span))
    if draw.family == "spikes":
        rare = random.below(random.key(draw.key, 1), draw.index, 97) == 0
        return np.where(rare, random.below(draw.key, draw.index, draw.span), np.uint64(0))
    return random.below(draw.key, draw.index, draw.span)


def _rising(draw: _Draw) -> Words:
    """Never falling from first to last, over the whole range."""
    share = draw.index.astype(np.float64) / max(draw.count, 1)
    return np.minimum((share * draw.span).astype(np.uint64), np.uint64(draw.span - 1))


def _offsets(draw: _Draw) -> Words:
    """CSR row pointers: never falling, the first 0, the last ``low + high - low``; rows differ in length.

    The family ``spikes`` gathers the entries of sixteen rows in one, which leaves fifteen empty.
    """
    rows = max(draw.count - 1, 1)
    least, rest = divmod(draw.high - draw.low, rows)
    index = draw.index
    if draw.family == "spikes":
        index = np.where(index == np.uint64(rows), index, index // np.uint64(16) * np.uint64(16))
    even = index * np.uint64(least) + index * np.uint64(rest) // np.uint64(rows)
    inner = (index > np.uint64(0)) & (index < np.uint64(rows))
    jitter = np.uint64(0) if draw.family in ("constant-rows", "spikes") else random.below(draw.key, index, least + 1)
    return np.where(inner, even + jitter, even)


def _image(draw: _Draw) -> Words:
    wave = np.abs((draw.index % np.uint64(512)).astype(np.float64) / 256.0 - 1.0)
    noise = random.unit(draw.key, draw.index)
    return np.minimum(((0.9 * wave + 0.1 * noise) * draw.span).astype(np.uint64), np.uint64(draw.span - 1))


_KINDS: Mapping[str, Callable[[_Draw], Words]] = {
    "integers": _plain,
    "uniform": _plain,
    "index": _plain,
    "offsets": _offsets,
    "permutation": lambda draw: random.permuted(draw.key, draw.index, draw.count),
    "sorted": _rising,
    "constant": lambda draw: np.zeros(len(draw.index), np.uint64),
    "zeros": lambda draw: np.zeros(len(draw.index), np.uint64),
    "ones": lambda draw: np.ones(len(draw.index), np.uint64),
    "image": _image,
    "iota": lambda draw: draw.index,
}
ABSOLUTE = frozenset({"zeros", "ones", "iota", "permutation"})
_PLAIN_FAMILIES = frozenset({"uniform", "ties", "sorted", "constant-rows", "small-integers", "spikes"})


def possible(family: str, kind: str, low: float | None, high: float | None) -> bool:
    """Whether the family says something about integers of this domain."""
    if kind in ("integers", "uniform", "index"):
        return family in _PLAIN_FAMILIES
    return family in (("uniform", "constant-rows", "spikes") if kind == "offsets" else ("uniform",))


def bounds(dtype: str, kind: str, low: float | None, high: float | None) -> tuple[int, int]:
    """The range as whole numbers. Where nobody gave one: all of a byte, 0 and 1 for bool, else -100 (or 0) to 100."""
    least, most = dtypes.integer_range(dtype)
    if low is None and high is None and kind != "index":
        return (least, most + 1) if dtype in ("u8", "i8", "bool") else (max(least, -100), 101)
    first = int(low) if low is not None else max(0, least)
    last = int(high) if high is not None else first + 101
    return max(first, least), min(last, most + 1)


def values(
    dtype: str, count: int, kind: str, low: float | None, high: float | None, family: str, key: int
) -> Callable[[int, int], npt.NDArray[np.generic]]:
    """Elements ``first <= i < last`` of a buffer of ``count`` scalars, as an array of the type."""
    first_value, end = bounds(dtype, kind, low, high)
    base = 0 if kind in ABSOLUTE else first_value
    target = np.dtype(dtypes.numpy_dtype(dtype))

    def make(first: int, last: int) -> npt.NDArray[np.generic]:
        index = np.arange(first, last, dtype=np.uint64)
        found = _KINDS[kind](_Draw(index, key, count, first_value, end, family))
        found = found + np.uint64(base % 2**64)  # two's complement: wraps to the signed value below
        return found.astype(target)

    return make
