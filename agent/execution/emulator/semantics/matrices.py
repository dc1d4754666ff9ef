"""What ``mma`` and ``wmma`` compute: registers to matrices, the product, and back. PTX ISA 9.7.14.

Whole numbers, and single bits, are exact. Of floats PTX says that products are exact and leaves open in which order,
and with how many bits, they are added. Here they are added in float64, one after the other from zero on, the
accumulator last, and rounded once; doubles are added by one fused multiply-add after the other. A card keeps fewer
bits: of sums in f32 it cuts off what lies below the last bit of the largest summand, a few summands at a time (Fasi,
Higham, Mikaitis, Pranesh 2021, "Numerical behavior of NVIDIA tensor cores"). So a result from here and one from a card
differ by at most ``(K + 2) * 2**-23`` times the sum of the magnitudes of the products and the accumulator, and, for an
accumulator in f16, by one more rounding to f16 (``2**-11``); in f64 by ``(K + 1) * 2**-53``. They are equal *within
error*, never bit for bit: see ``INEXACT``.
"""

from collections.abc import Sequence

import numpy as np

from agent.execution.emulator.semantics.arrays import Array, raw_dtype
from agent.execution.emulator.semantics.formats import FORMATS, canonical, load64, rounded
from agent.execution.emulator.semantics.fragments import BITS, Fragment, Shape
from agent.execution.emulator.semantics.fused import fma64
from agent.execution.emulator.semantics.quarter import QUARTERS

_K16 = ((16, 16, 16), (32, 8, 16), (8, 32, 16))

#: Shapes by the type of A, for ``mma`` and for ``wmma``.
SHAPES: dict[str, dict[str, tuple[Shape, ...]]] = {
    "mma": {
        **dict.fromkeys(("f16", "bf16"), ((16, 8, 8), (16, 8, 16))),
        "tf32": ((16, 8, 4), (16, 8, 8)),
        "f64": ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)),
        **dict.fromkeys(("s8", "u8"), ((8, 8, 16), (16, 8, 16), (16, 8, 32))),
        **dict.fromkeys(("e4m3", "e5m2"), ((16, 8, 16), (16, 8, 32))),
        **dict.fromkeys(("s4", "u4"), ((8, 8, 32), (16, 8, 32), (16, 8, 64))),
        "b1": ((8, 8, 128), (16, 8, 128), (16, 8, 256)),
    },
    "wmma": {
        **dict.fromkeys(("f16", "bf16", "s8", "u8"), _K16),
        "tf32": ((16, 16, 8),),
        "f64": ((8, 8, 4),),
        **dict.fromkeys(("s4", "u4"), ((8, 8, 32),)),
        "b1": ((8, 8, 128),),
    },
}
#: Types of the accumulator by the type of A.
SUMS = {
    **dict.fromkeys(("f16", "e4m3", "e5m2"), ("f16", "f32")),
    **dict.fromkeys(("bf16", "tf32"), ("f32",)),
    "f64": ("f64",),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), ("s32",)),
}
#: Types that may stand beside each other as A and B.
PARTNERS = {
    **dict.fromkeys(("s8", "u8"), ("s8", "u8")),
    **dict.fromkeys(("s4", "u4"), ("s4", "u4")),
    **dict.fromkeys(("e4m3", "e5m2"), ("e4m3", "e5m2")),
}
#: Types of A whose products a card rounds in a way that PTX does not say.
INEXACT = frozenset(("f16", "bf16", "tf32", "f64", "e4m3", "e5m2"))


def matrices(layout: Fragment, tables: Sequence[Array]) -> Array:
    """The matrix of each warp, ``(warps, rows, columns)`` of float64 or int64; bits of f64 itself. ``tables`` are its
    registers, ``(warps, 32)`` each."""
    words = np.stack(tables[: layout.registers], axis=2)
    elements = _elements(layout.kind, words)
    result = np.zeros((len(words), *layout.size), elements.dtype)
    result[:, layout.rows, layout.columns] = elements
    return result


def _elements(kind: str, words: Array) -> Array:
    """``(warps, 32, registers)`` to the numbers in them, lowest bits first."""
    bits = BITS[kind]
    if bits < 8:
        parts = (words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)) & np.uint32((1 << bits) - 1)
        flat = parts.reshape(*words.shape[:2], -1).astype(np.int64)
        return flat - ((flat >> 3) << 4) if kind == "s4" else flat
    narrow = np.ascontiguousarray(words).view(f"u{bits // 8}")
    if kind in ("s8", "u8", "s32"):
        return narrow.view(f"{'u' if kind[0] == 'u' else 'i'}{bits // 8}").astype(np.int64)
    if kind == "tf32":
        kind, narrow = "f32", narrow & np.uint32(0xFFFFE000)
    elif kind in ("e4m3", "e5m2"):
        kind, narrow = "f16", QUARTERS[f"{kind}x2"].load(narrow.astype(np.uint16))
    value: Array = load64(narrow, kind)
    return value


def registers(layout: Fragment, result: Array) -> list[Array]:
    """The matrices of bits ``(warps, rows, columns)`` as registers, ``(warps, 32)`` each."""
    elements = np.ascontiguousarray(result[:, layout.rows, layout.columns])
    words = elements.view(np.uint64 if layout.kind == "f64" else np.uint32)
    return [words[:, :, index] for index in range(layout.registers)]


def product(kinds: tuple[str, str, str], a: Array, b: Array, c: Array, words: tuple[str, ...]) -> Array:
    """``a @ b + c`` as bits of the result's type. ``kinds`` are the types of A, of C and of the result; ``words`` the
    instruction's modifiers (``satfinite``, ``xor``)."""
    of, _, to = kinds
    if of == "f64":
        total: Array = c
        for k in range(a.shape[2]):
            left, right = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
            total = fma64(np.ascontiguousarray(left), np.ascontiguousarray(right), total)
        return total.view(np.uint64)
    if to != "s32":
        return _rounded_sums(a, b, c, to)
    found = np.matmul(a.astype(np.float64), b.astype(np.float64))
    if of == "b1" and "xor" in words:
        found = a.sum(axis=2, keepdims=True) + b.sum(axis=1, keepdims=True) - 2 * found
    exact = found.astype(np.int64) + c
    if "satfinite" in words:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    wrapped: Array = exact.astype(raw_dtype("s32"))
    return wrapped


def _rounded_sums(a: Array, b: Array, c: Array, to: str) -> Array:
    """Sums of exact products in float64, one after the other along K, then ``c``, rounded once. A product of matrices
    adds in an order of its own; where that could make a difference (two sums of K + 1 numbers differ by at most
    ``2 * (K + 1) * 2**-53`` times their magnitudes) elements are added again, in order."""
    sums = np.matmul(a, b)
    sums += 0.0  # no sum that begins with zero is minus zero
    sums += c
    off = np.matmul(np.abs(a), np.abs(b))
    off += np.abs(c)
    off *= (a.shape[2] + 2) * 2.0**-52
    store = FORMATS[to].store
    lower = store(sums - off)
    off += sums
    doubtful = lower != store(off)
    bits: Array = canonical(lower, to)
    if doubtful.any():
        # infinities and NaN are the same in any order
        warp, row, column = np.nonzero(doubtful)
        total = np.zeros(len(warp))
        for k in range(a.shape[2]):
            total += a[warp, row, k] * b[warp, k, column]
        bits[doubtful] = rounded(total + c[doubtful], to)
    return bits
