"""Integer arithmetic: sums with carry, products, quotients, minima. PTX ISA 9.7.1 and 9.7.2."""

from sys import byteorder
from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array, choose, raw_dtype, share, typed_dtype, width
from agent.execution.emulator.semantics.table import Function, Meaning, give, rule, typed

_WIDER = {"u16": "u32", "s16": "s32", "b16": "u32", "u32": "u64", "s32": "s64", "b32": "u64"}
_LOW32 = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@rule("add", "sub", "addc", "subc", kinds=("int",), modifiers="sat cc")
def _sum(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    minus = instruction.base.startswith("sub")
    reads, writes = instruction.base.endswith("c"), "cc" in instruction.modifiers
    if "sat" in instruction.modifiers:
        return Meaning((kind, kind), (kind,), _saturated(kind, minus))
    if not reads and not writes:
        return Meaning((kind, kind), (kind,), np.subtract if minus else np.add)
    return Meaning((kind, kind), (kind,), _with_carry(minus, reads, writes), reads, writes)


def _saturated(kind: str, minus: bool) -> Function:
    limits = np.iinfo(typed_dtype(kind))
    wide = np.dtype(np.int64)

    def saturated(a: Array, b: Array, out: Array | None = None) -> Any:
        total = (np.subtract if minus else np.add)(a, b, dtype=wide)
        return give(np.clip(total, limits.min, limits.max).astype(typed_dtype(kind)), out)

    return typed(saturated, (kind, kind), kind)


def _with_carry(minus: bool, reads: bool, writes: bool) -> Function:
    """The carry of a subtraction is its borrow: ``subc`` computes ``a - (b + CC)``."""

    def carried(a: Array, b: Array, *carry: Array, out: Any = None) -> Any:
        total = a - b if minus else a + b
        over = (a < b) if minus else (total < a)
        if reads:
            step = carry[0].astype(a.dtype)
            first = total
            total = first - step if minus else first + step
            over = over | (first < step if minus else total < step)
        return (total, over) if writes else give(total, out)

    return carried


@rule("mul", kinds=("int",), modifiers="lo hi wide")
def _product(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    if "wide" in instruction.modifiers:
        return Meaning((kind, kind), (_WIDER[kind],), wide_product(kind))
    return Meaning((kind, kind), (kind,), high_product(kind) if "hi" in instruction.modifiers else np.multiply)


def wide_product(kind: str) -> Function:
    """The whole product of two 16- or 32-bit numbers."""
    wide = _WIDER[kind]
    dtype = typed_dtype(wide)

    def product(a: Array, b: Array, out: Array | None = None) -> Any:
        return np.multiply(a, b, out=out, dtype=dtype)

    return typed(product, (kind, kind), wide)


def high_product(kind: str) -> Function:
    """The upper half of the whole product."""
    if width(kind) == 64:
        return _high64_signed if kind == "s64" else _high64
    whole, bits = wide_product(kind), width(kind)
    dtype = raw_dtype(kind)

    def high(a: Array, b: Array, out: Array | None = None) -> Any:
        product = whole(a, b)
        return give((product >> product.dtype.type(bits)).astype(dtype), out)

    return high


def _high64(a: Array, b: Array, out: Array | None = None) -> Any:
    a0, a1, b0, b1 = a & _LOW32, a >> _HALF, b & _LOW32, b >> _HALF
    middle = a1 * b0 + (a0 * b0 >> _HALF)
    other = a0 * b1 + (middle & _LOW32)
    return give(a1 * b1 + (middle >> _HALF) + (other >> _HALF), out)


def _high64_signed(a: Array, b: Array, out: Array | None = None) -> Any:
    high = _high64(a, b)
    # two's complement: a negative factor counts 2**64 too much
    high = high - np.where(a >> np.uint64(63), b, np.uint64(0)) - np.where(b >> np.uint64(63), a, np.uint64(0))
    return give(high, out)


@rule("mad", "madc", kinds=("int",), modifiers="lo hi wide sat cc")
def _product_sum(instruction: Instruction) -> Meaning:
    kind, modifiers = instruction.types[0], instruction.modifiers
    reads, writes = instruction.base == "madc", "cc" in modifiers
    wide = _WIDER[kind] if "wide" in modifiers else kind
    sources, results = (kind, kind, wide), (wide,)
    product = wide_product(kind) if "wide" in modifiers else high_product(kind) if "hi" in modifiers else np.multiply
    if "sat" in modifiers:
        total = _saturated(kind, False)
        return Meaning(sources, results, lambda a, b, c, out=None: total(product(a, b), c, out=out))
    if reads or writes:
        carried = _with_carry(False, reads, writes)
        return Meaning(
            sources, results, lambda a, b, *rest, out=None: carried(product(a, b), *rest, out=out), reads, writes
        )

    def product_sum(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        if out is None or share(out, c):
            whole = product(a, b)
            return np.add(whole, c, out=out if out is not None or not isinstance(whole, np.ndarray) else None)
        product(a, b, out=out)
        return np.add(out, c, out=out)

    return Meaning(sources, results, product_sum)


@rule("mul24", kinds=("int",), modifiers="lo hi")
def _product24(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    return Meaning((kind, kind), (kind,), _of24(kind, "hi" in instruction.modifiers))


@rule("mad24", kinds=("int",), modifiers="lo hi sat")
def _product_sum24(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    product = _of24(kind, "hi" in instruction.modifiers)
    total: Function = _saturated(kind, False) if "sat" in instruction.modifiers else np.add
    return Meaning((kind,) * 3, (kind,), lambda a, b, c, out=None: total(product(a, b), c, out=out))


def _of24(kind: str, high: bool) -> Function:
    """The product of the low 24 bits: its low 32 bits, or bits 16 to 47."""
    wide = typed_dtype(_WIDER[kind])
    drop = 8

    def product(a: Array, b: Array, out: Array | None = None) -> Any:
        # shifting up and down again extends the 24-bit number by its own sign
        one = (a << a.dtype.type(drop)) >> a.dtype.type(drop)
        two = (b << b.dtype.type(drop)) >> b.dtype.type(drop)
        whole = np.multiply(one, two, dtype=wide)
        return give((whole >> wide.type(16 if high else 0)).astype(a.dtype), out)

    return typed(product, (kind, kind), kind)


@rule("div", "rem", kinds=("int",))
def _quotient(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    quotient = _signed_quotient if kind.startswith("s") else _quotient_or_ones
    if instruction.base == "div":
        return Meaning((kind, kind), (kind,), quotient)
    return Meaning((kind, kind), (kind,), lambda a, b, out=None: give(_remainder(a, b, quotient(a, b)), out))


def _remainder(a: Array, b: Array, quotient: Array) -> Any:
    """What is left; all ones where the divisor is zero, as cards have it."""
    rest = a - b * quotient
    zero = b == 0
    return choose(zero, ~a.dtype.type(0), rest) if zero.any() else rest


def _quotient_or_ones(a: Array, b: Array, out: Array | None = None) -> Any:
    """PTX leaves division by zero open; cards answer with all ones."""
    quotient = np.floor_divide(a, b)
    zero = b == 0
    return give(choose(zero, ~a.dtype.type(0), quotient) if zero.any() else quotient, out)


def _signed_quotient(a: Array, b: Array, out: Array | None = None) -> Any:
    """Division towards zero. Up to 32 bits a float64 quotient, cut off, is exact; else by way of magnitudes."""
    of = a.dtype.type
    if a.dtype.itemsize < 8:
        signed = np.dtype(f"i{a.dtype.itemsize}")
        quotient = (
            np.divide(a.view(signed), b.view(signed), dtype=np.float64).astype(np.int32).astype(signed).view(a.dtype)
        )
        # the smallest number has no counterpart: its quotient by -1 is itself, whatever the conversion made of it
        special = (b == 0) | (b == ~of(0))
        if np.any(special):
            quotient = choose(special, choose(b == 0, ~of(0), 0 - a), quotient)
        return give(quotient, out)
    top = of(63)
    quotient = _quotient_or_ones(choose(a >> top, 0 - a, a), choose(b >> top, 0 - b, b))
    quotient = choose((a ^ b) >> top, 0 - quotient, quotient)
    return give(choose(b == 0, ~of(0), quotient), out)


@rule("neg", "abs", kinds=("int",))
def _sign(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    function = np.negative if instruction.base == "neg" else np.absolute
    return Meaning((kind,), (kind,), typed(function, (kind,), kind))


@rule("min", "max", kinds=("int",), modifiers="relu")
def _extreme(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    function: Function = np.minimum if instruction.base == "min" else np.maximum
    if "relu" in instruction.modifiers:
        extreme = function
        function = lambda a, b, out=None: np.maximum(extreme(a, b), 0, out=out)  # noqa: E731
    return Meaning((kind, kind), (kind,), typed(function, (kind, kind), kind))


@rule("sad", kinds=("int",))
def _absolute_difference_sum(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    larger = typed(np.maximum, (kind, kind), kind)
    smaller = typed(np.minimum, (kind, kind), kind)
    return Meaning((kind,) * 3, (kind,), lambda a, b, c, out=None: np.add(larger(a, b) - smaller(a, b), c, out=out))


@rule("add", "min", "max", kinds=("pair",), modifiers="relu")
def _pairs(instruction: Instruction) -> Meaning:
    """Two 16-bit numbers in one register, each for itself."""
    kind = instruction.types[0]
    part = kind[:3]
    single: Function = {"add": np.add, "min": np.minimum, "max": np.maximum}[instruction.base]
    function = typed(single, (part, part), part)
    if "relu" in instruction.modifiers:
        inner = function
        function = lambda a, b, out=None: give(typed(np.maximum, (part, part), part)(inner(a, b), np.uint16(0)), out)  # noqa: E731
    return Meaning((kind, kind), (kind,), halves(function))


def halves(function: Function) -> Function:
    """A function of 16-bit arrays as one of 32-bit arrays that hold two such numbers each."""

    def packed(*arrays: Array, out: Array | None = None) -> Any:
        if all(array.ndim == 1 and array.flags.c_contiguous for array in arrays) and byteorder == "little":
            # both numbers of every lane at once, as they lie in memory
            return give(function(*[array.view(np.uint16) for array in arrays]).view(np.uint32), out)
        low = function(*[array.astype(np.uint16) for array in arrays])
        high = function(*[(array >> np.uint32(16)).astype(np.uint16) for array in arrays])
        shifted = np.left_shift(high, np.uint32(16), dtype=np.uint32)
        return np.bitwise_or(low, shifted, out=out, dtype=np.uint32)

    return packed
