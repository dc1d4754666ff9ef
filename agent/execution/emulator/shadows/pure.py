"""The shadow of instructions that only compute: arithmetic on floats, conversions, comparisons, choices, moves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.ptx.instruction import Vector
from agent.execution.emulator.semantics.compare import float_comparison, joins_of, operator_of
from agent.execution.emulator.semantics.quarter import QUARTERS
from agent.execution.emulator.shadows.bits import Operands, predicate, units_of, whole_numbers
from agent.execution.emulator.shadows.cells import (
    LOST,
    PARTED,
    UNITS,
    Cell,
    Cells,
    Flags,
    Float,
    alternate,
    chosen,
    decoded,
    different,
    flags_of,
    joined,
    marked,
    marks_only,
    number,
    read,
    whole_at,
)
from agent.execution.emulator.shadows.math import INTEGRAL, PARTS, bounded, computes, evaluate, from_integer
from agent.execution.emulator.shadows.shadow import errors

if TYPE_CHECKING:
    pass

_FLOATS = frozenset(UNITS)


def pure(operands: Operands) -> list[Cells | None]:
    """The cells of each result."""
    instruction = operands.instruction
    base, types = instruction.base, instruction.types
    if computes(instruction):
        return [_arithmetic(operands)]
    if base == "cvt" and types[0] in PARTS and not set(types) & set(QUARTERS):
        return [_to_float(operands)]
    if base == "cvt" and types[0] == "tf32":
        return [_tf32(operands)]
    if not any(operands.cells):
        return [None] * len(operands.results)
    if base == "mov":
        return _move(operands)
    if base == "selp":
        return [_select(operands)]
    if base in ("setp", "set") and types[-1] in PARTS:
        return _compare(operands)
    return whole_numbers(operands)


# Arithmetic of floats -----------------------------------------------------------------------------------------------


def _arithmetic(operands: Operands) -> Cells:
    """A number for each part of a packed register."""
    found: list[Cell | None] = []
    for kind in PARTS[operands.instruction.types[0]]:
        at = len(found)
        pairs = list(zip(operands.cells, operands.values, strict=True))
        sources = [read(cells, kind, bits, at) for cells, bits in pairs]
        owns = [decoded(bits, kind, at) for bits in operands.values]
        own = decoded(operands.results[0], kind, at)
        shadow, flags = evaluate(operands.instruction, sources, owns, own)
        flags = operands.twin.marks(operands.batch.lanes, flags)
        tally(operands, own, shadow, kind, flags, list(zip(owns, sources, strict=True)))
        found += number(kind, shadow, flags)
    return tuple(found)


def tally(
    operands: Operands,
    own: Array,
    shadow: Array,
    kind: str,
    flags: Flags,
    sources: Sequence[tuple[Array, Float]],
) -> None:
    """Note the error of one result, and the largest that operands from other lines had."""
    if kind == "f64":
        return
    for (value, (wide, marks)), foreign in zip(sources, operands.foreign, strict=False):
        if foreign:
            error = float(errors(value, wide, kind, marks).max(initial=0.0))
            operands.twin.tally.brought(operands.site, error)
    if operands.leaves:
        operands.twin.tally.grown(operands.site, errors(own, shadow, kind, flags))


# Conversions --------------------------------------------------------------------------------------------------------


def _to_float(operands: Operands) -> Cells:
    """From floats of any width, or from whole numbers."""
    instruction = operands.instruction
    to, of = instruction.types
    found: list[Cell | None] = []
    parts = PARTS[to]
    # of two sources the second becomes the lower part
    order = [0] if len(parts) == 1 else [1, 0]
    for place, kind in zip(order, parts, strict=True):
        cells, bits = operands.cells[place], operands.values[place]
        shadow, flags = _source(cells, bits, of)
        words = instruction.modifiers
        for word in words:
            shadow = INTEGRAL[word](shadow) if word in INTEGRAL else shadow
        shadow = np.asarray(bounded(shadow, words))
        own = decoded(operands.results[0], kind, len(found))
        flags = operands.twin.marks(operands.batch.lanes, flags)
        held = decoded(bits, of) if of in _FLOATS else from_integer(bits, of)
        tally(operands, own, shadow, kind, flags, [(held, (shadow, flags))] if of in _FLOATS else [])
        found += number(kind, shadow, flags)
    return tuple(found)


def _source(cells: Cells | None, bits: Array, kind: str) -> tuple[Array, Flags]:
    if kind in _FLOATS:
        return read(cells, kind, bits)
    return from_integer(alternate(cells, bits)[0], kind), flags_of(cells)


def _tf32(operands: Operands) -> Cells:
    """A float of fewer digits: what it loses shows."""
    shadow, flags = read(operands.cells[0], "f32", operands.values[0])
    own = decoded(operands.results[0], "f32")
    flags = operands.twin.marks(operands.batch.lanes, flags)
    tally(operands, own, shadow, "f32", flags, [(decoded(operands.values[0], "f32"), (shadow, flags))])
    return number("f32", shadow, flags)


# Moves --------------------------------------------------------------------------------------------------------------


def _move(operands: Operands) -> list[Cells | None]:
    """Copies, packs and unpacks: the cells go along."""
    instruction = operands.instruction
    (target,) = instruction.destinations
    if isinstance(instruction.sources[0], Vector):
        packed: list[Cell | None] = []
        for cells, value in zip(operands.cells, operands.values, strict=True):
            packed += _moved(cells, units_of(value))
        return [_renumbered(tuple(packed))]
    (cells,) = operands.cells
    if not isinstance(target, Vector) or len(operands.results) == 1:
        return [cells]
    found: list[Cells | None] = []
    at = 0
    for result in operands.results:
        found.append(_cut(cells, at, units_of(result)))
        at += units_of(result)
    return found


def _moved(cells: Cells | None, units: int) -> list[Cell | None]:
    return [*(cells or ()), *[None] * (units - len(cells or ()))]


def _cut(cells: Cells | None, at: int, units: int) -> Cells | None:
    """Some 16 bits of a register. Of a whole number that would be another one only marks are left."""
    if cells is None:
        return None
    return _renumbered(cells[at : at + units])


def _renumbered(cells: Cells) -> Cells:
    """Cells of whole numbers belong to one register: taken apart or put together they leave marks."""
    found: list[Cell | None] = []
    for cell in cells:
        if cell is not None and cell.kind == "bits":
            marks = joined(cell.flags, marked(cell.value != 0, LOST))
            cell = None if marks is None else Cell("bits", 0, np.zeros((1, 1), np.uint64), marks)
        found.append(cell)
    return tuple(found)


def _select(operands: Operands) -> Cells | None:
    """``selp``: without rounding the other one may be chosen; then it is that. Where the two are no further apart than
    they are wrong (as in a maximum) that is an error like any other, else a comparison has parted."""
    (yes, no, holds), (one, other, given_holds) = operands.cells, operands.values
    kind = operands.instruction.types[0]
    flags = flags_of(holds)
    if holds is None or holds[0] is None or not holds[0].value.any():
        found = chosen(given_holds, yes, no)
        return found if flags is None else _with(found, flags, units_of(operands.results[0]))
    would = given_holds ^ holds[0].value
    if kind not in PARTS:
        kind = next((whole_at(cells, 0) for cells in (yes, no) if cells is not None and whole_at(cells, 0)), "")
    if not kind:
        first, second = alternate(yes, one)[0], alternate(no, other)[0]
        flags = joined(flags, flags_of(yes), flags_of(no), marked(would != given_holds, PARTED))
        return different(operands.results[0], np.where(would, first, second), flags, units_of(operands.results[0]))
    cells: list[Cell | None] = []
    for part in PARTS[kind]:
        at = len(cells)
        (first, marks), (second, more) = read(yes, part, one, at), read(no, part, other, at)
        owns = decoded(one, part, at), decoded(other, part, at)
        near = np.abs(first - second) <= 2.0 * (np.abs(owns[0] - first) + np.abs(owns[1] - second))
        parted = marked((would != given_holds) & ~near, PARTED)
        cells += number(part, np.where(would, first, second), joined(flags, marks, more, parted))
    return tuple(cells)


def _with(cells: Cells | None, flags: Flags, units: int) -> Cells | None:
    if cells is None:
        return marks_only(flags, units)
    return tuple(cell and Cell(cell.kind, cell.index, cell.value, joined(cell.flags, flags)) for cell in cells)


# Comparisons --------------------------------------------------------------------------------------------------------


def _compare(operands: Operands) -> list[Cells | None]:
    """``setp`` and ``set`` on floats: what the comparison gives without rounding."""
    instruction, results = operands.instruction, operands.results
    compare, join = float_comparison(operator_of(instruction)), joins_of(instruction)
    parts = PARTS[instruction.types[-1]]
    holds: list[Array] = []
    flags: Flags = None
    for at, kind in enumerate(parts):
        (one, marks), (other, more) = (
            read(operands.cells[k], kind, operands.values[k], at * UNITS[kind]) for k in (0, 1)
        )
        holds.append(np.asarray(compare(one, other)))
        flags = joined(flags, marks, more)
    if instruction.base == "setp":
        if len(holds) < len(results):
            holds.append(~holds[0])
        if join:
            third = alternate(operands.cells[2], operands.values[2])[0] ^ (2 in instruction.negated)
            flags = joined(flags, flags_of(operands.cells[2]))
            holds = [join[0](one, third) for one in holds]
        return [predicate(result, would, flags) for result, would in zip(results, holds, strict=True)]
    if join:
        return [marks_only(joined(flags, np.full((1, 1), LOST, np.uint8)), units_of(results[0]))]
    kind = instruction.types[0]
    if kind in PARTS:
        cells: list[Cell | None] = []
        for part, would in zip(PARTS[kind], holds, strict=True):
            own = decoded(results[0], part, len(cells))
            parted = marked((own != 0) != would, PARTED)
            cells += number(part, would.astype(np.float64), joined(flags, parted))
        return [tuple(cells)]
    if len(parts) > 1:
        return [marks_only(flags, units_of(results[0]))]
    ones = np.where(holds[0], ~results[0].dtype.type(0), results[0].dtype.type(0))
    flags = joined(flags, marked(results[0] != ones, PARTED))
    return [different(results[0], ones, flags, units_of(results[0]))]


# Guards -------------------------------------------------------------------------------------------------------------


def guarded(
    holds: Array, guard: Cells | None, old: Sequence[Cells | None], new: Sequence[Cells | None], units: Sequence[int]
) -> list[Cells | None]:
    """Results of an instruction behind a guard: where it does not hold the old ones stay. Lanes for which it would be
    otherwise without rounding are marked."""
    marks = flags_of(guard)
    if guard is not None and guard[0] is not None:
        marks = joined(marks, marked(guard[0].value != 0, PARTED))
    found = [chosen(holds, after, before) for before, after in zip(old, new, strict=True)]
    if marks is None:
        return found
    return [_with(cells, marks, size) for cells, size in zip(found, units, strict=True)]
