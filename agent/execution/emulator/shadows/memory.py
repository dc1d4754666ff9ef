"""The shadow of loads, stores, and copies into shared memory: cells go with the bits that they belong to."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.ptx.instruction import Immediate, Register
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.shadows.bits import units_of
from agent.execution.emulator.shadows.cells import PARTED, Cell, Cells, Flags, alternate, flags_of, joined, marked
from agent.execution.emulator.shadows.planes import Spot, halves, load, record_of, spots, store
from agent.execution.emulator.shadows.shadow import Twin
from agent.execution.emulator.steps.memory import access
from agent.execution.emulator.steps.surface import accessed
from agent.execution.emulator.values import Lowering, Step, Values, width_of

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

After = Callable[[], None]
Follow = Callable[[Values, "Batch", Twin], After]
_MASK = 0xFFFF_FFFF_FFFF_FFFF


def _nothing() -> None:
    pass


def _space(lowering: Lowering, space: str, owner: str, loads: bool) -> str:
    """The state space of an access, as the steps of memory have it."""
    if space == "param":
        return owner or ("param" if loads else "local")
    return space


def addresses_of(values: Values, base: int, shift: int) -> Array:
    """The lanes' addresses."""
    value = values[base]
    if value.dtype == np.uint64:
        return np.asarray(value + np.uint64(shift & _MASK))
    return np.asarray((value.astype(np.int64) + shift).view(np.uint64))


def astray(twin: Twin, batch: "Batch", base: int, values: Values) -> Flags:
    """Marks of lanes whose address would have been another one without rounding, and of those that have parted."""
    cells = twin.get(batch.lanes, base)
    if cells is None:
        return twin.astray(batch.lanes)
    other, _ = alternate(cells, values[base])
    return twin.marks(batch.lanes, flags_of(cells), marked(np.asarray(other != values[base]), PARTED))


def loads(lowering: Lowering, step: Step) -> Follow:
    """``ld``: the cells of what is loaded."""
    space, kind, count = access(lowering)
    width = width_of(kind)
    parts = flatten((lowering.instruction.destinations[0],))
    outs = [None if part is None else lowering.destination(part) for part in parts]
    base, shift, owner = lowering.address(lowering.instruction.sources[0])
    space = _space(lowering, space, owner, True)

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        flags = astray(twin, batch, base, values)
        found = spots(batch, space, addresses_of(values, base, shift), width * count, False)

        def after() -> None:
            for k, out in enumerate(outs):
                if out is not None:
                    cells = cells_at(batch, found, k * width, values[out], width)
                    twin.put(batch.lanes, out, with_marks(cells, flags, units_of(values[out])))

        return after

    return follow


def surface_loads(lowering: Lowering, step: Step) -> Follow:
    """``suld``: the cells of what is loaded."""
    access_of = accessed(lowering)
    parts = flatten((lowering.instruction.destinations[0],))
    outs = [None if part is None else lowering.destination(part) for part in parts]

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        flags = joined(*(astray(twin, batch, place, values) for place in access_of.places))
        found = spots(batch, "global", access_of.addresses(values, batch), access_of.span, False)

        def after() -> None:
            for k, out in enumerate(outs):
                if out is not None:
                    cells = cells_at(batch, found, k * access_of.width, values[out], access_of.width)
                    twin.put(batch.lanes, out, with_marks(cells, flags, units_of(values[out])))

        return after

    return follow


