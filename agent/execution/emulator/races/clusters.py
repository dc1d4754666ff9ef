"""Races on the shared memory of blocks that form clusters: any thread of the cluster may touch it.

As :mod:`races`, but for records that say which lane of the batch it was: the last write to a cell of any block, the
last read, and a read before that by another thread (of another block where there is one). What orders threads of
different blocks is the barrier of their cluster and what arrives at an ``mbarrier`` (``Order.since``).
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.known import Known
from agent.execution.emulator.memory_use import loads
from agent.execution.emulator.patterns import Pattern
from agent.execution.emulator.races.order import Order
from agent.execution.emulator.races.records import STRONG, strength_of
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_TIME, _LANE = np.uint64(32), np.uint64(0xFFFF_FFFF)
_STRENGTH_BITS = 2


@define(eq=False)
class _Table:
    """By cell: ``time | lane`` (0: nobody yet) and ``site | strength``."""

    stamps: Array
    marks: Array

    @classmethod
    def of(cls, cells: int) -> "_Table":
        return cls(np.zeros(cells, np.uint64), np.zeros(cells, np.int64))

    def put(self, cells: Array, stamps: Array, marks: Array) -> None:
        self.stamps[cells] = stamps
        self.marks[cells] = marks


@define(eq=False)
class _Access:
    """To one cell for each lane, in lane order."""

    pattern: Pattern
    cells: Array
    stamps: Array
    mark: int
    strength: int


@define(eq=False)
class ClusterRecords:
    """Of ``blocks`` blocks with ``nbytes`` of shared memory each, in cells of ``grain`` bytes."""

    order: Order
    blocks: int
    nbytes: int
    grain: int
    written: _Table = field(init=False)
    last: _Table = field(init=False)
    other: _Table = field(init=False)

    def __attrs_post_init__(self) -> None:
        cells = self.blocks * self.row
        self.written, self.last, self.other = (_Table.of(cells) for _ in range(3))

    @property
    def row(self) -> int:
        """Cells of a block."""
        return -(-max(self.nbytes, 1) // self.grain)

    def accesses(self, pattern: Pattern) -> list[_Access]:
        lanes, site, grain = pattern.lanes, pattern.site, self.grain
        first = np.broadcast_to(pattern.row * self.row + pattern.offsets // grain, lanes.shape).reshape(-1)
        stamps = lanes.flat.astype(np.uint64) | np.uint64(self.order.clock.now << 32)
        strength = strength_of(site)
        mark = site.index << _STRENGTH_BITS | strength
        count = max(pattern.span // grain, 1)
        return [_Access(pattern, first + k, stamps, mark, strength) for k in range(count)]

    def check(self, batch: "Batch", access: _Access, table: _Table, what: str, same: Array | None = None) -> None:
        """Report what races with the records of ``table``; harmless where ``same``."""
        stamps, marks = table.stamps.take(access.cells), table.marks.take(access.cells)
        mine, theirs = access.pattern.lanes.flat, (stamps & _LANE).astype(np.int64)
        bad = (stamps != 0) & (mine != theirs) & ((marks & 3) + access.strength <= STRONG)
        found = np.flatnonzero(bad)
        if not len(found):
            return
        late = stamps[found] >> _TIME >= self.order.since(mine[found], theirs[found])
        bad[found] = late
        for number in np.unique(marks[bad] >> _STRENGTH_BITS).tolist():
            here = bad & (marks >> _STRENGTH_BITS == number)
            for benign, chosen in ((False, here if same is None else here & ~same), (True, same)):
                if chosen is not None and (chosen := chosen & here).any():
                    _report(batch, access, chosen, theirs, batch.kernel.sites[number], what, benign)

    def note_read(self, access: _Access) -> None:
        before, marks = self.last.stamps.take(access.cells), self.last.marks.take(access.cells)
        foreign = (before != 0) & ((before ^ access.stamps) & _LANE != 0)
        if foreign.any():
            # a reader of another block than the new one's is not given up for one of the same
            held = self.other.stamps.take(access.cells)
            threads = np.uint64(access.pattern.lanes.threads)
            mine, theirs, kept = ((one & _LANE) // threads for one in (access.stamps, before, held))
            foreign &= (held == 0) | (theirs != mine) | (kept == mine)
            self.other.put(access.cells[foreign], before[foreign], marks[foreign])
        self.last.put(access.cells, access.stamps, np.full(len(access.cells), access.mark))
        lost = self.last.stamps.take(access.cells) != access.stamps
        if lost.any():
            cells = access.cells[lost][::-1]
            self.other.put(cells, access.stamps[lost][::-1], np.full(len(cells), access.mark))

    def note_write(self, access: _Access) -> Array:
        """The answer has, for each lane, the stamp that is kept for its cell."""
        self.written.put(access.cells, access.stamps, np.full(len(access.cells), access.mark))
        return self.written.stamps.take(access.cells)


@define(eq=False)
class ClusterShadow:
    """What ``Shadow`` is, of a batch of clusters."""

    records: ClusterRecords | None
    known: Known | None

    def barrier(self, complete: Array) -> None:
        """What it orders is known to the order itself."""

    def warp_barrier(self, *_: object) -> None:
        """The same."""

    def blocks_part(self) -> None:
        """Each block has records of its own."""

    def read(self, batch: "Batch", pattern: Pattern) -> Array | None:
        """Note a read. The answer marks lanes that read bytes nobody has written (None: no such lane)."""
        if self.records is not None:
            for access in self.records.accesses(pattern):
                self.records.check(batch, access, self.records.written, "a write")
                self.records.note_read(access)
        return self.known.missing(pattern) if self.known is not None else None

    def write(self, batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> None:
        """Note a write of ``values`` side by side; memory still holds what was there before."""
        self.meet_write(batch, pattern, width, values)
        if self.known is not None:
            self.known.mark(pattern)

    def meet_write(self, batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> None:
        """The same of a write that is only under way: the bytes are not there yet."""
        if self.records is not None:
            flat = [np.broadcast_to(value, pattern.lanes.shape).reshape(-1) for value in values]
            now = batch.shared.peek(pattern, width, len(values))
            for k, access in enumerate(self.records.accesses(pattern)):
                place = min(k * self.records.grain // width, len(values) - 1)
                old = np.broadcast_to(now[place], pattern.lanes.shape).reshape(-1)
                self._write(self.records, batch, access, flat[place], old == flat[place])

    def _write(self, records: ClusterRecords, batch: "Batch", access: _Access, value: Array, same: Array) -> None:
        records.check(batch, access, records.written, "a write", same)
        records.check(batch, access, records.last, "a read")
        records.check(batch, access, records.other, "a read")
        kept = records.note_write(access)
        lost = kept != access.stamps
        if lost.any() and access.strength < STRONG:
            # lanes of this very instruction wrote the same cell: benign where each wrote what stays
            theirs = (kept & _LANE).astype(np.int64)
            lanes = access.pattern.lanes
            equal = value == value[np.minimum(np.searchsorted(lanes.flat, theirs), lanes.count - 1)]
            for benign, chosen in ((False, lost & ~equal), (True, lost & equal)):
                if chosen.any():
                    _report(batch, access, chosen, theirs, access.pattern.site, "a write", benign)

    def atomic(self, batch: "Batch", pattern: Pattern) -> None:
        """Note a read-modify-write."""
        if self.records is not None:
            for access in self.records.accesses(pattern):
                for table, what in (
                    (self.records.written, "a write"), (self.records.last, "a read"), (self.records.other, "a read"),
                ):  # fmt: skip
                    self.records.check(batch, access, table, what)
                self.records.note_write(access)
        if self.known is not None:
            self.known.mark(pattern)


def _report(
    batch: "Batch", access: _Access, chosen: Array, theirs: Array, partner: Site, what: str, benign: bool
) -> None:
    lanes, site = access.pattern.lanes, access.pattern.site
    first = int(chosen.argmax())
    verb = "reads" if loads(site.instruction) else "writes"
    row = int(np.broadcast_to(access.pattern.row, lanes.shape).reshape(-1)[first])
    own = row == int(lanes.flat[first]) // lanes.threads
    whose = "" if own else f" of block {batch.where(row * lanes.threads, site).block}"
    value = ", with the same value" if benign else ""
    words = f"{verb} shared memory{whose} that {what} at line {partner.line} touches, with no barrier between{value}"
    other = (int(theirs[first]), partner)
    batch.fault("shared-memory race", lanes, site, chosen, lambda lane: words, other=other, benign=benign)
