"""The cases of ``semantics_cases`` run by the table of semantics."""

from typing import Any

import numpy as np

from agent.execution.emulator.ptx.decode import decode
from agent.execution.emulator.ptx.instruction import Immediate, Instruction, Register
from agent.execution.emulator.semantics import constant, flatten, lower
from tests.execution.emulator.semantics_cases import Case, width
from tests.execution.emulator.semantics_inputs import Bits
from tests.execution.emulator.semantics_record import ptx


def instructions(case: Case) -> list[Instruction]:
    """The instructions of the case itself, decoded."""
    wanted = case.text.count(";")
    found = decode(ptx(case)).functions["k"].instructions
    # each source costs three instructions before it, the address arithmetic eight
    start = 8 + 3 * len(case.sources)
    return list(found[start : start + wanted])


def emulated(case: Case, rows: Bits) -> Bits:
    """What the table of semantics makes of the sources, one row of 64-bit patterns per result."""
    held: dict[str, Any] = {}
    for index, kind in enumerate(case.sources):
        row = rows[index]
        held[f"s{index}"] = row != 0 if kind == "pred" else row.astype(f"u{max(width(kind), 16) // 8}")
    carry = np.zeros(rows.shape[1], np.bool_)
    with np.errstate(all="ignore"):
        for instruction in instructions(case):
            operation = lower(instruction)
            sources = [
                constant(operand, kind) if isinstance(operand, Immediate) else held[_name(operand)]
                for operand, kind in zip(flatten(instruction.sources), operation.sources, strict=True)
            ]
            results = list(operation.apply([*sources, carry] if operation.reads_carry else sources))
            if operation.writes_carry:
                carry = results.pop()
            for operand, result in zip(flatten(instruction.destinations), results, strict=True):
                held[_name(operand)] = np.broadcast_to(result, rows.shape[1])
    return np.stack([held[f"d{index}"].astype(np.uint64) for index in range(len(case.results))])


def _name(operand: Any) -> str:
    assert isinstance(operand, Register)
    return operand.name
