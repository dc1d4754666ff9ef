"""The float64 shadow of memory: for each 16 bits a cell, and the bits that it belongs to.

A cell counts only while memory holds the bits that it was stored with. So whatever changes memory without knowing of
the shadow (a copy that has not arrived yet, a fill by the host) puts it out of force, and the value is its own shadow.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from attrs import define, field, frozen

from agent.execution.emulator.addresses import LOCAL, PARAM, SHARED, TAG_BITS, Array, tags_of
from agent.execution.emulator.shadows.cells import ABSENT, LOST, NOTHING, PARTED, UNITS, Cell, Cells

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_KEYS = dict(enumerate(((kind, index) for kind, units in UNITS.items() for index in range(units)), 1))
CODES = {key: code for code, key in _KEYS.items()}
_MARK = len(CODES) + 1  # no number, only marks


class Records(NamedTuple):
    """Cells as memory keeps them, one of each lane: the code of kind and index (0: none), the float64, the marks."""

    code: Array
    value: Array
    flags: Array

    def at(self, places: Array) -> "Records":
        return Records(self.code[places], self.value[places], self.flags[places])

    def where(self, holds: Array, other: "Records") -> "Records":
        """These where the condition holds, else the others."""
        return Records(*(np.where(holds, one, two) for one, two in zip(self, other, strict=True)))


@define(eq=False)
class Plane:
    """Per 16 bits of memory: the record, and the bits it belongs to."""

    units: int
    code: Array = field(init=False)
    value: Array = field(init=False)
    flags: Array = field(init=False)
    bits: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.code, self.flags = np.zeros(self.units, np.uint8), np.zeros(self.units, np.uint8)
        self.value, self.bits = np.zeros(self.units, np.float64), np.zeros(self.units, np.uint16)

    def get(self, index: Array, bits: Array) -> Records:
        """What is in force where memory holds ``bits``."""
        code = self.code[index] * (self.bits[index] == bits)
        return Records(code, self.value[index], self.flags[index] * (code != 0))

    def put(self, index: Array, records: Records, bits: Array) -> None:
        """Of indices that are the same the last one stays, as in memory."""
        self.code[index], self.value[index], self.flags[index] = records
        self.bits[index] = bits


@frozen(eq=False)
class Spot:
    """Where lanes access memory: ``index`` of the first cell in ``plane``, for the lanes at ``places`` (in their flat
    order). ``views`` is the memory itself by width."""

    plane: Plane
    index: Array
    places: Array
    views: Mapping[int, Array]

    def held(self, width: int) -> Array:
        """What memory holds there, as elements of ``width`` bytes."""
        found: Array = self.views[width].reshape(-1).take(self.index // (width // 2))
        return found


def spots(batch: "Batch", space: str, addresses: Array, span: int, make: bool) -> list[Spot]:
    """Where the lanes' accesses of ``span`` bytes go, by plane; planes are made only for what is written (``make``).
    Lanes whose access is out of bounds or odd are left out. ``addresses`` are 64 bits wide."""
    lanes = batch.lanes
    if space == "param":
        return []
    flat = np.broadcast_to(addresses.view(np.int64), lanes.shape).reshape(-1)
    if space in ("shared", "local"):
        return _chip(batch, SHARED if space == "shared" else LOCAL, flat, np.arange(lanes.count), span, make)
    found: list[Spot] = []
    tags = tags_of(flat.view(np.uint64))
    for tag in [int(tags[0])] if (tags == tags[0]).all() else np.unique(tags).tolist():
        places = np.flatnonzero(tags == tag)
        offsets = flat[places] - (tag << TAG_BITS)
        if tag in (SHARED, LOCAL):
            found += _chip(batch, tag, offsets, places, span, make)
        elif tag != PARAM and tag in batch.memory.buffers:
            found += _in_buffer(batch, tag, offsets, places, span, make)
    return found


def _in_buffer(batch: "Batch", tag: int, offsets: Array, places: Array, span: int, make: bool) -> list[Spot]:
    assert batch.twin is not None
    buffer = batch.memory.buffers[tag]
    plane = batch.twin.run.plane(buffer, make)
    kept = _sound(offsets, buffer.stop - span)
    if plane is None or not len(kept):
        return []
    buffer.ensure(offsets[kept].view(np.uint64))
    return [Spot(plane, offsets[kept] >> 1, places[kept], buffer.views)]


def _chip(batch: "Batch", tag: int, offsets: Array, places: Array, span: int, make: bool) -> list[Spot]:
    twin, lanes, shared = batch.twin, batch.lanes, tag == SHARED
    assert twin is not None
    size = batch.shared.size if shared else batch.local.nbytes
    row = batch.shared.views[2].shape[1] if shared else -(-size // 2)
    number = np.broadcast_to(lanes.block, lanes.shape).reshape(-1) if shared else lanes.flat
    plane = twin.chip(tag, row * (batch.shared.blocks if shared else batch.local.lanes) if make else 0)
    kept = _sound(offsets, size - span)
    if plane is None or not len(kept):
        return []
    index = (offsets[kept] >> 1) + number[places[kept]] * row
    return [Spot(plane, index, places[kept], batch.shared.views if shared else {})]


def _sound(offsets: Array, last: int) -> Array:
    return np.flatnonzero((offsets >= 0) & (offsets <= last) & (offsets & 1 == 0))


# Cells and records --------------------------------------------------------------------------------------------------


def record_of(cell: Cell | None, shape: tuple[int, int]) -> Records:
    """A cell as memory keeps it. Where a whole number would have been another one, whoever reads it goes by the
    program's."""
    count = shape[0] * shape[1]
    if cell is None:
        return Records(np.zeros(count, np.uint8), np.zeros(count), np.zeros(count, np.uint8))
    value = np.broadcast_to(cell.value, shape).reshape(-1)
    flags = np.zeros(count, np.uint8) if cell.flags is None else np.broadcast_to(cell.flags, shape).reshape(-1)
    if cell.kind not in UNITS:
        flags = flags | (value != 0).astype(np.uint8) * np.uint8(PARTED)
        return Records(np.where(flags != 0, np.uint8(_MARK), np.uint8(0)), np.zeros(count), flags)
    code = np.where(flags != 0, _MARK, 0)
    return Records(np.where(value.view(np.uint64) == ABSENT, code, CODES[cell.kind, cell.index]), value, flags)


