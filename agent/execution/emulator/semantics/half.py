"""Half precision (f16, bf16) and its packed pairs: exact in wider arithmetic, rounded once. PTX ISA 9.7.4."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.finish import flushed_result, was_tiny
from agent.execution.emulator.semantics.formats import FORMATS, canonical, flushed, store_f16, to_odd, two_sum
from agent.execution.emulator.semantics.fused import odd_sum
from agent.execution.emulator.semantics.integer import halves
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule

_SIGN = np.uint16(0x8000)
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}


def store_single(value: Any, kind: str) -> Any:
    """float32 to half bits, to nearest even."""
    if kind == "f16":
        return store_f16(value)
    bits = value.view(np.uint32)
    shift = np.uint32(16)
    # a NaN is made canonical later; it must not wrap around to zero here
    bits = np.where(value != value, np.uint32(0x7FFF0000), bits + np.uint32(0x7FFF) + (bits >> shift & np.uint32(1)))
    return (bits >> shift).astype(np.uint16)


@rule("add", "sub", "mul", "fma", kinds=("half",), modifiers="rn ftz sat relu")
def _arithmetic(instruction: Instruction) -> Meaning:
    """Sums and products of halves need float32 only: it has twice their digits and two more, so that rounding twice is
    rounding once (Figueroa 1995). A fused sum does not fit: it is rounded to odd in float64 first."""
    if len(instruction.types) != 1:
        raise Unsupported(instruction.opcode)
    kind = instruction.types[0]
    part, modifiers = kind.removesuffix("x2"), instruction.modifiers
    load, base = FORMATS[part].load, instruction.base
    ufunc: Function | None = {"add": np.add, "sub": np.subtract, "mul": np.multiply}.get(base)

    ftz = "ftz" in modifiers
    tiny = was_tiny(ufunc or odd_sum, part) if ftz and base in ("mul", "fma") else None

    def single(*sources: Array, out: Array | None = None) -> Any:
        if ftz:
            sources = tuple(flushed(source, part) for source in sources)
        values = [load(source) for source in sources]
        bits = canonical(store_single(ufunc(*values), part) if ufunc else fused_half(values, part), part)
        if ftz:
            bits = flushed_result(bits, values, part, tiny)
        return give(_clamped(bits, part, modifiers), out)

    count = 3 if base == "fma" else 2
    return Meaning((kind,) * count, (kind,), single if part == kind else halves(single))


def fused_half(values: list[Any], kind: str) -> Any:
    """``a * b + c`` of loaded halves, rounded once. For f16 in float32: the product is exact, the sum made odd."""
    a, b, c = values
    if kind != "f16" or isinstance(a, np.generic):
        return FORMATS[kind].store(odd_sum(a, b, c))
    return store_single(to_odd(*two_sum(a * b, c)), kind)


def _clamped(bits: Any, kind: str, modifiers: tuple[str, ...]) -> Any:
    nan = np.uint16(FORMATS[kind].exponent)
    if "sat" in modifiers:
        # below zero and NaN give zero; positive floats are ordered as their bits are
        bits = np.where(bits > nan, np.uint16(0), np.minimum(bits, np.uint16(_ONE[kind])))
    if "relu" in modifiers:
        bits = np.where(bits & _SIGN, np.uint16(0), bits)
    return bits


@rule("neg", "abs", kinds=("half",), modifiers="ftz")
def _sign(instruction: Instruction) -> Meaning:
    """The sign bit alone, and NaN canonical."""
    kind = instruction.types[0]
    part, ftz = kind.removesuffix("x2"), "ftz" in instruction.modifiers
    negate = instruction.base == "neg"

    def single(a: Array, out: Array | None = None) -> Any:
        bits = flushed(a, part) if ftz else a
        return give(canonical(bits ^ _SIGN if negate else bits & ~_SIGN, part), out)

    return Meaning((kind,), (kind,), single if part == kind else halves(single))


@rule("min", "max", kinds=("half",), modifiers="ftz NaN xorsign abs")
def _extreme(instruction: Instruction) -> Meaning:
    kind, modifiers = instruction.types[0], instruction.modifiers
    part = kind.removesuffix("x2")
    single = half_extreme(instruction.base, part, "NaN" in modifiers, "ftz" in modifiers, "abs" in modifiers)
    function = single if part == kind else halves(single)
    if len(instruction.sources) == 3:
        return Meaning((kind,) * 3, (kind,), lambda a, b, c, out=None: function(function(a, b), c, out=out))
    return Meaning((kind, kind), (kind,), function)


def half_extreme(base: str, kind: str, nan: bool, ftz: bool, xorsign: bool) -> Function:
    """As for f32: minus zero is less than plus zero; one NaN loses unless ``nan``; two NaN are canonical."""
    load, infinite = FORMATS[kind].load, np.uint16(FORMATS[kind].exponent)

    def best(a: Array, b: Array, out: Array | None = None) -> Any:
        if ftz:
            a, b = flushed(a, kind), flushed(b, kind)
        signs = (a ^ b) & _SIGN if xorsign else None
        if xorsign:
            a, b = a & ~_SIGN, b & ~_SIGN
        left, right = load(a), load(b)
        first = left < right if base == "min" else left > right
        bits = np.where(left == right, a | b if base == "min" else a & b, np.where(first, a, b))
        a_nan, b_nan = (a & ~_SIGN) > infinite, (b & ~_SIGN) > infinite
        # a NaN loses to the other operand, or wins
        bits = np.where(a_nan, a if nan else b, np.where(b_nan, b if nan else a, bits))
        return give(canonical(bits if signs is None else bits | signs, kind), out)

    return best
