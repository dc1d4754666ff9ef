"""Bit fields, counting bits, permuting bytes. PTX ISA 9.7.1."""

from collections.abc import Callable
from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Immediate, Instruction
from agent.execution.emulator.semantics.arrays import Array, primitive, raw_dtype, width
from agent.execution.emulator.semantics.logic import shifted
from agent.execution.emulator.semantics.table import Function, Meaning, give, rule

_NONE = np.uint32(0xFFFFFFFF)


@rule("popc", kinds=("int",))
def _population(instruction: Instruction) -> Meaning:
    return Meaning(instruction.types, ("u32",), lambda a, out=None: give(np.bitwise_count(a).astype(np.uint32), out))


@primitive
def top_bit(a: Any) -> Any:
    """The position of the highest bit that is set, as uint32; 0xffffffff where none is."""
    found = np.zeros(np.shape(a), np.uint32)
    rest = np.asarray(a)
    for step in (32, 16, 8, 4, 2, 1):
        if step >= rest.dtype.itemsize * 8:
            continue
        high = rest >> rest.dtype.type(step)
        some = high != 0
        found = found + some.astype(np.uint32) * np.uint32(step)
        rest = np.where(some, high, rest)
    return np.where(np.asarray(a) == 0, _NONE, found)


@rule("clz", kinds=("int",))
def _leading_zeros(instruction: Instruction) -> Meaning:
    last = np.uint32(width(instruction.types[0]) - 1)
    # none set: last - 0xffffffff wraps to the width
    return Meaning(instruction.types, ("u32",), lambda a, out=None: give(last - top_bit(a), out))


@rule("bfind", kinds=("int",), modifiers="shiftamt")
def _find_top(instruction: Instruction) -> Meaning:
    """The highest bit that is set, for signed numbers the highest that differs from the sign."""
    kind = instruction.types[0]
    last = np.uint32(width(kind) - 1)

    def find(a: Array, out: Array | None = None) -> Any:
        if kind.startswith("s"):
            a = np.where(a >> a.dtype.type(last), ~a, a)
        found = top_bit(a)
        if "shiftamt" in instruction.modifiers:
            found = np.where(found == _NONE, _NONE, last - found)
        return give(found, out)

    return Meaning((kind,), ("u32",), find)


