"""The shadow of instructions by which the lanes of a warp talk: shuffles and tiles move cells, matrix products are made
in float64, and votes only carry marks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.semantics.fragments import Fragment, fragment
from agent.execution.emulator.semantics.matrices import matrices as own_matrices
from agent.execution.emulator.shadows.bits import units_of
from agent.execution.emulator.shadows.cells import (
    PARTED,
    UNITS,
    Cell,
    Cells,
    Flags,
    chosen,
    decoded,
    flags_of,
    joined,
    marked,
    marks_only,
    number,
    read,
)
from agent.execution.emulator.shadows.memory import After, Follow, addresses_of, cells_at, lay, with_marks
from agent.execution.emulator.shadows.planes import spots
from agent.execution.emulator.shadows.shadow import Twin, errors
from agent.execution.emulator.steps.matrix import Transfer, matrix_of, transfer_of
from agent.execution.emulator.steps.tiles import address_of, form_of
from agent.execution.emulator.steps.warp import Warps, pick, source_lane
from agent.execution.emulator.values import Lowering, Step, Values

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_LANE = np.arange(WARP)


def shuffles(lowering: Lowering, step: Step) -> Follow:
    """``shfl``: each lane gets the cells of the lane that it reads."""
    mode = next(word for word in lowering.instruction.modifiers if word in ("up", "down", "bfly", "idx"))
    value, place, clamp, mask = step.reads
    first = lowering.instruction.destinations[0]
    out = lowering.destination(first) if first is not None else None

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        flags = twin.marks(lanes, *(flags_of(twin.get(lanes, entry)) for entry in (place, clamp)))
        cells = with_marks(twin.get(lanes, value), flags, units_of(values[value]))
        if cells is None:
            return lambda: _forget(twin, lanes, step)
        own = np.arange(lanes.count, dtype=np.int64).reshape(lanes.shape)
        warps = Warps(lanes, own, values[place], values[clamp], values[mask])
        table, b, c, members = warps.tables
        source, _ = source_lane(mode, b.astype(np.int64), c.astype(np.int64))
        picked = warps.back(pick(table, source, warps.members(members), warps.count)).reshape(-1)
        found = tuple(_taken(cell, picked, lanes) for cell in cells)

        def after() -> None:
            _forget(twin, lanes, step)
            if out is not None and out in step.writes:
                twin.put(lanes, out, found)

        return after

    return follow


def _forget(twin: Twin, lanes: Lanes, step: Step) -> None:
    for out in step.writes:
        twin.put(lanes, out, None)


def _taken(cell: Cell | None, picked: Array, lanes: Lanes) -> Cell | None:
    if cell is None:
        return None

    def take(value: Array) -> Array:
        return np.broadcast_to(value, lanes.shape).reshape(-1)[picked].reshape(lanes.shape)

    return Cell(cell.kind, cell.index, take(cell.value), None if cell.flags is None else take(cell.flags))


def votes(lowering: Lowering, step: Step) -> Follow:
    """``vote``, ``match``, ``redux`` and the like: where any lane of a warp brings something else without rounding, the
    result is marked for all."""

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        flags = joined(*(_doubts(twin.get(lanes, entry)) for entry in step.reads))
        if flags is not None:
            (table,) = Warps(lanes, np.array(np.broadcast_to(flags, lanes.shape))).tables
            warps = Warps(lanes, np.array(np.broadcast_to(flags, lanes.shape)))
            flags = warps.back(np.bitwise_or.reduce(table, axis=1, keepdims=True))

        def after() -> None:
            for out in step.writes:
                kind = "pred" if values[out].dtype == np.bool_ else "bits"
                twin.put(lanes, out, marks_only(flags, units_of(values[out]), kind))

        return after

    return follow


def _doubts(cells: Cells | None) -> Flags:
    if cells is None:
        return None
    others = [marked(cell.value != 0, PARTED) for cell in cells if cell is not None and cell.kind not in UNITS]
    return joined(flags_of(cells), *others)


# Tiles --------------------------------------------------------------------------------------------------------------


def whole(lanes: Lanes) -> bool:
    """Whether the lanes are complete warps, side by side in their flat order."""
    if lanes.count % WARP or lanes.threads % WARP:
        return False
    flat = lanes.flat.reshape(-1, WARP)
    return bool((flat[:, 0] % WARP == 0).all() and (flat[:, -1] - flat[:, 0] == WARP - 1).all())


def _table(value: Array, lanes: Lanes) -> Array:
    return np.broadcast_to(value, lanes.shape).reshape(-1, WARP)


def _places(tile: int, turned: bool) -> list[tuple[Array, Array]]:
    """For both halves that a lane holds of a tile: which lane gives the row, and which half of it."""
    row, column = _LANE // 4, 2 * (_LANE % 4)
    if turned:
        return [(8 * tile + column + half, row) for half in (0, 1)]
    return [(8 * tile + row, column + half) for half in (0, 1)]


def tile_loads(lowering: Lowering, step: Step) -> Follow:
    """``ldmatrix``."""
    _, turned = form_of(lowering)
    base, shift = address_of(lowering, lowering.instruction.sources[0])

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes, address = batch.lanes, addresses_of(values, base, shift)

        def after() -> None:
            for tile, out in enumerate(step.writes):
                cells: list[Cell | None] = [None, None]
                if whole(lanes):
                    table = _table(address, lanes)
                    for half, (row, column) in enumerate(_places(tile, turned)):
                        at = (table[:, row] + (2 * column).astype(np.uint64)).reshape(lanes.shape)
                        found = spots(batch, "shared", at, 2, False)
                        held = cells_at(batch, found, 0, values[out] >> np.uint32(16 * half), 2)
                        cells[half] = held[0] if held else None
                twin.put(lanes, out, tuple(cells))

        return after

    return follow


def tile_stores(lowering: Lowering, step: Step) -> Follow:
    """``stmatrix``."""
    _, turned = form_of(lowering)
    base, shift = address_of(lowering, lowering.instruction.sources[0])

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes, address = batch.lanes, addresses_of(values, base, shift)
        if not whole(lanes):
            return lambda: None
        table = _table(address, lanes)
        for tile, entry in enumerate(step.reads[1:]):
            cells = with_marks(twin.get(lanes, entry), twin.astray(lanes), 2)
            for half, (row, column) in enumerate(_places(tile, turned)):
                at = (table[:, row] + (2 * column).astype(np.uint64)).reshape(lanes.shape)
                found = spots(batch, "shared", at, 2, cells is not None)
                one = cells[half : half + 1] if cells is not None else None
                lay(batch, found, 0, one, values[entry] >> np.uint32(16 * half), 2)
        return lambda: None

    return follow


def tile_moves(lowering: Lowering, step: Step) -> Follow:
    """``movmatrix``: element (row, column) comes from (column, row)."""

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        cells = with_marks(twin.get(lanes, step.reads[0]), twin.astray(lanes), 2)
        found: list[Cell | None] = []
        for half in (0, 1) if cells is not None and whole(lanes) else ():
            assert cells is not None
            row, column = _LANE // 4, 2 * (_LANE % 4) + half
            source = column * 4 + row // 2
            parts = [_from(cells[which], source, lanes) for which in (0, 1)]
            found.append(_either(parts, np.tile(row % 2 == 0, lanes.count // WARP).reshape(lanes.shape)))
        return lambda: twin.put(lanes, step.writes[0], tuple(found) or None)

    return follow


def _from(cell: Cell | None, source: Array, lanes: Lanes) -> Cell | None:
    picked = (np.arange(0, lanes.count, WARP)[:, None] + source).reshape(-1)
    return _taken(cell, picked, lanes)


def _either(parts: Sequence[Cell | None], first: Array) -> Cell | None:
    one, other = (None if part is None else (part,) for part in parts)
    cells = chosen(first, one, other)
    return cells[0] if cells else None


# Matrices -----------------------------------------------------------------------------------------------------------


def matrices(lowering: Lowering, step: Step) -> Follow:
    """``mma`` and ``wmma``: products in float64 of what the elements are without rounding."""
    words = lowering.instruction.modifiers
    if lowering.instruction.base == "wmma" and words[0] in ("load", "store"):
        return _transfers(lowering, step, transfer_of(lowering))
    shape, (to, left, right, plus) = matrix_of(lowering)
    if to == "s32":
        return votes(lowering, step)
    forms = [fragment(role, shape, kind) for role, kind in (("a", left), ("b", right), ("c", plus))]
    into = fragment("c", shape, to)
    sizes = [len(flatten((operand,))) for operand in lowering.instruction.sources]
    starts = [0, sizes[0], sizes[0] + sizes[1]]

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        if not whole(lanes):
            return lambda: _forget(twin, lanes, step)
        found, flags = [], twin.astray(lanes)
        for form, start in zip(forms, starts, strict=True):
            entries = step.reads[start : start + form.registers]
            wide, marks = _elements(twin, lanes, form, entries, values)
            found.append(wide)
            flags = joined(flags, marks)
        product = np.matmul(found[0], found[1]) + found[2]
        of_warp = None if flags is None else np.bitwise_or.reduce(_table(flags, lanes), axis=1)[:, None]
        spread = None if of_warp is None else np.repeat(of_warp, WARP, axis=1).reshape(lanes.shape)
        results = product[:, into.rows, into.columns]

        def after() -> None:
            for register, out in enumerate(step.writes):
                first = register * into.packed
                parts = [
                    np.ascontiguousarray(results[:, :, first + k]).reshape(lanes.shape) for k in range(into.packed)
                ]
                twin.put(lanes, out, _register(twin, lowering, into, parts, values[out], spread))

        return after

    return follow


def _kind(form: Fragment) -> str:
    """The format that the elements of a register are read as; whole numbers and quarters have none."""
    return "f32" if form.kind == "tf32" else form.kind if form.kind in UNITS else ""


def _elements(twin: Twin, lanes: Lanes, form: Fragment, entries: Sequence[int], values: Values) -> tuple[Array, Flags]:
    """The matrix of each warp without rounding, and the marks of its lanes."""
    kind, flags = _kind(form), None
    if not kind:
        tables = [_table(values[entry], lanes) for entry in entries]
        own: Array = own_matrices(form, tables)
        return own.astype(np.float64), joined(*(flags_of(twin.get(lanes, entry)) for entry in entries))
    parts = []
    for entry in entries:
        cells = twin.get(lanes, entry)
        for k in range(form.packed):
            value, marks = read(cells, kind, values[entry], k * UNITS[kind])
            parts.append(_table(value, lanes))
            flags = joined(flags, marks)
    result = np.zeros((lanes.count // WARP, *form.size))
    result[:, form.rows, form.columns] = np.stack(parts, axis=2)
    return result, flags


def _register(
    twin: Twin, lowering: Lowering, into: Fragment, results: Sequence[Array], own: Array, marks: Flags
) -> Cells:
    """The cells of one register of the result, from what its parts are without rounding."""
    cells: list[Cell | None] = []
    kind = into.kind
    for k, shadow in enumerate(results):
        if kind != "f64":
            off = errors(decoded(own, kind, k), shadow, kind, marks)
            twin.tally.grown(lowering.site, off)
        cells += number(kind, shadow, marks)
    return tuple(cells)


def _transfers(lowering: Lowering, step: Step, form: Transfer) -> Follow:
    """``wmma.load`` and ``wmma.store``: cells of each access."""

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        ways = form.ways(values, batch)
        if not form.loads:
            for entry, (width, addresses) in zip(form.held, ways, strict=False):
                cells = with_marks(twin.get(lanes, entry), twin.astray(lanes), units_of(values[entry]))
                for index, at in enumerate(addresses):
                    first = index * width // 2
                    part = cells[first : first + width // 2] if cells is not None and width > 1 else None
                    found = spots(batch, form.space, at, width, part is not None)
                    held = values[entry]
                    lay(batch, found, 0, part, held >> held.dtype.type(8 * width * index), width)
            return lambda: None

        def after() -> None:
            for index, entry in enumerate(form.held):
                width, addresses = ways[index % len(ways)]
                cells: list[Cell | None] = []
                for number_, at in enumerate(addresses):
                    held = values[entry] >> values[entry].dtype.type(8 * width * number_)
                    part = cells_at(batch, spots(batch, form.space, at, width, False), 0, held, width)
                    cells += part or [None] * max(1, width // 2)
                twin.put(lanes, entry, tuple(cells))

        return after

    return follow
