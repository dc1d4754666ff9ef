"""cvt: every conversion between integers and floats, with rounding, saturation and packing. PTX ISA 9.7.9.

What PTX lays down: float to integer clamps to the range of the integer; NaN gives 0, or the top bit alone where either
side has 64 bits. ``.sat`` clamps floats to [0, 1] with NaN to zero, integers to the range of the result.
"""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array, choose, raw_dtype, typed_dtype, width
from agent.execution.emulator.semantics.floating import rounding
from agent.execution.emulator.semantics.formats import (
    FORMATS,
    canonical,
    flushed,
    load64,
    rounded,
    saturated,
    two_sum,
)
from agent.execution.emulator.semantics.half import store_single
from agent.execution.emulator.semantics.quarter import QUARTERS, narrowing, widening
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule

_TO_INTEGER: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_MODIFIERS = "rn rz rm rp rna rni rzi rmi rpi ftz sat relu satfinite"


@rule("cvt", modifiers=_MODIFIERS)
def _convert(instruction: Instruction) -> Meaning:
    if len(instruction.types) != 2:
        raise Unsupported(instruction.opcode)
    to, of = instruction.types
    if to in ("f16x2", "bf16x2") and of == "f32":
        return _packed(instruction, to.removesuffix("x2"))
    if to in QUARTERS:
        return narrowing(instruction)
    if of in QUARTERS and to == "f16x2":
        return widening(instruction)
    if to == "tf32" and of == "f32":
        return Meaning(("f32",), ("b32",), _to_tf32(instruction))
    if to in FORMATS:
        function = _float_to_float(instruction, to, of) if of in FORMATS else _integer_to_float(instruction, to, of)
    else:
        function = _float_to_integer(instruction, to, of) if of in FORMATS else _integer_to_integer(instruction, to, of)
    return Meaning((of,), (to,), function)


def _integer_to_integer(instruction: Instruction, to: str, of: str) -> Function:
    source, result, raw = typed_dtype(of), typed_dtype(to), raw_dtype(to)
    if "sat" not in instruction.modifiers:
        if raw_dtype(of) == raw:
            return lambda a, out=None: give(a, out)

        def convert(a: Array, out: Array | None = None) -> Any:
            value = a.view(source)
            if out is None:
                return value.astype(result).view(raw)
            np.copyto(out.view(result), value, casting="unsafe")
            return out

        return convert
    from_limits, to_limits = np.iinfo(source), np.iinfo(result)
    low, high = max(from_limits.min, to_limits.min), min(from_limits.max, to_limits.max)

    def clamp(a: Array, out: Array | None = None) -> Any:
        value = np.clip(a.view(source), source.type(low), source.type(high))
        return give(value.astype(result).view(raw), out)

    return clamp


def _integer_to_float(instruction: Instruction, to: str, of: str) -> Function:
    mode, sat = rounding(instruction), "sat" in instruction.modifiers
    source, result, raw = typed_dtype(of), typed_dtype(to), raw_dtype(to)
    if mode == "rn" and to in ("f32", "f64"):

        def nearest(a: Array, out: Array | None = None) -> Any:
            if out is not None and not sat:
                np.copyto(out.view(result), a.view(source), casting="unsafe")
                return out
            value = a.view(source).astype(result)
            return give((saturated(value) if sat else value).view(raw), out)

        return nearest

    def convert(a: Array, out: Array | None = None) -> Any:
        value, lost = _as_float64(a.view(source))
        if sat:
            value, lost = saturated(value), None
        return give(rounded(value, to, mode, lost), out)

    return convert


def _as_float64(value: Array) -> tuple[Array, Array | None]:
    """An integer array as float64, with the error of that where there may be one."""
    if value.dtype.itemsize < 8:
        return value.astype(np.float64), None
    upper = (value >> value.dtype.type(32)).astype(np.float64) * 4294967296.0
    lower = (value & value.dtype.type(0xFFFFFFFF)).astype(np.float64)
    return two_sum(upper, lower)


def _float_to_integer(instruction: Instruction, to: str, of: str) -> Function:
    modes = [modifier for modifier in instruction.modifiers if modifier in _TO_INTEGER]
    if len(modes) != 1:
        raise Unsupported(instruction.opcode)
    integral, load = _TO_INTEGER[modes[0]], FORMATS[of].load
    result, raw, bits = typed_dtype(to), raw_dtype(to), width(to)
    limits = np.iinfo(result)
    nan = raw.type(1 << (bits - 1) if bits == 64 or of == "f64" else 0)
    ftz = "ftz" in instruction.modifiers

    def convert(a: Array, out: Array | None = None) -> Any:
        # flushing matters where a denormal would be rounded away from zero
        value = integral(load(flushed(a, of) if ftz and of == "f32" else a))
        if bits == 64:
            over = value >= (2.0**63 if limits.min else 2.0**64)
            whole = np.maximum(value, value.dtype.type(limits.min)).astype(np.float64)
            converted = np.where(over, raw.type(limits.max), np.where(over, 0.0, whole).astype(result).view(raw))
        else:
            clamped = np.minimum(np.maximum(value.astype(np.float64), float(limits.min)), float(limits.max))
            converted = clamped.astype(np.int64).astype(result).view(raw)
        unordered = value != value
        if unordered.any():
            converted = np.where(unordered, nan, converted)
        return give(converted, out)

    return convert


