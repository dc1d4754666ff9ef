"""Floating-point formats: loading into wider arithmetic, rounding back in any direction, NaN and denormals.

A value is widened without loss, computed in float64, and rounded once. Where float64 itself had to round, the sign of
what it lost comes along (``error``), so that the last rounding is still right: a float64 that equals a number of the
narrow format, or lies half way between two, is told apart from one that only rounded to there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from agent.execution.emulator.semantics.arrays import Array, choose, primitive, raw_dtype

#: The NaN that arithmetic in each format results in. f64 has none of its own: see ``nan64``.
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


SINGLES_OF_F16 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


@primitive
def f16_to_single(bits: Array) -> Any:
    """f16 bits as float32."""
    return np.take(SINGLES_OF_F16, bits)


def store_f16(value: Any) -> Any:
    """float32 to f16 bits, to nearest even; NaN becomes canonical. NumPy's own conversion takes twice as long."""
    bits = value.view(np.uint32)
    size = bits & np.uint32(0x7FFFFFFF)
    # the exponent's bias changes by 112; half a unit in the last place, less one for an even neighbour, rounds
    half = (size + ((size >> np.uint32(13) & np.uint32(1)) + np.uint32(0xC8000FFF))) >> np.uint32(13)
    if size.min(initial=np.uint32(0xFFFFFFFF)) < 0x38800000:
        # below 2**-14 adding one half leaves just the digits of a denormal
        denormal = (size.view(np.float32) + np.float32(0.5)).view(np.uint32) - np.uint32(0x3F000000)
        half = choose(size < np.uint32(0x38800000), denormal, half)
    half = half | (bits >> np.uint32(16) & np.uint32(0x8000))
    if size.max(initial=np.uint32(0)) >= 0x477FF000:
        infinite = bits >> np.uint32(16) & np.uint32(0x8000) | np.uint32(0x7C00)
        large = choose(size > np.uint32(0x7F800000), np.uint32(0x7FFF), infinite)
        half = choose(size >= np.uint32(0x477FF000), large, half)
    return half.astype(np.uint16)


def _load_bf16(bits: Any) -> Any:
    return np.left_shift(bits, np.uint32(16), dtype=np.uint32).view(np.float32)


def _store_bf16(value: Array) -> Any:
    """float64 to bf16: first to float32 rounded to odd, from which a second rounding does no harm."""
    single = value.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.uint32) - (np.abs(back) > np.abs(value)).astype(np.uint32)
    # a NaN must not wrap around to zero; it is made canonical later
    bits = np.where(value != value, np.uint32(0x7FFF0000), bits | (back != value).astype(np.uint32))
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


@frozen(eq=False)
class Format:
    """``load`` gives float32 or float64 (exactly) from bits, ``store`` the bits nearest to a float64, ties to even."""

    name: str
    load: Callable[[Array], Any]
    store: Callable[[Array], Any]
    exponent: int  # mask of the exponent bits
    sign: int


FORMATS = {
    "f16": Format(
        "f16",
        f16_to_single,
        lambda value: value.astype(np.float16).view(np.uint16),
        0x7C00,
        0x8000,
    ),
    "bf16": Format("bf16", _load_bf16, _store_bf16, 0x7F80, 0x8000),
    "f32": Format(
        "f32",
        lambda bits: bits.view(np.float32),
        lambda value: value.astype(np.float32).view(np.uint32),
        0x7F800000,
        0x80000000,
    ),
    "f64": Format(
        "f64",
        lambda bits: bits.view(np.float64),
        lambda value: value.astype(np.float64).view(np.uint64),
        0x7FF0000000000000,
        0x8000000000000000,
    ),
}


def load64(bits: Array, kind: str) -> Any:
    """The value as float64, exactly."""
    return FORMATS[kind].load(bits).astype(np.float64, copy=False)


def flushed(bits: Array, kind: str) -> Any:
    """Denormals become zeros of their sign (``.ftz``). The very array where there are none."""
    form, of = FORMATS[kind], raw_dtype(kind).type
    # twice the bits, less one, wraps zero around to the top and leaves denormals below the smallest exponent
    doubled = np.left_shift(bits, of(1))
    doubled -= of(1)
    smallest = of(((form.exponent & -form.exponent) << 1) - 1)
    if not bits.size or np.minimum.reduce(doubled, axis=None) >= smallest:
        return bits
    return choose(doubled < smallest, bits & of(form.sign), bits)


def canonical(value: Any, kind: str) -> Any:
    """Bits with every NaN made the canonical one. ``value`` is changed in place where it is an array."""
    form, of = FORMATS[kind], raw_dtype(kind).type
    if kind not in CANONICAL:
        return value
    nan = (value & of(form.sign - 1)) > of(form.exponent)
    if not nan.any():
        return value
    if isinstance(value, np.generic):
        return of(CANONICAL[kind])
    np.copyto(value, of(CANONICAL[kind]), where=nan)
    return value


def rounded(value: Array, kind: str, mode: str = "rn", error: Array | None = None) -> Any:
    """float64 ``value`` (plus something tiny of the sign of ``error``) as bits of ``kind``, rounded as ``mode`` says.

    ``mode`` is ``rn`` (ties to even), ``rz`` (towards zero), ``rm`` (down) or ``rp`` (up). NaN becomes canonical.
    """
    if error is not None:
        value = to_odd(value, error) if kind != "f64" else value
    form = FORMATS[kind]
    bits = form.store(value)
    if mode != "rn":
        held = form.load(bits)
        above, below = held > value, held < value
        if kind == "f64" and error is not None:
            above, below = error < 0, error > 0
        bits = stepped(bits, above, below, mode)
    return canonical(bits, kind)


def stepped(bits: Array, above: Array, below: Array, mode: str) -> Any:
    """Bits one step down (``rm``), up (``rp``) or towards zero (``rz``) where they lie on the wrong side of truth."""
    of = bits.dtype.type
    negative = (bits >> of(bits.dtype.itemsize * 8 - 1)).astype(np.bool_)
    one = of(1)
    if mode == "rz":
        return bits - np.where(negative, below, above).astype(bits.dtype)
    wrong = above if mode == "rm" else below
    # away from zero is one more: down for a negative number, up for a positive one
    more = negative if mode == "rm" else ~negative
    return bits + np.where(wrong, np.where(more, one, of(0) - one), of(0))


def to_odd(value: Array, error: Array) -> Any:
    """``value + error`` (a float and what its rounding lost) rounded to odd: the last bit is set where inexact."""
    signed = np.int64 if value.dtype == np.float64 else np.int32
    bits: Any = value.view(signed)
    lost = ((error > 0) | (error < 0)).astype(signed) & ~bits
    # one step away from zero where value and error have one sign, else one towards it
    step = 1 - 2 * ((error > 0) ^ (value > 0)).astype(signed)
    return (bits + (lost & signed(1)) * step).view(value.dtype)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth: the rounded sum of two floats and its exact error (meaningless where the sum is no finite number)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def saturated(value: Any) -> Any:
    """Floats clamped to [0, 1]; NaN and minus zero become plus zero (``.sat``)."""
    return np.minimum(np.fmax(value, value.dtype.type(0)) + value.dtype.type(0), value.dtype.type(1))
