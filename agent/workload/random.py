"""Counter-based random numbers: element ``i`` of a stream depends on its key and on ``i`` alone.

So any part of a buffer can be made alone, on any machine, in any order. Only integer operations, IEEE products and
sums, and table look-ups are used, never a library's ``sin`` or ``log``, whose last bit differs between
processors.
"""

import functools
import statistics

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def key(seed: int, *parts: int) -> int:
    """One 64-bit key from several integers."""
    mixed = seed & _MASK
    for part in parts:
        mixed = _mix_one((mixed + _GOLDEN * (part + 1)) & _MASK)
    return mixed


def _mix_one(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def words(stream: int, index: Words) -> Words:
    """64 random bits for each counter: the splitmix64 finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom
    number generators", 2014) over ``stream + (i + 1) * golden ratio``."""
    value = index * np.uint64(_GOLDEN)
    value += np.uint64((stream + _GOLDEN) & _MASK)
    scratch = value >> np.uint64(30)
    value ^= scratch
    value *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(value, np.uint64(27), out=scratch)
    value ^= scratch
    value *= np.uint64(0x94D049BB133111EB)
    np.right_shift(value, np.uint64(31), out=scratch)
    value ^= scratch
    return value


def halves(stream: int, first: int, count: int) -> npt.NDArray[np.uint32]:
    """32 random bits for the counters ``first <= i < first + count``: two to a word, for speed."""
    start, stop = first // 2, (first + count + 1) // 2
    pairs = words(stream, np.arange(start, stop, dtype=np.uint64))
    return pairs.astype("<u8", copy=False).view("<u4")[first - 2 * start :][:count]


def unit(stream: int, index: Words) -> Floats:
    """Uniform doubles in [0, 1) with 53 random bits."""
    return (words(stream, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(stream: int, index: Words, limit: int) -> Words:
    """Uniform integers in [0, limit), for ``1 <= limit <= 2**64`` (bias below 2**-32 for limits up to 2**32)."""
    drawn = words(stream, index)
    if limit <= 2**32:
        return (drawn >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)
    return drawn if limit >= 2**64 else drawn % np.uint64(limit)


@functools.cache
def quantiles() -> Floats:
    """Quantiles of the normal distribution at the edges of 4096 equal steps; the outermost end at 4.5 deviations."""
    inner = [statistics.NormalDist().inv_cdf(k / 4096) for k in range(1, 4096)]
    return np.array([-4.5, *inner, 4.5])


def normal(stream: int, index: Words) -> Floats:
    """Normal doubles of mean 0 and deviation 1, by linear interpolation of the inverse distribution, cut at 4.5."""
    drawn = words(stream, index)
    step = (drawn >> np.uint64(52)).astype(np.intp)
    fraction = (drawn & np.uint64(2**52 - 1)).astype(np.float64) * 2.0**-52
    table = quantiles()
    return table[step] + fraction * (table[step + 1] - table[step])


@functools.cache
def single_quantiles() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The quantiles, and the slope of each step per unit of its 20 fraction bits."""
    table = quantiles()
    return table[:-1].astype(np.float32), (np.diff(table) * 2.0**-20).astype(np.float32)


def normal_halves(stream: int, first: int, count: int) -> npt.NDArray[np.float32]:
    """Normal floats for the counters ``first <= i < first + count``: 32 random bits each, all in single precision."""
    drawn = halves(stream, first, count)
    step = (drawn >> np.uint32(20)).astype(np.intp)
    values, slopes = single_quantiles()
    found = (drawn & np.uint32(2**20 - 1)).astype(np.float32)
    found *= slopes[step]
    found += values[step]
    return found


def permuted(stream: int, index: Words, count: int) -> Words:
    """A random permutation of ``0 <= i < count``, at each counter: a Feistel network walked until it falls inside
    (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002)."""
    half = half_bits(count)
    value = index.copy()
    outside = np.ones(len(index), dtype=bool)
    while outside.any():
        value[outside] = _feistel(stream, value[outside], half)
        outside = value >= np.uint64(count)
    return value


def half_bits(count: int) -> int:
    """Half of the bits that the network works on, rounded up."""
    return max(1, -(-max(1, (count - 1).bit_length()) // 2))


def _feistel(stream: int, value: Words, half: int) -> Words:
    mask, shift = np.uint64(2**half - 1), np.uint64(half)
    left, right = value >> shift, value & mask
    for turn in range(4):
        left, right = right, left ^ (words(key(stream, turn), right) & mask)
    return (left << shift) | right
