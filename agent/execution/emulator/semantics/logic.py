"""Bitwise logic and shifts. PTX ISA 9.7.8."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Immediate, Instruction, Operand
from agent.execution.emulator.semantics.arrays import Array, raw_dtype, typed_dtype, width
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule, typed

_BITWISE: dict[str, Function] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@rule("and", "or", "xor", kinds=("int", "pred"))
def _bitwise(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    return Meaning((kind, kind), (kind,), _BITWISE[instruction.base])


@rule("not", kinds=("int", "pred"))
def _complement(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    return Meaning((kind,), (kind,), np.logical_not if kind == "pred" else np.invert)


@rule("cnot", kinds=("int",))
def _logical_not(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    dtype = raw_dtype(kind)
    return Meaning((kind,), (kind,), lambda a, out=None: give((a == 0).astype(dtype), out))


@rule("lop3", kinds=("int",), modifiers="and or")
def _three_way(instruction: Instruction) -> Meaning:
    """Any function of three bits, by its table of eight. With a join the second result tells whether a bit is set."""
    table = instruction.sources[3]
    if not isinstance(table, Immediate):
        raise Unsupported(instruction.opcode, "the table is no constant")
    function = three_way(table.bits & 0xFF)
    if not instruction.modifiers:
        return Meaning(("b32",) * 4, ("b32",), lambda a, b, c, _, out=None: function(a, b, c, out=out))
    join: Function = np.logical_or if "or" in instruction.modifiers else np.logical_and

    def joined(a: Array, b: Array, c: Array, _: Array, p: Array, out: Any = None) -> Any:
        bits = function(a, b, c)
        return bits, join(bits != 0, p)

    return Meaning(("b32",) * 4 + ("pred",), ("b32", "pred"), joined)


_TWO_WAY: dict[int, Function] = {
    0b0000: lambda b, c: np.uint32(0),
    0b0001: lambda b, c: ~(b | c),
    0b0010: lambda b, c: ~b & c,
    0b0011: lambda b, c: ~b,
    0b0100: lambda b, c: b & ~c,
    0b0101: lambda b, c: ~c,
    0b0110: lambda b, c: b ^ c,
    0b0111: lambda b, c: ~(b & c),
    0b1000: lambda b, c: b & c,
    0b1001: lambda b, c: ~(b ^ c),
    0b1010: lambda b, c: c,
    0b1011: lambda b, c: ~b | c,
    0b1100: lambda b, c: b,
    0b1101: lambda b, c: b | ~c,
    0b1110: lambda b, c: b | c,
    0b1111: lambda b, c: np.uint32(0xFFFFFFFF),
}
# bit i of a table is the value for a = i >> 2, b = i >> 1, c = i
_COMMON: dict[int, Function] = {
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0xF8: lambda a, b, c: a | (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0x78: lambda a, b, c: a ^ (b & c),
    0x6A: lambda a, b, c: (a & b) ^ c,
    0xE8: lambda a, b, c: (a & b) | (c & (a | b)),
}


def three_way(table: int) -> Function:
    """The function of three arrays that ``table`` describes."""
    if table in _COMMON:
        common = _COMMON[table]
        return lambda a, b, c, out=None: give(common(a, b, c), out)
    unset, set_ = _TWO_WAY[table & 0xF], _TWO_WAY[table >> 4]

    def chosen(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        low = unset(b, c)
        # low where a is 0, the other where it is 1
        return np.bitwise_xor(low, a & (low ^ set_(b, c)), out=out)

    return chosen


@rule("shl", "shr", kinds=("int",))
def _shift(instruction: Instruction) -> Meaning:
    """Counts beyond the width shift everything out; ``shr`` of signed types fills with the sign."""
    kind = instruction.types[0]
    return Meaning((kind, "u32"), (kind,), shifted(instruction.base, kind, _count(instruction.sources)))


def _count(sources: Sequence[Operand]) -> int | None:
    count = sources[1]
    return count.bits & 0xFFFFFFFF if isinstance(count, Immediate) else None


def shifted(base: str, kind: str, fixed: int | None = None) -> Function:
    """The shift by an array of 32-bit counts, or by ``fixed`` (the second argument is ignored then)."""
    bits, dtype = width(kind), typed_dtype(kind) if base == "shr" else raw_dtype(kind)
    signed = dtype.kind == "i"
    most = bits - 1 if signed else bits
    ufunc: Function = np.left_shift if base == "shl" else np.right_shift
    if fixed is not None:
        count = dtype.type(min(fixed, most))
        by_constant = typed(lambda a, out=None: ufunc(a, count, out=out), (kind,), kind) if signed else None
        if by_constant is not None:
            return lambda a, _, out=None: by_constant(a, out=out)
        return lambda a, _, out=None: ufunc(a, count, out=out)

    def by_array(a: Array, counts: Array, out: Array | None = None) -> Any:
        clamped = np.minimum(counts, np.uint32(most)).astype(dtype)
        if not signed:
            return ufunc(a, clamped, out=out)
        if out is None:
            return ufunc(a.view(dtype), clamped).view(a.dtype)
        ufunc(a.view(dtype), clamped, out=out.view(dtype))
        return out

    return by_array


@rule("shf", kinds=("int",), modifiers="l r clamp wrap")
def _funnel(instruction: Instruction) -> Meaning:
    """The 64 bits ``b:a`` shifted left (upper word kept) or right (lower word kept)."""
    left, clamp = "l" in instruction.modifiers, "clamp" in instruction.modifiers

    def funnel(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        count = np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)
        whole = np.left_shift(b, np.uint64(32), dtype=np.uint64) | a
        places = count.astype(np.uint64)
        result = whole << places >> np.uint64(32) if left else whole >> places
        return give(result.astype(np.uint32), out)

    return Meaning(("b32", "b32", "u32"), ("b32",), funnel)
