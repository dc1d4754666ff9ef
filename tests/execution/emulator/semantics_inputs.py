"""Bit patterns that arithmetic gets wrong: zeros, denormals, ends of ranges, NaN with payloads, near cancellations."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.execution.emulator.semantics_cases import width

Bits = npt.NDArray[np.uint64]

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
LANES = 256


def specials(kind: str) -> list[int]:
    """Bit patterns of the type worth trying in every combination."""
    if kind in FORMATS:
        exponent, digits = FORMATS[kind]
        infinity, one = ((1 << exponent) - 1) << digits, ((1 << (exponent - 1)) - 1) << digits
        quiet = 1 << (digits - 1)
        sizes = [0, 1, 3, (1 << digits) - 1, 1 << digits, (1 << digits) + 1, one, one + 1, one - 1, one + quiet]
        sizes += [infinity - 1, infinity, infinity + 1, infinity | quiet | 5, one + (9 << digits), one + (4 << digits)]
        return [size | sign for size in sizes for sign in (0, 1 << (exponent + digits))]
    bits = width(kind)
    top = 1 << (bits - 1)
    numbers = [0, 1, 2, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 32767, 32768, 65535, top - 1, top, top + 1]
    numbers += [2 * top - 1, 2 * top - 2, 2 * top - 32, 2 * top - 128, 2 * top - 129, 0x7FFFFF, 0x800000, 0xFFFFFF]
    return [number % (2 * top) for number in numbers]


def column(random: np.random.Generator, kind: str) -> Bits:
    """``LANES`` values of the type as 64-bit patterns."""
    kind = kind.removesuffix("c")
    if kind in ("pred", "lane", "nth"):
        low, high = {"pred": (0, 2), "lane": (0, 32), "nth": (-6, 7)}[kind]
        return (random.integers(low, high, LANES) & 0xFFFFFFFF).astype(np.uint64)
    if kind.endswith("x2"):
        part = kind.removesuffix("x2")
        return column(random, part) | column(random, part) << np.uint64(16)
    bits = width(kind)
    full = random.integers(0, 2**64, LANES, dtype=np.uint64) >> np.uint64(64 - bits)
    special = random.choice(np.array(specials(kind), np.uint64), LANES)
    if kind in FORMATS:
        exponent, digits = FORMATS[kind]
        bias = (1 << (exponent - 1)) - 1
        field = np.where(random.random(LANES) < 0.8, bias + random.integers(-6, 7, LANES), random.integers(0, 4, LANES))
        short = np.where(random.random(LANES) < 0.4, np.uint64(2**64 - (1 << digits // 2)), np.uint64(2**64 - 1))
        keep = np.uint64(1 << (exponent + digits) | (1 << digits) - 1)
        usual = (full & short & keep) | field.astype(np.uint64) << np.uint64(digits)
    else:
        small = full >> random.integers(0, bits, LANES).astype(np.uint64)
        usual = np.where(random.random(LANES) < 0.3, ~small, small) & np.uint64(2**bits - 1)
    which = random.random(LANES)
    return np.where(which < 0.4, special, np.where(which < 0.85, usual, full))


def inputs(sources: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    """One row of bit patterns per source. The same sources always give the same values."""
    random = np.random.Generator(
        np.random.PCG64(sum(ord(letter) * 31**place for place, letter in enumerate(" ".join(sources))))
    )
    rows = [column(random, kind) for kind in sources]
    kind = sources[-1].removesuffix("c")
    if kind != sources[-1]:
        rows[-1] = np.where(random.random(LANES) < 0.3, _minus_product(random, kind, rows), rows[-1])
    if sources[:2] == ("f32", "f32"):
        rows[0][:32], rows[1][:32] = _just_below_normal(random)
    return np.stack(rows)


def _minus_product(random: np.random.Generator, kind: str, rows: list[Bits]) -> Bits:
    """Minus the product of the first two rows, give or take one unit in the last place."""
    raw, real = (np.uint32, np.float32) if kind == "f32" else (np.uint64, np.float64)
    a: Any = rows[0].astype(raw).view(real)
    b: Any = rows[1].astype(raw).view(real)
    with np.errstate(all="ignore"):
        product = (-(a * b)).view(raw).astype(np.uint64)
    near = product + random.integers(0, 3, LANES).astype(np.uint64) - np.uint64(1)
    kept: Bits = near & np.uint64(2 ** width(kind) - 1)
    return kept


def _just_below_normal(random: np.random.Generator) -> tuple[Bits, Bits]:
    """Pairs of f32 whose product lies within two units below 2**-126, where flushing has to decide."""
    first = random.integers(2**23, 2**24, 32)
    second = np.minimum((2**47 - random.integers(1, 2**24, 32)) // first, 2**24 - 1)
    a = np.ldexp(first.astype(np.float64), -60).astype(np.float32).view(np.uint32)
    b = np.ldexp(second.astype(np.float64), -113).astype(np.float32).view(np.uint32)
    return a.astype(np.uint64), b.astype(np.uint64) | (random.integers(0, 2, 32) << 31).astype(np.uint64)
