"""Moving and choosing: mov with packing and unpacking, selp, slct."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction, Vector
from agent.execution.emulator.semantics.arrays import Array, choose, raw_dtype, typed_dtype, width
from agent.execution.emulator.semantics.table import Function, Meaning, give, rule


@rule("mov")
def _move(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    (source,), (destination,) = instruction.sources, instruction.destinations
    if isinstance(source, Vector):
        part = f"b{width(kind) // len(source.elements)}"
        return Meaning((part,) * len(source.elements), (kind,), _pack(kind, part))
    if isinstance(destination, Vector) and destination.elements != (None,):
        count = len(destination.elements)
        part = f"b{width(kind) // count}"
        return Meaning((kind,), (part,) * count, _unpack(part, count) if count > 1 else _same)
    return Meaning((kind,), (kind,), _same)


def _same(a: Array, out: Array | None = None) -> Any:
    return give(a, out)


def _pack(kind: str, part: str) -> Function:
    dtype, bits = raw_dtype(kind), width(part)

    def pack(*parts: Array, out: Array | None = None) -> Any:
        whole = parts[0].astype(dtype)
        for index, array in enumerate(parts[1:], 1):
            whole = whole | array.astype(dtype) << dtype.type(index * bits)
        return give(whole, out)

    return pack


def _unpack(part: str, count: int) -> Function:
    dtype, bits = raw_dtype(part), width(part)

    def unpack(whole: Array, out: Any = None) -> Any:
        return tuple((whole >> whole.dtype.type(index * bits)).astype(dtype) for index in range(count))

    return unpack


@rule("selp")
def _select(instruction: Instruction) -> Meaning:
    kind = instruction.types[0]
    return Meaning((kind, kind, "pred"), (kind,), lambda a, b, p, out=None: choose(p, a, b, out))


@rule("slct", modifiers="ftz")
def _select_by_sign(instruction: Instruction) -> Meaning:
    """``c >= 0 ? a : b``; NaN chooses b, minus zero chooses a. Flushing changes the choice for minus denormals only."""
    kind, by = instruction.types
    dtype = typed_dtype(by)
    smallest = -np.finfo(np.float32).tiny

    def select(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        value = c.view(dtype)
        chosen = value > smallest if "ftz" in instruction.modifiers else value >= 0
        return choose(chosen, a, b, out)

    return Meaning((kind, kind, by), (kind,), select)
