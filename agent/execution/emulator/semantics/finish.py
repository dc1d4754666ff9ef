"""From float arithmetic to register bits: which NaN a result is, flushing of denormals, clamping."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agent.execution.emulator.semantics.arrays import Array, share, typed_dtype
from agent.execution.emulator.semantics.formats import flushed, saturated
from agent.execution.emulator.semantics.table import Function, give

_QUIET = np.uint64(1 << 51)
_CANONICAL32 = np.uint32(0x7FFFFFFF)
_DEFAULT64 = np.uint64(0xFFF8000000000000)


def quiet(result: Any, sources: Sequence[Array], kind: str) -> Any:
    """The float array with each NaN as a card gives it; changed in place where it is an array.

    f32: 0x7fffffff whatever the operands were. f64: the first operand that is a NaN, made quiet, else
    0xfff8000000000000. The maximum is NaN where anything is, and is one quick pass.
    """
    if result.size == 0:
        return result
    top = result.max()
    if top == top:
        return result
    if not isinstance(result, np.ndarray):
        result = np.array(result)
    nan = np.isnan(result)
    if kind == "f32":
        np.copyto(result.view(np.uint32), _CANONICAL32, where=nan)
        return result
    bits = np.broadcast_to(_DEFAULT64, result.shape)
    for source in reversed(sources):
        bits = np.where(np.isnan(source), source.view(np.uint64) | _QUIET, bits)
    np.copyto(result.view(np.uint64), bits, where=nan)
    return result


def finished(core: Function, kind: str, ftz: bool, sat: bool) -> Function:
    """``core`` of float arrays as a function of bits: denormals flushed, results clamped, NaN as a card has it."""
    dtype, bits_dtype = typed_dtype(kind), np.dtype(f"u{typed_dtype(kind).itemsize}")

    def plain(*sources: Array, out: Array | None = None) -> Any:
        views = [source.view(dtype) for source in sources]
        # f64 keeps the payload of an operand, so that the operands must outlive the result
        target = None if out is None or (kind == "f64" and share(out, *sources)) else out.view(dtype)
        result = core(*views, out=target)
        result = quiet(result, views, kind)
        if out is None:
            return result.view(bits_dtype)
        return out if target is not None else give(result.view(bits_dtype), out)

    if not ftz and not sat:
        return plain

    def modified(*sources: Array, out: Array | None = None) -> Any:
        if ftz:
            sources = tuple(flushed(source, kind) for source in sources)
        result = plain(*sources)
        if sat:
            result = saturated(result.view(dtype)).view(bits_dtype)
        return give(flushed(result, kind) if ftz else result, out)

    return modified
