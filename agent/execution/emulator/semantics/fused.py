"""Fused multiply-add with one rounding, for float32 and float64, in plain NumPy."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from agent.execution.emulator.semantics.arrays import Array, primitive
from agent.execution.emulator.semantics.formats import to_odd, two_sum
from agent.execution.emulator.semantics.table import give

# the low 29 bits of a float64, moved to the top, of a number half way between two float32
_TIE, _UPPER = np.uint64(1 << 63), np.uint64(35)
# twice the bits of a float32, less two, up to this: not zero, and no greater than the smallest normal number
_ONE, _TWO, _DENORMAL = np.uint32(1), np.uint32(2), np.uint32(0xFFFFFE)
_CHUNK = 8192
_GAP = 16
_SPLIT = 134217729.0  # 2**27 + 1


@primitive
def fma32(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
    """``a * b + c`` of float32 arrays, rounded once to nearest even.

    The product of two float32 is exact in float64. The sum is rounded to float64 and then to float32; the two
    roundings differ from one only where the float64 lies exactly half way between two float32, which its low 29 bits
    show, or where the result is a denormal (then half ways lie elsewhere). Such lanes are done again with the sum
    rounded to odd. A result of zero needs no care: sums that small are exact in float64.
    """
    total = np.multiply(a, b, dtype=np.float64)
    if total.ndim == 0:
        return give(odd_sum(a, b, c).astype(np.float32), out)
    total = np.add(total, c, out=total if c.ndim == 0 or c.shape == total.shape else None)
    result = total.astype(np.float32)
    doubled = np.left_shift(result.view(np.uint32), _ONE)
    doubled -= _TWO
    bits = total.view(np.uint64)
    bits <<= _UPPER
    again = bits == _TIE
    if result.size and np.minimum.reduce(doubled, axis=None) <= _DENORMAL:
        again |= doubled <= _DENORMAL
    if np.logical_or.reduce(again, axis=None):
        some = (np.broadcast_to(source, result.shape)[again] for source in (a, b, c))
        result[again] = odd_sum(*some).astype(np.float32)
    return give(result, out)


def odd_sum(a: Array, b: Array, c: Array) -> Any:
    """``a * b + c`` of floats of at most 32 bits, as a float64 rounded to odd: any narrower rounding of it is right."""
    return to_odd(*two_sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64)))


@primitive
def fma64(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
    """``a * b + c`` of float64 arrays, rounded once to nearest even."""
    if out is None:
        out = np.empty(np.broadcast_shapes(a.shape, b.shape, c.shape))
    if out.ndim == 0:
        out[()] = fma64(*(np.reshape(source, 1) for source in (a, b, c)))[0]
        return out
    function: Callable[..., None] = _by_complex_product if complex_product_fuses() else _by_parts
    size = out.size
    if out.ndim != 1 or size <= _CHUNK:
        function(a, b, c, out)
        return out
    for start in range(0, size, _CHUNK):
        part = slice(start, start + _CHUNK)
        function(*(source[part] if source.size == size else source for source in (a, b, c)), out[part])
    return out


def _by_complex_product(a: Array, b: Array, c: Array, out: Array) -> None:
    """The real part of ``(a + i) * (b - ci)`` is ``a * b + c``, which NumPy computes with one rounding where it can.

    That is a property of NumPy's build and of the processor: it is tested (``complex_product_fuses``) before use.
    """
    count = out.size
    # a gap behind each: where operands and result touch, NumPy falls back to a loop that rounds twice
    left, right, product = np.empty((3, count + _GAP), np.complex128)[:, :count].reshape(3, *out.shape)
    left.real, left.imag = a, 1.0
    right.real = b
    np.negative(c, out=right.imag)
    np.multiply(left, right, out=product)
    np.copyto(out, product.real)


@lru_cache(maxsize=1)
def complex_product_fuses() -> bool:
    """Whether NumPy multiplies complex numbers with one rounding per term, at all array lengths."""
    random = np.random.default_rng(20)
    for length in (*range(1, 20), 31, 32, 33, 64, 67, 255):
        a, b = random.standard_normal((2, length))
        product = a * b
        found = np.empty(length)
        _by_complex_product(a, b, -product, found)
        wanted = [float(Fraction(x) * Fraction(y) - Fraction(p)) for x, y, p in zip(a, b, product, strict=True)]
        if found.tolist() != wanted:
            return False
    return True


def product_error(a: Array, b: Array, product: Array) -> Any:
    """Dekker: ``a * b - product``, exact where nothing over- or underflows."""
    high_a, high_b = (x * _SPLIT - (x * _SPLIT - x) for x in (a, b))
    low_a, low_b = a - high_a, b - high_b
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _by_parts(a: Array, b: Array, c: Array, out: Array) -> None:
    """Boldo and Melquiond (2008): the low parts are summed to odd, so that adding the high part rounds once.

    Lanes whose exponents are too extreme for error terms are computed with rational numbers.
    """
    shape = out.shape
    a, b, c = (np.broadcast_to(source, shape) for source in (a, b, c))
    product = a * b
    low = product_error(a, b, product)
    high, rest = two_sum(c, low)
    total, lost = two_sum(product, high)
    result = total + to_odd(*two_sum(rest, lost))
    extreme = _extreme(a, b, product, c)
    if extreme.any():
        result[extreme] = [exact_fma(*lane) for lane in zip(a[extreme], b[extreme], c[extreme], strict=True)]
    np.copyto(out, result)


def _extreme(a: Array, b: Array, product: Array, c: Array) -> Any:
    """Lanes where Dekker's product or the sums of its parts may over- or underflow."""
    fine = (np.abs(product) > 1e-200) & (np.abs(product) < 1e290) & (np.abs(c) < 1e290)
    for x in (a, b):
        fine = fine & (np.abs(x) < 1e290)
    return ~(fine & ((np.abs(c) > 1e-200) | (c == 0)))


def exact_fma(a: float, b: float, c: float) -> float:
    """One lane with rational numbers, rounded to nearest even."""
    a, b, c = float(a), float(b), float(c)
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        # the product of two finite numbers is finite, however large: it must not meet an infinity as one
        finite = np.isfinite(a) and np.isfinite(b)
        return c if finite else a * b + c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c if a == 0 or b == 0 or c == 0 else 0.0
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
