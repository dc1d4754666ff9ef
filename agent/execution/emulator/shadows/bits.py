"""The shadow of whole numbers and predicates, and of bits of floats that go through whole-number arithmetic.

They are computed a second time from what they would have been (``alternate``). Where the bits of a float went in, the
result has a shadow where it is a number of the same digits (another sign or exponent, or 16 bits of the operand
elsewhere); what else depends on such bits is lost.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics import Operation
from agent.execution.emulator.shadows.cells import (
    LOST,
    NOTHING,
    UNITS,
    Cell,
    Cells,
    Flags,
    absent,
    alternate,
    decoded,
    different,
    flags_of,
    given,
    in_parts,
    joined,
    marked,
    marks_only,
    number,
    read,
    whole_at,
)
from agent.execution.emulator.shadows.math import PARTS
from agent.execution.emulator.shadows.shadow import Twin
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_MOVES_PARTS = frozenset(("shl", "shr", "prmt", "bfi", "bfe", "cvt", "or"))


@frozen(eq=False)
class Operands:
    """One instruction at work: the cells and values of its sources before it ran, of its results after; which sources
    were computed on other lines (``foreign``), and whether a result is used on others or stored (``leaves``)."""

    batch: "Batch"
    twin: Twin
    site: Site
    cells: Sequence[Cells | None]
    values: Sequence[Array]
    results: Sequence[Array]
    foreign: Sequence[bool]
    leaves: bool
    operation: Operation | None = None

    @property
    def instruction(self) -> Instruction:
        return self.site.instruction


def units_of(value: Array) -> int:
    """Cells of a register."""
    return max(1, value.dtype.itemsize // 2)


def whole_numbers(operands: Operands) -> list[Cells | None]:
    """The cells of each result."""
    operation = operands.operation
    assert operation is not None
    flags = joined(*map(flags_of, operands.cells))
    would, floats = [], False
    for cells, bits in zip(operands.cells, operands.values, strict=True):
        other, of_float = alternate(cells, bits)
        would.append(other)
        floats = floats or of_float
    others = _again(operation, would, len(operands.results))
    if others is None:
        lost = joined(flags, np.full((1, 1), LOST, np.uint8))
        return [marks_only(lost, units_of(result)) for result in operands.results]
    conversion = operands.instruction.base == "testp" or bool(set(operands.instruction.types) & set(PARTS))
    unsure = any(map(in_parts, operands.cells))
    return [
        _whole_number(operands, result, np.asarray(other), flags, floats and not conversion, unsure)
        for result, other in zip(operands.results, others, strict=True)
    ]


def _again(operation: Operation, sources: Sequence[Array], results: int) -> Sequence[Array] | None:
    if operation.reads_carry or operation.writes_carry:
        return None
    found = operation.apply(sources)
    return found if len(found) == results else None


def _whole_number(
    operands: Operands, result: Array, other: Array, flags: Flags, floats: bool, unsure: bool
) -> Cells | None:
    depends = np.asarray((result != other) | unsure)
    if result.dtype == np.bool_:
        return predicate(result, other, joined(flags, marked(depends, LOST) if unsure else None))
    if floats:
        cells = _same_digits(operands, result)
        if cells is not None:
            return _lost_elsewhere(cells, depends, flags)
        flags = joined(flags, marked(depends, LOST))
        if unsure:
            return marks_only(flags, units_of(result))
    return different(result, other, flags, units_of(result))


def _lost_elsewhere(cells: list[Cell | None], depends: Array, flags: Flags) -> Cells:
    """Lanes that no source explains are lost, where they depend on rounding."""
    found: list[Cell | None] = []
    for cell in cells:
        if cell is not None:
            marks = joined(cell.flags, flags, marked(absent(cell.value) & depends, LOST))
            cell = Cell(cell.kind, cell.index, cell.value, marks)
        found.append(cell)
    return tuple(found)


def _same_digits(operands: Operands, result: Array) -> list[Cell | None] | None:
    """For each 16 bits of the result the cell of a source that has the same bits, or a float of the same digits."""
    found: list[Cell | None] = []
    while len(found) < units_of(result):
        at = len(found)
        scaled = _scaled(operands, result, at) if at + 1 < units_of(result) else None
        if scaled is not None:
            found += number("f32", *scaled)
        else:
            found.append(_same_bits(operands, result, at))
    return found if any(found) else None


def _scaled(operands: Operands, result: Array, at: int) -> tuple[Array, Flags] | None:
    """A float whose digits are those of a source at the same place: its shadow is the source's, times what the program
    multiplied it by (a power of two, or minus one)."""
    if at % 2:
        return None
    shape = np.broadcast_shapes(result.shape, *(value.shape for value in operands.values))
    shadow, flags, some = np.full(shape, NOTHING), None, False
    bits = (result >> result.dtype.type(16 * at)).astype(np.uint32)
    for cells, value in zip(operands.cells, operands.values, strict=True):
        if cells is None or len(cells) <= at or whole_at(cells, at) != "f32":
            continue
        source = (value >> value.dtype.type(16 * at)).astype(np.uint32)
        wide, marks = read(cells, "f32", value, at)
        found = _as_scaled(source, bits, wide)
        if not absent(found).all():
            shadow, flags, some = np.where(absent(shadow), found, shadow), joined(flags, marks), True
    return (shadow, flags) if some else None


_SIGN, _DIGITS, _EXPONENT = np.uint32(0x80000000), np.uint32(0x7FFFFF), np.uint32(0x7F800000)


def _as_scaled(source: Array, result: Array, shadow: Array) -> Array:
    change = source ^ result
    flipped = np.where(change == 0, shadow, np.where(change == _SIGN, -shadow, NOTHING))
    normal = [((one & _EXPONENT) != 0) & ((one & _EXPONENT) != _EXPONENT) for one in (source, result)]
    alike = (change & _DIGITS == 0) & (change & _EXPONENT != 0) & normal[0] & normal[1]
    if not alike.any():
        return flipped
    factor = result.view(np.float32).astype(np.float64) / source.view(np.float32).astype(np.float64)
    return np.where(alike, shadow * factor, flipped)


def _same_bits(operands: Operands, result: Array, at: int) -> Cell | None:
    """The 16 bits of a source that the result has there, or those with the sign of a half turned over. Parts of longer
    numbers are followed only where the instruction moves bits."""
    held = (result >> result.dtype.type(16 * at)).astype(np.uint16)
    found: Cell | None = None
    for index, unit in _candidates(operands, at):
        cells = operands.cells[index]
        cell = cells[unit] if cells is not None and unit < len(cells) else None
        if cell is None or cell.kind not in UNITS or (found and (found.kind, found.index) != (cell.kind, cell.index)):
            continue
        if UNITS[cell.kind] > 1 and operands.instruction.base not in _MOVES_PARTS:
            continue
        value = operands.values[index]
        source = (value >> value.dtype.type(16 * unit)).astype(np.uint16)
        same = held == source
        shadow = np.where(same, cell.value, NOTHING)
        if cell.kind in ("f16", "bf16"):
            turned = (held ^ source) == 0x8000
            shadow = np.where(turned, -given(cell.value, decoded(source, cell.kind)), shadow)
            same = same | turned
        if not same.any():
            continue
        if found is not None:
            shadow = np.where(absent(found.value), shadow, found.value)
        found = Cell(cell.kind, cell.index, shadow, joined(cell.flags, found.flags if found else None))
    return found


def _candidates(operands: Operands, at: int) -> list[tuple[int, int]]:
    """Which sources, and which 16 bits of them, may be what the result has in its ``at``-th."""
    instruction = operands.instruction
    if instruction.base in ("shl", "shr", "prmt", "bfi", "bfe"):
        constant = _constant(operands.values[-1])
        if constant is None:
            return []
        if instruction.base == "prmt":
            return _permuted(constant, at) if not instruction.modifiers else []
        return _shifted(operands, constant, at)
    return [(index, at) for index in range(len(operands.values))]


def _constant(value: Array) -> int | None:
    """What an operand is in all lanes."""
    first = value.reshape(-1)[0]
    return int(first) if (value == first).all() else None


def _permuted(selector: int, at: int) -> list[tuple[int, int]]:
    low, high = ((selector >> shift) & 15 for shift in (8 * at, 8 * at + 4))
    return [(low // 4, low % 4 // 2)] if low % 2 == 0 and high == low + 1 and low < 8 else []


def _shifted(operands: Operands, constant: int, at: int) -> list[tuple[int, int]]:
    """A shift by ``constant``, or a field of ``constant`` bits put in, or taken out, at another such place."""
    base = operands.instruction.base
    place = constant if base in ("shl", "shr") else _constant(operands.values[-2])
    if place is None or place % 16 or constant % 16:
        return []
    first, units = place // 16, constant // 16
    if base == "shl":
        return [(0, at - first)] if at >= first else []
    if base == "shr":
        return [(0, at + first)]
    if base == "bfe":
        return [(0, at + first)] if at < units else []
    return [(0, at - first)] if first <= at < first + units else [(1, at)]


def predicate(result: Array, would: Array, flags: Flags) -> Cells | None:
    """The cells of a predicate that would be ``would``."""
    cells = different(result, would, flags, 1)
    return cells if cells is not None else marks_only(flags, 1, "pred")
