"""f32 and f64 arithmetic that IEEE 754 defines: sums, products, fma, quotients, roots, minima, signs. PTX ISA 9.7.3."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array, choose, share, typed_dtype
from agent.execution.emulator.semantics.directed import directed
from agent.execution.emulator.semantics.finish import finished, quiet, was_tiny
from agent.execution.emulator.semantics.formats import flushed
from agent.execution.emulator.semantics.fused import fma32, fma64, odd_sum
from agent.execution.emulator.semantics.special import approximate
from agent.execution.emulator.semantics.table import Function, Meaning, Unsupported, give, rule

_ROUNDINGS = ("rn", "rz", "rm", "rp")
# what may be rounded up to the smallest normal number; sums of floats are exact there
_WIDE: dict[str, Function] = {
    "mul": lambda a, b: np.multiply(a, b, dtype=np.float64),
    "div": lambda a, b: np.divide(a, b, dtype=np.float64),
    "fma": odd_sum,
    "mad": odd_sum,
}
_NEAREST: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda a, out=None: np.divide(a.dtype.type(1), a, out=out),
}


def rounding(instruction: Instruction) -> str:
    """The rounding that the modifiers name; to nearest even where they name none."""
    named = [modifier for modifier in instruction.modifiers if modifier in _ROUNDINGS]
    if len(named) > 1:
        raise Unsupported(instruction.opcode)
    return named[0] if named else "rn"


@rule("add", "sub", "mul", kinds=("float",), modifiers="rn rz rm rp ftz sat")
def _arithmetic(instruction: Instruction) -> Meaning:
    return meaning(instruction, instruction.types[0], 2)


@rule("fma", "mad", kinds=("float",), modifiers="rn rz rm rp ftz sat")
def _fused(instruction: Instruction) -> Meaning:
    return meaning(instruction, instruction.types[0], 3)


@rule("div", "sqrt", "rcp", kinds=("float",), modifiers="rn rz rm rp ftz approx full")
def _quotients(instruction: Instruction) -> Meaning:
    if "approx" in instruction.modifiers or "full" in instruction.modifiers:
        return approximate(instruction)
    return meaning(instruction, instruction.types[0], 2 if instruction.base == "div" else 1)


def meaning(instruction: Instruction, kind: str, count: int) -> Meaning:
    """The rule of one such instruction with ``count`` sources of type ``kind``."""
    mode, base = rounding(instruction), instruction.base
    core: Function
    if mode != "rn":
        core = directed("fma" if count == 3 else base, kind, mode)
    elif count == 3:
        core = fma32 if kind == "f32" else fma64
    else:
        core = _NEAREST[base]
    ftz, sat = "ftz" in instruction.modifiers, "sat" in instruction.modifiers
    tiny = was_tiny(_WIDE[base], kind, mode) if ftz and base in _WIDE else None
    # of two NaN in f64 the second wins, but for the quotient, which is a program of its own
    function = finished(core, kind, ftz, sat, first=0 if base == "div" or count == 1 else 1, tiny=tiny)
    return Meaning((kind,) * count, (kind,), function)


@rule("add", "sub", "mul", "fma", kinds=("float2",), modifiers="rn rz rm rp ftz")
def _pairs(instruction: Instruction) -> Meaning:
    """Two f32 in one 64-bit register, each for itself."""
    count = 3 if instruction.base == "fma" else 2
    single = meaning(instruction, "f32", count).function

    def both(*sources: Array, out: Array | None = None) -> Any:
        low = single(*[source.astype(np.uint32) for source in sources])
        high = single(*[(source >> np.uint64(32)).astype(np.uint32) for source in sources])
        return np.bitwise_or(np.left_shift(high, np.uint64(32), dtype=np.uint64), low, out=out)

    return Meaning(("f32x2",) * count, ("f32x2",), both)


@rule("neg", "abs", kinds=("float",), modifiers="ftz")
def _sign(instruction: Instruction) -> Meaning:
    """The sign bit alone, but not of a NaN: that comes out canonical (f32), or quiet and otherwise as it was (f64)."""
    kind = instruction.types[0]
    dtype = typed_dtype(kind)
    top = 31 if kind == "f32" else 63
    bits = np.uint32 if kind == "f32" else np.uint64
    mask = bits(1 << top) if instruction.base == "neg" else bits((1 << top) - 1)
    function: Function = np.bitwise_xor if instruction.base == "neg" else np.bitwise_and
    ftz = "ftz" in instruction.modifiers

    def sign(a: Array, out: Array | None = None) -> Any:
        kept = None if kind == "f32" else (a.copy() if share(out, a) else a).view(dtype)
        result = function(flushed(a, kind) if ftz else a, mask, out=out)
        return quiet(result.view(dtype), (kept,) if kept is not None else (), kind).view(bits)

    return Meaning((kind,), (kind,), sign)


@rule("copysign", kinds=("float",))
def _copy_sign(instruction: Instruction) -> Meaning:
    """The sign of the first on the value of the second."""
    kind = instruction.types[0]
    bits = np.uint32 if kind == "f32" else np.uint64
    sign = bits(1 << (31 if kind == "f32" else 63))
    return Meaning((kind, kind), (kind,), lambda a, b, out=None: np.bitwise_or(a & sign, b & ~sign, out=out))


@rule("min", "max", kinds=("float",), modifiers="ftz NaN xorsign abs")
def _extreme(instruction: Instruction) -> Meaning:
    kind, modifiers = instruction.types[0], instruction.modifiers
    function = extreme(instruction.base, kind, "NaN" in modifiers, "ftz" in modifiers, "abs" in modifiers)
    count = len(instruction.sources)
    if count == 3:
        return Meaning((kind,) * 3, (kind,), lambda a, b, c, out=None: function(function(a, b), c, out=out))
    return Meaning((kind, kind), (kind,), function)


_EXTREMES: dict[tuple[str, bool], Function] = {
    ("min", False): np.fmin,
    ("min", True): np.minimum,
    ("max", False): np.fmax,
    ("max", True): np.maximum,
}


def extreme(base: str, kind: str, nan: bool, ftz: bool, xorsign: bool) -> Function:
    """Minimum or maximum of bits: minus zero is less than plus zero, one NaN loses unless ``nan``, two are canonical.

    With ``xorsign`` the magnitudes are compared and the result has the product's sign.
    """
    dtype = typed_dtype(kind)
    of = np.dtype(f"u{dtype.itemsize}").type
    sign = of(1 << (dtype.itemsize * 8 - 1))
    ufunc = _EXTREMES[base, nan]
    join: Function = np.bitwise_or if base == "min" else np.bitwise_and

    def best(a: Array, b: Array, out: Array | None = None) -> Any:
        if ftz:
            a, b = flushed(a, kind), flushed(b, kind)
        signs = (a ^ b) & sign if xorsign else None
        if xorsign:
            a, b = a & ~sign, b & ~sign
        left, right = a.view(dtype), b.view(dtype)
        result = ufunc(left, right)
        # equal numbers have equal bits, but for zeros: there the signs decide
        bits = result.view(of)
        if (result == 0).any():
            bits = choose(left == right, join(a, b), bits)
        if signs is not None:
            bits = bits | signs
        return give(quiet(bits.view(dtype), (right, left), kind).view(of), out)

    return best