@rule("brev", kinds=("int",))
def _reverse(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    of, bits = raw_dtype(kind).type, width(kind)

    def reverse(a: Array, out: Array | None = None) -> Any:
        for step in (1, 2, 4, 8, 16, 32):
            if step < bits:
                mask = of(sum(((1 << step) - 1) << start for start in range(0, bits, 2 * step)))
                a = ((a >> of(step)) & mask) | ((a & mask) << of(step))
        return give(a, out)

    return Meaning((kind,), (kind,), reverse)


def low_bits(kind: str, count: Array) -> Any:
    """As many ones from bit 0 upwards as ``count`` says; all of them from the width of the type on."""
    of, bits = raw_dtype(kind).type, width(kind)
    short = of((1 << bits) - 1) >> (np.uint32(bits) - np.minimum(count, np.uint32(bits))).astype(of)
    return np.where(count == 0, of(0), short)


@rule("bfe", kinds=("int",))
def _extract(instruction: Instruction) -> Meaning:
    """``c`` bits of ``a`` from bit ``b``; beyond the top a signed number goes on as its sign.

    PTX leaves numbers above 255 open: cards take the low byte for 32 bits, the whole number for 64.
    """
    kind = instruction.types[0]
    of, bits = raw_dtype(kind).type, width(kind)
    right: Function = shifted("shr", kind)
    byte = np.uint32(0xFF if bits == 32 else 0xFFFFFFFF)

    def extract(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        start, length = b & byte, c & byte
        mask = low_bits(kind, length)
        field = right(a, start) & mask
        if kind.startswith("s"):
            last = np.uint32(bits)
            top = np.minimum(
                np.minimum(start, last) + np.minimum(length, last) - np.uint32(1), last - np.uint32(1)
            ).astype(of)
            negative = ((a >> top) & of(1)).astype(np.bool_) & (length != 0)
            field = np.where(negative, field | ~mask, field)
        return give(field, out)

    return Meaning((kind, "u32", "u32"), (kind,), extract)


@rule("bfi", kinds=("int",))
def _insert(instruction: Instruction) -> Meaning:
    """The low ``d`` bits of ``a`` laid over ``b`` from bit ``c``."""
    kind = instruction.types[0]
    left: Function = shifted("shl", kind)
    byte = np.uint32(0xFF if width(kind) == 32 else 0xFFFFFFFF)

    def insert(a: Array, b: Array, c: Array, d: Array, out: Array | None = None) -> Any:
        start = c & byte
        mask = left(low_bits(kind, d & byte), start)
        return np.bitwise_xor(b, (b ^ left(a, start)) & mask, out=out)

    return Meaning((kind, kind, "u32", "u32"), (kind,), insert)


@rule("bmsk", kinds=("int",), modifiers="clamp wrap")
def _mask(instruction: Instruction) -> Meaning:
    """``b`` ones from bit ``a``."""
    left: Function = shifted("shl", "b32")
    wrap = "wrap" in instruction.modifiers

    def mask(a: Array, b: Array, out: Array | None = None) -> Any:
        start, length = (a & np.uint32(31), b & np.uint32(31)) if wrap else (a, b)
        return give(left(low_bits("b32", length), start), out)

    return Meaning(("b32", "b32"), ("b32",), mask)


@rule("szext", kinds=("int",), modifiers="clamp wrap")
def _extend(instruction: Instruction) -> Meaning:
    """The low ``b`` bits of ``a``, extended by zeros or by their sign."""
    kind = instruction.types[0]
    wrap = "wrap" in instruction.modifiers

    def extend(a: Array, b: Array, out: Array | None = None) -> Any:
        length = b & np.uint32(31) if wrap else np.minimum(b, np.uint32(32))
        mask = low_bits("b32", length)
        field = a & mask
        if kind == "s32":
            sign = (a >> np.where(length == 0, np.uint32(0), length - np.uint32(1))) & np.uint32(1)
            field = np.where((sign != 0) & (length != 0), field | ~mask, field)
        return give(field, out)

    return Meaning((kind, "u32"), (kind,), extend)


_PERMUTATIONS: dict[str, Callable[[int, int], int]] = {
    "f4e": lambda i, n: (i + n) & 7,
    "b4e": lambda i, n: (n - i) & 7,
    "rc8": lambda i, n: n,
    "ecl": lambda i, n: max(i, n),
    "ecr": lambda i, n: min(i, n),
    "rc16": lambda i, n: (i & 1) + 2 * (n & 1),
}


@rule("prmt", kinds=("int",), modifiers="f4e b4e rc8 ecl ecr rc16")
def _permute(instruction: Instruction) -> Meaning:
    """Four bytes chosen from the eight of ``b:a``; bit 3 of a selector spreads the sign of its byte."""
    selector = instruction.sources[2]
    kinds = ("b32", "b32", "b32")
    if instruction.modifiers:
        place = _PERMUTATIONS[instruction.modifiers[0]]
        table = np.array([sum(place(i, n) << 4 * i for i in range(4)) for n in range(4)], np.uint32)
        return Meaning(kinds, ("b32",), lambda a, b, c, out=None: give(permuted(a, b, table[c & np.uint32(3)]), out))
    if isinstance(selector, Immediate) and not selector.bits & 0x8888:
        function = by_constant(selector.bits & 0xFFFF)
        return Meaning(kinds, ("b32",), lambda a, b, _, out=None: give(function(a, b), out))
    return Meaning(kinds, ("b32",), lambda a, b, c, out=None: give(permuted(a, b, c), out))


def permuted(a: Array, b: Array, selector: Array) -> Any:
    """The bytes that an array of selectors picks."""
    whole = np.left_shift(b, np.uint64(32), dtype=np.uint64) | a
    result: Any = np.uint32(0)
    for i in range(4):
        pick = (selector >> np.uint32(4 * i)) & np.uint32(15)
        byte = (whole >> ((pick & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(0xFF)
        byte = np.where(pick & np.uint32(8), (byte >> np.uint32(7)) * np.uint32(0xFF), byte)
        result = result | byte << np.uint32(8 * i)
    return result


def by_constant(selector: int) -> Function:
    """The permutation of a known selector: bytes that travel equally far travel together."""
    moves: dict[tuple[int, int], int] = {}
    for i in range(4):
        pick = (selector >> 4 * i) & 7
        key = (pick >> 2, (pick & 3) - i)
        moves[key] = moves.get(key, 0) | 0xFF << 8 * (pick & 3)

    def permute(*words: Array) -> Any:
        result: Any = None
        for (word, distance), mask in moves.items():
            part = words[word] & np.uint32(mask) if mask != 0xFFFFFFFF else words[word]
            part = part >> np.uint32(8 * distance) if distance > 0 else part << np.uint32(-8 * distance)
            result = part if result is None else result | part
        return result

    return permute


@rule("fns", kinds=("int",))
def _find_nth(instruction: Instruction) -> Meaning:
    """The position of the n-th bit that is set, counted from bit ``b`` up (n > 0) or down (n < 0)."""

    def find(mask: Array, base: Array, n: Array, out: Array | None = None) -> Any:
        wanted = n.view(np.int32)
        shape = np.broadcast_shapes(mask.shape, base.shape, n.shape)
        found, seen = np.full(shape, _NONE), np.zeros(shape, np.int32)
        for step in range(32):
            up, down = base + np.uint32(step), base - np.uint32(step)
            position = np.where(wanted >= 0, up, down)
            set_ = (position < 32) & (((mask >> (position & np.uint32(31))) & np.uint32(1)) != 0)
            # n = 0 asks for the base itself
            seen = seen + set_.astype(np.int32)
            hit = set_ & (found == _NONE) & np.where(wanted == 0, step == 0, seen == np.abs(wanted))
            found = np.where(hit, position, found)
        return give(found, out)

    return Meaning(("b32", "b32", "s32"), ("b32",), find)
