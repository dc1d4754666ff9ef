"""Absolute differences of packed bytes and shorts: what is left of the video instructions. PTX ISA 9.7.20."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.arrays import Array
from agent.execution.emulator.semantics.table import Meaning, Unsupported, give, rule


@rule("vabsdiff2", "vabsdiff4", kinds=("int",), modifiers="add")
def _absolute_differences(instruction: Instruction) -> Meaning:
    """Each pair for itself; ``.add`` gives their sum and the third source instead."""
    if len(instruction.types) != 3:
        raise Unsupported(instruction.opcode)
    _, first, second = instruction.types
    count = int(instruction.base[-1])
    bits = 32 // count
    total = "add" in instruction.modifiers

    def part(word: Array, index: int, kind: str) -> Any:
        top = (word << np.uint32(32 - bits * (index + 1))).view(np.int32 if kind == "s32" else np.uint32)
        return (top >> top.dtype.type(32 - bits)).astype(np.int64)

    def differences(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
        result: Any = c.astype(np.uint32) if total else np.uint32(0)
        for index in range(count):
            size = np.abs(part(a, index, first) - part(b, index, second)).astype(np.uint32)
            result = result + size if total else result | size << np.uint32(bits * index)
        return give(result, out)

    return Meaning((first, second, instruction.types[0]), (instruction.types[0],), differences)