def cells_at(batch: "Batch", found: list[Spot], at: int, value: Array, width: int) -> Cells | None:
    """The cells of ``width`` bytes that a register holds, ``at`` bytes behind the spots."""
    if not found or width < 2:
        return None
    shape = batch.lanes.shape
    cells = load(found, shape, at // 2, halves(value, shape, width))
    return cells if any(cells) else None


def with_marks(cells: Cells | None, flags: Flags, units: int) -> Cells | None:
    """The cells with further marks."""
    if flags is None:
        return cells
    none = np.zeros((1, 1), np.uint64)
    padded = [*(cells or ()), *[None] * (units - len(cells or ()))]
    held = [cell or Cell("bits", index, none) for index, cell in enumerate(padded)]
    return tuple(Cell(cell.kind, cell.index, cell.value, joined(cell.flags, flags)) for cell in held)


def stores(lowering: Lowering, step: Step) -> Follow:
    """``st``: the cells are laid down beside the bits."""
    space, kind, count = access(lowering)
    width = width_of(kind)
    base, shift, owner = lowering.address(lowering.instruction.sources[0])
    space = _space(lowering, space, owner, False)
    entries = step.reads[1 : 1 + count]

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        flags = astray(twin, batch, base, values)
        held = [with_marks(twin.get(batch.lanes, entry), flags, units_of(values[entry])) for entry in entries]
        found = spots(batch, space, addresses_of(values, base, shift), width * count, any(held))
        for k, (entry, cells) in enumerate(zip(entries, held, strict=True)):
            lay(batch, found, k * width, cells, values[entry], width)
        return _nothing

    return follow


def surface_stores(lowering: Lowering, step: Step) -> Follow:
    """``sust``: the cells are laid down beside the bits."""
    access_of = accessed(lowering)
    entries = step.reads[1 + len(access_of.places) :]

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        flags = joined(*(astray(twin, batch, place, values) for place in access_of.places))
        held = [with_marks(twin.get(batch.lanes, entry), flags, units_of(values[entry])) for entry in entries]
        found = spots(batch, "global", access_of.addresses(values, batch), access_of.span, any(held))
        for k, (entry, cells) in enumerate(zip(entries, held, strict=True)):
            lay(batch, found, k * access_of.width, cells, values[entry], access_of.width)
        return _nothing

    return follow


def lay(batch: "Batch", found: list[Spot], at: int, cells: Cells | None, value: Array, width: int) -> None:
    """Lay down the cells of a register of which ``width`` bytes are stored, ``at`` bytes behind the spots."""
    shape = batch.lanes.shape
    if width < 2:
        # a byte of a number: what stands there is none any more
        for spot in found:
            spot.plane.code[spot.index + at // 2] = 0
        return
    units = width // 2
    padded = [*(cells or ()), *[None] * units][:units]
    store(found, shape, at // 2, tuple(padded), halves(value, shape, width))


def copies(lowering: Lowering, step: Step) -> Follow | None:
    """``cp.async``: cells are copied when it is issued; they count when the bits have arrived."""
    words = lowering.instruction.modifiers
    if words[:1] != ("async",) or words[1] not in ("ca", "cg"):
        return None
    operands = list(lowering.instruction.sources)
    if "L2::cache_hint" in words:
        operands.pop()
    size = operands[2]
    assert isinstance(size, Immediate)
    target, target_shift, _ = lowering.address(operands[0])
    source, source_shift, _ = lowering.address(operands[1])
    ignores = len(operands) == 4 and isinstance(operands[3], Register) and operands[3].file == "pred"
    given = lowering.source(operands[3], "pred" if ignores else "b32") if len(operands) == 4 else None
    flip, nbytes = 3 in lowering.instruction.negated, size.bits

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        into = addresses_of(values, target, target_shift)
        out_of = addresses_of(values, source, source_shift)
        units = np.full((1, 1), nbytes // 2)
        if given is not None:
            held = values[given]
            units = np.where(held ^ flip, 0, nbytes // 2) if ignores else np.minimum(held, nbytes).astype(np.int64) // 2
        copy_cells(batch, out_of, into, ("global", "shared"), nbytes // 2, units)
        return _nothing

    return follow


def copy_cells(batch: "Batch", out_of: Array, into: Array, spaces: tuple[str, str], most: int, units: Array) -> None:
    """Copy cells from memory to memory, the first ``units`` of each lane's ``most``; what is behind them is cleared."""
    shape = batch.lanes.shape
    left = np.broadcast_to(units, shape).reshape(-1)
    for k in range(most):
        here = spots(batch, spaces[0], out_of + np.uint64(2 * k), 2, False)
        records, bits = record_of(None, shape), np.zeros(batch.lanes.count, np.uint16)
        for spot in here:
            bits[spot.places] = spot.held(2)
            for whole, some in zip(records, spot.plane.get(spot.index, bits[spot.places]), strict=True):
                whole[spot.places] = some
        records.code[left <= k] = 0
        for spot in spots(batch, spaces[1], into + np.uint64(2 * k), 2, bool(here)):
            spot.plane.put(spot.index, records.at(spot.places), bits[spot.places])
