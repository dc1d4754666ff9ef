"""Approximate functions (``.approx``, ``div.full``): computed in float64 and rounded once. PTX ISA 9.7.3 and 9.7.4.

A card gives results within a few units in the last place that differ from these. The cases that PTX lays down (zeros,
infinities, NaN, denormals with ``.ftz``) come out as laid down.
"""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.finish import finished
from agent.execution.emulator.semantics.formats import FORMATS, canonical, flushed, load64
from agent.execution.emulator.semantics.integer import halves
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule

_TURN = np.float64(np.uint32(0x3E22F983).view(np.float32))  # 1 / (2 pi) as float32


def _turns(x: Array) -> Any:
    """The angle that sin and cos look up: in turns, cut to float32 and then to 25 bits after the point.

    Read off a Hopper card, whose results this meets within 2**-21 for arguments of any size.
    """
    turns = x * _TURN
    single = turns.astype(np.float32)
    # cut towards zero: one bit less where rounding went up
    single = (single.view(np.int32) - (np.abs(single) > np.abs(turns))).view(np.float32)
    fraction = np.fmod(single.astype(np.float64), 1.0)
    return np.trunc(fraction * 33554432.0) / 33554432.0


def _sine(turns: Array) -> Any:
    """The sine of an angle in turns, exactly zero at each half turn, and odd also in the sign of zero."""
    size = np.abs(turns)
    half_turns = np.rint(2.0 * size)
    rest = np.sin((size - 0.5 * half_turns) * (2.0 * np.pi))
    return rest * (1.0 - 2.0 * np.fmod(half_turns, 2.0)) * np.copysign(1.0, turns)


def _quotient(a: Array, b: Array) -> Any:
    """``a * (1 / b)``, as PTX has it: beyond 2**126 the reciprocal is zero."""
    return np.where((np.abs(b) > 2.0**126) & np.isfinite(b), a * np.copysign(0.0, b), a / b)


_FUNCTIONS: dict[str, Function] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": lambda x: _sine(_turns(x)),
    "cos": lambda x: _sine(np.abs(_turns(x)) + 0.25) + 0.0,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcp": lambda x: 1.0 / x,
    "div": np.divide,
}
_NAN = np.uint64(0x7FFFFFFF00000000)
_HIGH_WORD = np.uint64(0xFFFFFFFF00000000)


def approximate(instruction: Instruction) -> Meaning:
    """The rule of one approximate instruction on f32 or f64."""
    kind, base = instruction.types[0], instruction.base
    ftz = "ftz" in instruction.modifiers
    count = 2 if base == "div" else 1
    if kind == "f64":
        if base not in ("rcp", "rsqrt"):
            raise Unsupported(instruction.opcode)
        # the card looks at the upper word only and answers with one
        return Meaning((kind,), (kind,), _of_high_word(base, ftz))
    wide: Function = _quotient if base == "div" and "approx" in instruction.modifiers else _FUNCTIONS[base]

    def core(*sources: Array, out: Array | None = None) -> Any:
        result = wide(*(source.astype(np.float64) for source in sources))
        return give(result.astype(np.float32), out)

    return Meaning((kind,) * count, (kind,), finished(core, kind, ftz, False))


def _of_high_word(base: str, ftz: bool) -> Function:
    wide = _FUNCTIONS[base]

    def core(a: Array, out: Array | None = None) -> Any:
        if not ftz:
            return give(wide(a), out)
        result = wide((a.view(np.uint64) & _HIGH_WORD).view(np.float64))
        bits = np.where(result != result, _NAN, result.view(np.uint64) & _HIGH_WORD)
        return give(bits.view(np.float64), out)

    if not ftz:
        return finished(core, "f64")

    def function(a: Array, out: Array | None = None) -> Any:
        return give(flushed(core(flushed(a, "f64").view(np.float64)).view(np.uint64), "f64"), out)

    return function


@rule("ex2", "lg2", "sin", "cos", "rsqrt", "tanh", kinds=("float",), modifiers="approx ftz")
def _function(instruction: Instruction) -> Meaning:
    return approximate(instruction)


@rule("ex2", "tanh", kinds=("half",), modifiers="approx ftz")
def _half_function(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    part, wide = kind.removesuffix("x2"), _FUNCTIONS[instruction.base]
    ftz = "ftz" in instruction.modifiers

    def single(a: Array, out: Array | None = None) -> Any:
        value = wide(load64(flushed(a, part) if ftz else a, part))
        result = canonical(FORMATS[part].store(value), part)
        return give(flushed(result, part) if ftz else result, out)

    return Meaning((kind,), (kind,), single if part == kind else halves(single))
