"""Conversions to and from 8-bit floats (e4m3, e5m2), which always come in pairs. PTX ISA 9.7.9.

Both are cut-down f16: e5m2 is its upper byte, e4m3 its upper bits after scaling by 2**-8.
"""

from typing import Any

import numpy as np
from attrs import frozen

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.formats import FORMATS, canonical, load64
from agent.execution.emulator.semantics.table import Function, Meaning, give


@frozen
class _Quarter:
    digits: int  # after the point
    smallest: int  # exponent of the smallest normal number
    largest: float
    scale: float  # brings the exponents to those of f16
    shift: int  # from f16 bits down to these

    def store(self, value: Any) -> Any:
        """float64 to the nearest byte, as 16-bit numbers; what is too large becomes the largest number, NaN 0x7f."""
        exponent = np.frexp(value)[1] - 1
        step = np.ldexp(1.0, np.maximum(exponent, self.smallest) - self.digits)
        near = np.clip(np.rint(value / step) * step, -self.largest, self.largest)
        half = (near * self.scale).astype(np.float16).view(np.uint16)
        byte = half >> np.uint16(self.shift) & np.uint16(0x7F) | half >> np.uint16(8) & np.uint16(0x80)
        return np.where(value != value, np.uint16(0x7F), byte)

    def load(self, byte: Any) -> Any:
        """Bytes (as 16-bit numbers) to f16 bits."""
        sign = (byte & np.uint16(0x80)) << np.uint16(8)
        half = (byte & np.uint16(0x7F)) << np.uint16(self.shift) | sign
        value = half.view(np.float16).astype(np.float32) / np.float32(self.scale)
        bits = value.astype(np.float16).view(np.uint16)
        # e4m3 has no infinity, and its one NaN is where f16 has an ordinary number
        return np.where((byte & np.uint16(0x7F)) == 0x7F, np.uint16(0x7FFF), canonical(bits, "f16"))


QUARTERS = {
    "e4m3x2": _Quarter(3, -6, 448.0, 2.0**-8, 7),
    "e5m2x2": _Quarter(2, -14, 57344.0, 1.0, 8),
}


def narrowing(instruction: Instruction) -> Meaning:
    """Two f32, or a pair of f16, to a pair of bytes; the first f32 becomes the upper byte."""
    to, of = instruction.types
    quarter, relu = QUARTERS[to], "relu" in instruction.modifiers

    def byte(value: Any) -> Any:
        bits = quarter.store(value)
        return np.where(bits & np.uint16(0x80), np.uint16(0), bits) if relu else bits

    def from_singles(a: Array, b: Array, out: Array | None = None) -> Any:
        return give(byte(load64(a, "f32")) << np.uint16(8) | byte(load64(b, "f32")), out)

    def from_halves(a: Array, out: Array | None = None) -> Any:
        high, low = ((a >> np.uint32(shift)).astype(np.uint16) for shift in (16, 0))
        return give(byte(load64(high, "f16")) << np.uint16(8) | byte(load64(low, "f16")), out)

    if of == "f32":
        return Meaning(("f32", "f32"), ("b16",), from_singles)
    return Meaning((of,), ("b16",), {"f16x2": from_halves}[of])


def widening(instruction: Instruction) -> Meaning:
    """A pair of bytes to a pair of f16."""
    quarter, relu = QUARTERS[instruction.types[1]], "relu" in instruction.modifiers
    sign = np.uint16(FORMATS["f16"].sign)

    def half(byte: Array) -> Any:
        bits = quarter.load(byte & np.uint16(0xFF))
        return np.where(bits & sign, np.uint16(0), bits) if relu else bits

    def widen(a: Array, out: Array | None = None) -> Any:
        upper = np.left_shift(half(a >> np.uint16(8)), np.uint32(16), dtype=np.uint32)
        return np.bitwise_or(upper, half(a), out=out, dtype=np.uint32)

    function: Function = widen
    return Meaning(("b16",), ("f16x2",), function)
