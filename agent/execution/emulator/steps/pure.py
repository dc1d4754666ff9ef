"""Instructions that only compute: their meaning comes from the table of semantics."""

from collections.abc import Callable

import numpy as np

from agent.execution.emulator.ptx.instruction import Immediate
from agent.execution.emulator.semantics import Operation, Unsupported, constant, flatten, lower
from agent.execution.emulator.values import Lowering, Run, Step, Values, file_of

_CARRY = "carry"


def pure(lowering: Lowering) -> Step:
    """Any instruction of the table. With a guard, lanes where it does not hold keep what the destination held."""
    try:
        operation = lower(lowering.instruction)
    except Unsupported as error:
        raise lowering.refuse(str(error).partition(": ")[2]) from None
    reads = [
        lowering.source(operand, file_of(kind))
        if not isinstance(operand, Immediate)
        else _literal(lowering, operand, kind)
        for operand, kind in zip(flatten(lowering.instruction.sources), operation.sources, strict=True)
    ]
    writes = [
        lowering.destination(operand) if operand is not None else lowering.entries.scratch(file_of(kind))
        for operand, kind in zip(flatten(lowering.instruction.destinations), operation.results, strict=True)
    ]
    carry = lowering.entries.scratch_named(_CARRY, lowering.frame.number, "pred")
    if operation.reads_carry:
        reads.append(carry)
    if operation.writes_carry:
        writes.append(carry)
    if lowering.item.guard is not None:
        guard = lowering.entries.register(lowering.frame, lowering.item.guard.register)
        run = _guarded(operation, reads, writes, guard, lowering.item.guard.negated)
        return Step(run, (*reads, guard, *writes), tuple(writes))
    return Step(_plain(operation, reads, writes), tuple(reads), tuple(writes))


def _literal(lowering: Lowering, operand: Immediate, kind: str) -> int:
    return lowering.entries.literal(int(constant(operand, kind)), file_of(kind))


def _plain(operation: Operation, reads: list[int], writes: list[int]) -> Run:
    apply: Callable[..., tuple[np.ndarray, ...]] = operation.apply
    if len(writes) != 1:

        def several(values: Values, batch: object) -> None:
            for out, result in zip(writes, apply([values[read] for read in reads]), strict=True):
                values[out] = result

        return several
    (out,) = writes
    if len(reads) == 2:
        first, second = reads

        def binary(values: Values, batch: object) -> None:
            (values[out],) = apply((values[first], values[second]))

        return binary
    if len(reads) == 3:
        first, second, third = reads

        def ternary(values: Values, batch: object) -> None:
            (values[out],) = apply((values[first], values[second], values[third]))

        return ternary

    def general(values: Values, batch: object) -> None:
        (values[out],) = apply([values[read] for read in reads])

    return general


def _guarded(operation: Operation, reads: list[int], writes: list[int], guard: int, negated: bool) -> Run:
    def run(values: Values, batch: object) -> None:
        holds = ~values[guard] if negated else values[guard]
        results = operation.apply([values[read] for read in reads])
        for out, result in zip(writes, results, strict=True):
            values[out] = np.where(holds, result, values[out])

    return run
