"""From float arithmetic to register bits: which NaN a result is, flushing of denormals, clamping."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agent.execution.emulator.semantics.arrays import Array, choose, raw_dtype, share, typed_dtype
from agent.execution.emulator.semantics.formats import FORMATS, flushed, rounded, saturated
from agent.execution.emulator.semantics.table import Function, give

_QUIET = np.uint64(1 << 51)
_CANONICAL32 = np.uint32(0x7FFFFFFF)
_DEFAULT64 = np.uint64(0xFFF8000000000000)


def quiet(result: Any, sources: Sequence[Array], kind: str) -> Any:
    """The float array with each NaN as a card gives it; changed in place where it is an array.

    f32: 0x7fffffff whatever the operands were. f64: the first of ``sources`` that is a NaN, made quiet, else
    0xfff8000000000000. The maximum is NaN where anything is, and is one quick pass.
    """
    if result.size == 0:
        return result
    top = np.maximum.reduce(result, axis=None)
    if top == top:
        return result
    if not isinstance(result, np.ndarray):
        result = np.copy(result)
    nan = np.isnan(result)
    if kind == "f32":
        np.copyto(result.view(np.uint32), _CANONICAL32, where=nan)
        return result
    bits = np.broadcast_to(_DEFAULT64, result.shape)
    for source in reversed(sources):
        bits = np.where(np.isnan(source), source.view(np.uint64) | _QUIET, bits)
    np.copyto(result.view(np.uint64), bits, where=nan)
    return result


def finished(
    core: Function, kind: str, ftz: bool = False, sat: bool = False, first: int = 0, tiny: Function | None = None
) -> Function:
    """``core`` of float arrays as a function of bits: denormals flushed, results clamped, NaN as a card has it.

    ``first`` is the source whose NaN comes first, the others follow in turn. ``tiny`` tells, from the sources, which
    results are denormals although they were rounded up to the smallest normal number (see ``was_tiny``).
    """
    dtype, bits_dtype = typed_dtype(kind), np.dtype(f"u{typed_dtype(kind).itemsize}")

    def plain(*sources: Array, out: Array | None = None) -> Any:
        views = [source.view(dtype) for source in sources]
        # f64 keeps the payload of an operand, so that the operands must outlive the result
        target = None if out is None or (kind == "f64" and share(out, *sources)) else out.view(dtype)
        result = quiet(core(*views, out=target), views[first:] + views[:first], kind)
        if out is None:
            return result.view(bits_dtype)
        return out if target is not None else give(result.view(bits_dtype), out)

    if not ftz and not sat:
        return plain

    def modified(*sources: Array, out: Array | None = None) -> Any:
        if ftz:
            sources = tuple(flushed(source, kind) for source in sources)
        result = plain(*sources)
        if ftz:
            result = flushed_result(result, [source.view(dtype) for source in sources], kind, tiny)
        return give(saturated(result.view(dtype)).view(bits_dtype) if sat else result, out)

    return modified


def flushed_result(bits: Any, sources: Sequence[Array], kind: str, tiny: Function | None) -> Any:
    """Bits with denormals flushed, also those that rounding made the smallest normal number (see ``was_tiny``)."""
    form, of = FORMATS[kind], raw_dtype(kind).type
    if tiny is not None:
        smallest = (bits & of(form.sign - 1)) == of(form.exponent & -form.exponent)
        if smallest.any():
            shape = np.shape(bits)
            some = [np.broadcast_to(source, shape)[smallest] for source in sources]
            bits = np.copy(bits)
            bits[smallest] &= choose(tiny(*some), of(form.sign), ~of(0))
    return flushed(bits, kind)


def was_tiny(wide: Function, kind: str, mode: str = "rn") -> Function:
    """Whether a result that equals the smallest normal number is to be flushed: cards ask whether it would lie below
    if exponents had no end. ``wide`` computes float64 rounded to odd, which is scaled up and rounded there."""
    form = FORMATS[kind]
    smallest = float(form.load(np.array([form.exponent & -form.exponent], raw_dtype(kind)))[0])

    def tiny(*sources: Array) -> Any:
        scaled = rounded(wide(*sources) * 1024.0, kind, mode)
        return np.abs(form.load(scaled)) < smallest * 1024.0

    return tiny
