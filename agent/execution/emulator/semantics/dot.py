"""Dot products of packed bytes and shorts. PTX ISA 9.7.1."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.table import Function, Meaning, rule


def _part(kind: str, bits: int) -> Function:
    """Part ``index`` of a word of ``bits``-wide numbers, extended to 32 bits as ``kind`` says."""
    shift = np.uint32(32 - bits)

    def part(word: Array, index: int) -> Any:
        top = word << np.uint32(32 - bits * (index + 1))
        if kind.startswith("s"):
            return (top.view(np.int32) >> np.int32(shift)).view(np.uint32)
        return top >> shift

    return part


@rule("dp4a", kinds=("int",))
def _four_bytes(instruction: Instruction) -> Meaning:
    first, second = instruction.types
    left, right = _part(first, 8), _part(second, 8)
    result = "s32" if "s32" in instruction.types else "u32"

    def dot(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        total = left(a, 0) * right(b, 0)
        for index in range(1, 4):
            total = total + left(a, index) * right(b, index)
        return np.add(total, c, out=out)

    return Meaning((first, second, result), (result,), dot)


@rule("dp2a", kinds=("int",), modifiers="lo hi")
def _two_shorts(instruction: Instruction) -> Meaning:
    first, second = instruction.types
    left, right = _part(first, 16), _part(second, 8)
    result = "s32" if "s32" in instruction.types else "u32"
    offset = 2 if "hi" in instruction.modifiers else 0

    def dot(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        return np.add(left(a, 0) * right(b, offset) + left(a, 1) * right(b, offset + 1), c, out=out)

    return Meaning((first, second, result), (result,), dot)
