"""The shadow of atomics: sums, minima and maxima of floats are made in float64, in the order in which lanes go; an
exchange, a compare-and-swap that succeeds, and a minimum or maximum of a float's bits move cells."""

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.atomic_update import update
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.shadows.bits import units_of
from agent.execution.emulator.shadows.cells import LOST, NOTHING, UNITS, Cell, Cells, decoded, number, read
from agent.execution.emulator.shadows.math import PARTS
from agent.execution.emulator.shadows.memory import After, Follow, addresses_of, astray, with_marks
from agent.execution.emulator.shadows.planes import CODES, Records, Spot, cell_of, record_of, spots
from agent.execution.emulator.shadows.shadow import Twin, errors
from agent.execution.emulator.steps.atomic import apply, words_of
from agent.execution.emulator.values import Lowering, Step, Values, width_of

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_FOLDS: dict[str, Any] = {"add": np.add, "min": np.fmin, "max": np.fmax}
_MOVES = frozenset(("exch", "cas", "min", "max"))


@frozen(eq=False)
class _Atomic:
    """One atomic of all lanes: ``before`` is what each spot's memory held."""

    batch: "Batch"
    twin: Twin
    site: int
    found: list[Spot]
    before: list[Array]
    cells: list[Cells | None]
    operands: list[Array]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.batch.lanes.shape


def atomics(lowering: Lowering, step: Step) -> Follow:
    """``atom`` and ``red``."""
    space, name, count = words_of(lowering)
    instruction = lowering.instruction
    kind, width = instruction.types[0], width_of(instruction.types[0])
    base, shift, owner = lowering.address(instruction.sources[0])
    if owner and space == "generic":
        space = "shared" if owner == "shared" else "global"
    entries, groups = step.reads[1:], (len(step.reads) - 1) // count
    parts = flatten(instruction.destinations)
    outs = dict(zip([k for k, part in enumerate(parts) if part is not None], step.writes, strict=True))
    follows = _numbers if kind in PARTS and name in _FOLDS else _moves

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        flags, address = astray(twin, batch, base, values), addresses_of(values, base, shift)
        todo = []
        for k in range(count):
            mine = [entries[k + group * count] for group in range(groups)]
            cells = [with_marks(twin.get(batch.lanes, entry), flags, units_of(values[entry])) for entry in mine]
            found = spots(batch, space, address + np.uint64(k * width), width, any(cells) or follows is _numbers)
            held = [spot.held(width) for spot in found]
            operands = [values[entry] for entry in mine]
            todo.append(_Atomic(batch, twin, lowering.site.index, found, held, cells, operands, width))

        def after() -> None:
            for k, one in enumerate(todo):
                old = follows(one, name, kind)
                if k in outs:
                    twin.put(batch.lanes, outs[k], old)

        return after

    return follow


def _numbers(one: _Atomic, name: str, kind: str) -> Cells | None:
    """Arithmetic on each part of the elements; the cells of what was there before."""
    old: list[Cell | None] = []
    for part in PARTS[kind]:
        old += _number(one, _FOLDS[name], part, len(old))
    return tuple(old)


def _number(one: _Atomic, fold: Any, kind: str, at: int) -> Cells:
    count = one.batch.lanes.count
    operand, flags = read(one.cells[0], kind, one.operands[0], at)
    wide = np.broadcast_to(operand, one.shape).reshape(-1)
    marks = np.broadcast_to(np.uint8(0) if flags is None else flags, one.shape).reshape(-1)
    old, seen = np.full(count, NOTHING), np.zeros(count, np.uint8)
    for spot, before in zip(one.found, one.before, strict=True):
        plane, index, after = spot.plane, spot.index + at, spot.held(one.width)
        plane.value[index], plane.flags[index] = _current(spot, at, kind, before)
        seen[spot.places] = plane.flags[index]
        old[spot.places] = update(plane.value, index, fold, (wide[spot.places],), fold)
        np.bitwise_or.at(plane.flags, index, marks[spot.places])
        value, now = plane.value[index], plane.flags[index]
        for k in range(UNITS[kind]):
            code = np.full(len(index), CODES[kind, k], np.uint8)
            plane.put(index + k, Records(code, value, now), _unit(after, at + k))
        if kind != "f64":
            first = np.unique(index, return_index=True)[1]
            off = errors(decoded(after, kind, at)[first], value[first], kind, now[first])
            one.twin.tally.grown(one.batch.kernel.sites[one.site], off)
    return number(kind, old.reshape(one.shape), seen.reshape(one.shape) if seen.any() else None)


