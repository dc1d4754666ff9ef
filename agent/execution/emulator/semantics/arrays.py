"""Registers as arrays: their dtypes, typed views of them, constants."""

import struct
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.execution.emulator.ptx.instruction import Immediate

Array = npt.NDArray[Any]

#: The register file that holds a value of each type.
FILES = {
    "pred": "pred",
    **dict.fromkeys(("b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16"), "b16"),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32", "u8x4", "s8x4"), "b32"),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), "b64"),
}
_RAW = {
    "pred": np.dtype(np.bool_),
    "b16": np.dtype(np.uint16),
    "b32": np.dtype(np.uint32),
    "b64": np.dtype(np.uint64),
}
_TYPED: dict[str, np.dtype[Any]] = {
    "s8": np.dtype(np.int8),
    "s16": np.dtype(np.int16),
    "s32": np.dtype(np.int32),
    "s64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


class Symbolic:
    """An operand that is no array: whoever runs a rule with such operands sees what it does to them, step by step.

    A rule's branches on whether any lane is special (``any``, minima over all lanes) must then be taken, and what it
    computes on that way must be right for lanes that are not special too.
    """

    def primitive(self, name: str, *operands: Any) -> Any:
        """The result of one of the functions marked :func:`primitive`."""
        raise NotImplementedError


def primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of arrays for which processors have an instruction, or which is a table: it is not looked into
    where its operands are symbolic."""

    @wraps(function)
    def either(*operands: Any, **options: Any) -> Any:
        for operand in operands:
            if isinstance(operand, Symbolic):
                return operand.primitive(function.__name__, *operands)
        return function(*operands, **options)

    return either


def dtype_of(kind: str) -> np.dtype[Any]:
    """The dtype of a register that holds a value of PTX type ``kind`` (8-bit values live in 16-bit registers)."""
    return _RAW[FILES[kind]]


def raw_dtype(kind: str) -> np.dtype[Any]:
    """The unsigned dtype as wide as the type itself: ``uint8`` for 8-bit types, else that of the register."""
    return np.dtype(np.uint8) if kind in ("b8", "u8", "s8") else dtype_of(kind)


def typed_dtype(kind: str) -> np.dtype[Any]:
    """The dtype in which the type computes: ``int32`` for s32, ``float32`` for f32, unsigned for all untyped ones."""
    return _TYPED[kind] if kind in _TYPED else raw_dtype(kind)


def width(kind: str) -> int:
    """Bits of the type."""
    return 1 if kind == "pred" else raw_dtype(kind).itemsize * 8


def constant(immediate: Immediate, kind: str) -> Array:
    """The literal as a 0-d array in the dtype of a register of type ``kind``."""
    bits = immediate.bits
    if kind == "pred":
        return np.array(bits != 0)
    if kind == "f64" and immediate.kind == "f32":
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
        bits = int.from_bytes(struct.pack("<d", value), "little")
    elif kind in ("f32", "b32") and immediate.kind == "f64":
        with np.errstate(all="ignore"):
            bits = int(np.uint64(bits).view(np.float64).astype(np.float32).view(np.uint32))
    dtype = dtype_of(kind)
    return np.array(bits & ((1 << 8 * dtype.itemsize) - 1), dtype)


def share(out: Array | None, *sources: Array) -> bool:
    """Whether writing ``out`` early could spoil a source that is still to be read."""
    return out is not None and any(np.may_share_memory(out, source) for source in sources)


@primitive
def choose(condition: Array, yes: Any, no: Any, out: Array | None = None) -> Any:
    """``condition ? yes : no`` of unsigned arrays, by masks: five times as fast as ``where`` on a mixed condition."""
    of = no.dtype.type
    differ = np.bitwise_and(np.bitwise_xor(yes, no), np.multiply(condition, of(~of(0))))
    return np.bitwise_xor(differ, no, out=out)