def cell_of(records: Records, shape: tuple[int, int]) -> Cell | None:
    """The records of all lanes as one cell: of kinds that differ the first is kept, the others are lost."""
    code, flags = records.code, records.flags
    if not code.any():
        return None
    numbers = code[(code != 0) & (code != _MARK)]
    first = int(numbers[0]) if len(numbers) else 0
    strays = (code != 0) & (code != _MARK) & (code != first)
    if strays.any():
        flags = np.where(strays, flags | np.uint8(LOST), flags)
    marks = flags.reshape(shape) if flags.any() else None
    if not first:
        return Cell("bits", 0, np.zeros((1, 1), np.uint64), marks)
    kind, index = _KEYS[first]
    return Cell(kind, index, np.where(code == first, records.value, NOTHING).reshape(shape), marks)


def load(found: Sequence[Spot], shape: tuple[int, int], at: int, bits: Sequence[Array]) -> Cells:
    """The cells of ``len(bits)`` neighbouring 16 bits, ``at`` cells behind the spots; ``bits`` are what memory holds
    there, one of each lane in flat order."""
    cells: list[Cell | None] = []
    for k, held in enumerate(bits):
        records = record_of(None, shape)
        for spot in found:
            part = spot.plane.get(spot.index + at + k, held[spot.places])
            if len(spot.places) == len(held):
                records = part
            else:
                for whole, some in zip(records, part, strict=True):
                    whole[spot.places] = some
        cells.append(_same_number(cells[-1] if cells else None, cell_of(records, shape)))
    return tuple(cells)


def _same_number(before: Cell | None, cell: Cell | None) -> Cell | None:
    """The parts of one number share one array, by which they are known to belong together."""
    if before is None or cell is None or cell.kind != before.kind or cell.index != before.index + 1:
        return cell
    if not np.array_equal(before.value.view(np.uint64), cell.value.view(np.uint64)):
        return cell
    return Cell(cell.kind, cell.index, before.value, cell.flags)


def store(found: Sequence[Spot], shape: tuple[int, int], at: int, cells: Cells, bits: Sequence[Array]) -> None:
    """Lay down cells beside the ``bits`` that memory gets; of lanes that collide the last one stays."""
    for k, (cell, held) in enumerate(zip(cells, bits, strict=True)):
        records = record_of(cell, shape)
        for spot in found:
            spot.plane.put(spot.index + at + k, records.at(spot.places), held[spot.places])


def halves(value: Array, shape: tuple[int, int], width: int) -> list[Array]:
    """The lower ``width`` bytes of a register as 16 bits each, flat over the lanes."""
    flat = np.broadcast_to(value, shape).reshape(-1)
    return [(flat >> flat.dtype.type(16 * k)).astype(np.uint16) for k in range(width // 2)]