def _current(spot: Spot, at: int, kind: str, before: Array) -> tuple[Array, Array]:
    """Shadows and marks of the elements before the atomic."""
    index = spot.index + at
    records = [spot.plane.get(index + k, _unit(before, at + k)) for k in range(UNITS[kind])]
    whole = np.logical_and.reduce([one.code == CODES[kind, k] for k, one in enumerate(records)])
    flags = np.bitwise_or.reduce([one.flags for one in records])
    return np.where(whole, records[0].value, decoded(before, kind, at)), flags


def _unit(bits: Array, at: int) -> Array:
    unit: Array = (bits >> bits.dtype.type(16 * at)).astype(np.uint16)
    return unit


def _moves(one: _Atomic, name: str, kind: str) -> Cells | None:
    """Who wins lays down its cells; the cells of what each lane found."""
    units = one.width // 2
    new = [_cell(one.cells[-1], k) for k in range(units)]
    flat = [np.broadcast_to(value, one.shape).reshape(-1) for value in one.operands]
    found: list[Records] = [record_of(None, one.shape) for _ in range(units)]
    for spot, before in zip(one.found, one.before, strict=True):
        given = tuple(value[spot.places].astype(UNSIGNED[one.width], copy=False) for value in flat)
        elements, place = np.unique(spot.index, return_inverse=True)
        memory = np.empty(len(elements), before.dtype)
        memory[place] = before
        wins = _wins(name, apply(memory, place, name, kind, given), given, kind)
        owner = np.full(len(elements), -1, np.int64)
        last = update(owner, place, _taken_over, (wins, np.arange(len(place))))
        for k in range(units):
            old, mine = spot.plane.get(spot.index + k, _unit(before, k)), record_of(new[k], one.shape).at(spot.places)
            for whole, some in zip(found[k], mine.at(last).where(last >= 0, old), strict=True):
                whole[spot.places] = some
            won, winner = owner[place] >= 0, owner[place]
            final = mine.at(winner).where(won, old)
            if name not in _MOVES:
                final = _lost(final, memory[place] != before)
            spot.plane.put(spot.index + k, final, _unit(memory[place], k))
    cells = tuple(cell_of(records, one.shape) for records in found)
    return cells if any(cells) else None


def _taken_over(held: Array, hit: Array, own: Array) -> Array:
    return np.where(hit, own, held)


def _cell(cells: Cells | None, k: int) -> Cell | None:
    return cells[k] if cells is not None and k < len(cells) else None


def _lost(records: Records, changed: Array) -> Records:
    """Bits of floats that whole-number arithmetic changed."""
    flags = np.where(changed & (records.code != 0), records.flags | np.uint8(LOST), records.flags)
    mark = record_of(Cell("bits", 0, np.zeros((1, 1), np.uint64), np.full((1, 1), LOST, np.uint8)), (1, 1)).code[0]
    return Records(np.where(changed & (records.code != 0), mark, records.code), records.value, flags)


def _wins(name: str, old: Array, given: tuple[Array, ...], kind: str) -> Array:
    """Whether what a lane brought is what memory holds after it."""
    if name == "exch":
        return np.ones(len(old), bool)
    if name == "cas":
        return np.asarray(old == given[0])
    if name in ("min", "max"):
        was, brought = (one.view(f"i{one.dtype.itemsize}") if kind[0] == "s" else one for one in (old, given[0]))
        return np.asarray(brought < was if name == "min" else brought > was)
    return np.zeros(len(old), bool)