def _float_to_float(instruction: Instruction, to: str, of: str) -> Function:
    modifiers = instruction.modifiers
    ftz, sat, mode = "ftz" in modifiers, "sat" in modifiers, rounding(instruction)
    integral = next((_TO_INTEGER[modifier] for modifier in modifiers if modifier in _TO_INTEGER), None)
    if "rna" in modifiers:
        raise Unsupported(instruction.opcode)
    if to in ("f16", "bf16") and of == "f32" and set(modifiers) <= {"rn"}:
        # the commonest narrowings have a short way
        return lambda a, out=None: give(canonical(store_single(a.view(np.float32), to), to), out)

    def convert(a: Array, out: Array | None = None) -> Any:
        bits = canonical(np.copy(flushed(a, of)), of) if ftz and of == "f32" else a
        if to == of:
            value = FORMATS[of].load(bits)
            value = integral(value) if integral else value
            result = FORMATS[to].store(saturated(value) if sat else value)
            result = canonical(np.copy(result) if result is bits else result, to)
        else:
            value = load64(bits, of)
            value = integral(value) if integral else value
            result = rounded(saturated(value) if sat else value, to, mode)
            if not sat:
                result = _nan_of(bits, result, to, of)
        result = _bounded(result, to, modifiers)
        return give(flushed(result, to) if ftz and to == "f32" else result, out)

    return convert


def _nan_of(bits: Any, result: Any, to: str, of: str) -> Any:
    """f64 cut to a narrower format keeps sign and upper payload of a NaN, and so does bf16 widened to f32.

    All others are canonical, but where the result is f64: there the processor has widened them as a card does.
    """
    source, target = FORMATS[of], FORMATS[to]
    if (of, to) != ("bf16", "f32") and of != "f64":
        return result
    nan = (bits & raw_dtype(of).type(source.sign - 1)) > raw_dtype(of).type(source.exponent)
    if not np.any(nan):
        return result
    if of == "bf16":
        return choose(nan, np.left_shift(bits, np.uint32(16), dtype=np.uint32), result)
    drop = np.uint64(52 - (target.exponent & -target.exponent).bit_length() + 1)
    kept = (bits & np.uint64(0xFFFFFFFFFFFFF) | np.uint64(1 << 51)) >> drop
    sign = (bits >> np.uint64(63)) * np.uint64(target.sign)
    return choose(nan, (kept | sign | np.uint64(target.exponent)).astype(result.dtype), result)


def _bounded(bits: Any, kind: str, modifiers: tuple[str, ...]) -> Any:
    """``.relu`` makes negative numbers zero, ``.satfinite`` infinities the largest number."""
    form, of = FORMATS[kind], raw_dtype(kind).type
    if "satfinite" in modifiers:
        bits = np.where((bits & of(form.sign - 1)) == of(form.exponent), bits - of(1), bits)
    if "relu" in modifiers:
        bits = np.where(bits & of(form.sign), of(0), bits)
    return bits


def _packed(instruction: Instruction, part: str) -> Meaning:
    """Two f32 to a pair of halves: the first source becomes the upper one."""
    mode, modifiers = rounding(instruction), instruction.modifiers

    def half(a: Array) -> Any:
        if mode == "rn":
            bits = canonical(store_single(a.view(np.float32), part), part)
        else:
            bits = rounded(load64(a, "f32"), part, mode)
        return _bounded(bits, part, modifiers)

    def pack(a: Array, b: Array, out: Array | None = None) -> Any:
        upper = np.left_shift(half(a), np.uint32(16), dtype=np.uint32)
        return np.bitwise_or(upper, half(b), out=out, dtype=np.uint32)

    return Meaning(("f32", "f32"), (f"{part}x2",), pack)


def _to_tf32(instruction: Instruction) -> Function:
    """f32 with ten bits of fraction; the thirteen below are zero.

    NaN is 0x7fffe000, but rounding ties away only cuts it off, and ``.satfinite`` then takes one step off it as well.
    """
    modifiers = instruction.modifiers
    mode = next(modifier for modifier in modifiers if modifier in ("rna", "rn", "rz"))
    below, infinite = np.uint32(0x1FFF), np.uint32(0x7F800000)

    def convert(a: Array, out: Array | None = None) -> Any:
        nan = (a & np.uint32(0x7FFFFFFF)) > infinite
        if mode == "rna":
            bits = np.where(nan, a, a + np.uint32(0x1000)) & ~below
        else:
            tie = np.uint32(0x0FFF) + (a >> np.uint32(13) & np.uint32(1)) if mode == "rn" else np.uint32(0)
            bits = np.where(nan, np.uint32(0x7FFFFFFF), a + tie) & ~below
        if "satfinite" in modifiers:
            bits = np.where((bits & np.uint32(0x7FFFFFFF)) >= infinite, bits - np.uint32(0x2000), bits)
        if "relu" in modifiers:
            bits = np.where(bits >> np.uint32(31), np.uint32(0), bits)
        return give(bits, out)

    return convert
