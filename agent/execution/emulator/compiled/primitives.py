"""Functions of the table of semantics that are one instruction, or a look into a table (``semantics.primitive``)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from agent.execution.emulator.compiled.loops import BIT, I32, I64, cast, intrinsic, math
from agent.execution.emulator.semantics.formats import SINGLES_OF_F16

Operands = Sequence[tuple[np.dtype[Any], ir.Value]]
Typed = tuple[np.dtype[Any], ir.Value]


def _fused(builder: ir.IRBuilder, operands: Operands) -> Typed:
    (dtype, _), *_rest = operands
    return dtype, math(builder, "fma", *(value for _, value in operands))


def _choose(builder: ir.IRBuilder, operands: Operands) -> Typed:
    (kind, condition), (of, yes), (dtype, no) = operands
    return dtype, builder.select(cast(builder, condition, kind, np.dtype(bool)), cast(builder, yes, of, dtype), no)


def _top_bit(builder: ir.IRBuilder, operands: Operands) -> Typed:
    ((dtype, value),) = operands
    zeros = intrinsic(builder, f"llvm.ctlz.{value.type}", value.type, value, BIT(0))
    # none set: width - 1 - width is all ones
    place = builder.sub(value.type(value.type.width - 1), zeros)
    result = np.dtype(np.uint32)
    return result, cast(builder, place, np.dtype(f"i{dtype.itemsize}"), result)


def _single_of_f16(builder: ir.IRBuilder, operands: Operands) -> Typed:
    ((_, bits),) = operands
    table = builder.inttoptr(I64(SINGLES_OF_F16.ctypes.data), ir.FloatType().as_pointer())
    return np.dtype(np.float32), builder.load(builder.gep(table, [builder.zext(bits, I32)]))


PRIMITIVES: dict[str, Callable[[ir.IRBuilder, Operands], Typed]] = {
    "fma32": _fused,
    "fma64": _fused,
    "choose": _choose,
    "top_bit": _top_bit,
    "f16_to_single": _single_of_f16,
}
