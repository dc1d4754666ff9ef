"""Records of who touched which cell of shared memory last, and when: what races are found by.

For each cell (4 bytes, or 1 where the kernel has narrower accesses) there are records of the last write, the last read,
and a read before it by another thread (of another warp where there is one). A record is one integer ``time | site |
strength | thread``; time counts barriers, so what a barrier has ordered is what is older than it. As long as all
blocks of the batch do the same to their shared memory one row of records stands for all of them.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.memory_use import loads, synchronises
from agent.execution.emulator.patterns import Pattern
from agent.execution.emulator.races.order import Order
from agent.execution.emulator.sites import Site
from agent.execution.emulator.steps.warp import Warps

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

PLAIN, VOLATILE, STRONG = 0, 1, 2
_THREAD = np.uint64(0x3FF)
_TIME = np.uint64(32)
_WARP_SHIFT = np.uint64(5)
_STRENGTH_SHIFT = np.uint64(10)
_TABLES = ("written", "read_last", "read_other")


def strength_of(site: Site) -> int:
    """PLAIN, VOLATILE or STRONG."""
    words = site.instruction.modifiers
    if synchronises(site.instruction) or {"relaxed", "acquire", "release"} & set(words):
        return STRONG
    return VOLATILE if "volatile" in words else PLAIN


@define(eq=False)
class Access:
    """One instruction's access to one cell for each lane: shapes ``lanes.shape``, or one row for all blocks alike."""

    lanes: Lanes
    site: Site
    cells: Array
    thread: Array
    row: Array
    horizon: Array
    strength: int
    record: Array


@define(eq=False)
class Records:
    """Of the blocks of one batch, whose ``order`` says what is older than what."""

    order: Order
    nbytes: int
    grain: int
    uniform: bool = True
    written: Array = field(init=False)
    read_last: Array = field(init=False)
    read_other: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._clear()

    @property
    def now(self) -> int:
        return self.order.clock.now

    def _clear(self) -> None:
        cells = -(-max(self.nbytes, 1) // self.grain)
        for name in _TABLES:
            setattr(self, name, np.zeros((1, cells), np.uint64))

    def split(self) -> None:
        """From here on blocks differ: give each its own records."""
        if self.uniform:
            self.uniform = False
            for name in _TABLES:
                setattr(self, name, np.repeat(getattr(self, name), self.order.blocks, axis=0))

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        if not complete.all():
            self.split()
        elif not self.uniform:
            self.uniform = True
            self._clear()

    def warp_barrier(self, lanes: Lanes, warps: Warps, present: Array) -> None:
        """The lanes of each warp where ``present`` holds have met."""
        if not lanes.all_rows or (warps.rows > 1 and present.size > 1):
            self.split()

    # Accesses -------------------------------------------------------------------------------------------------------

    def accesses(self, pattern: Pattern, time: int) -> list[Access]:
        """The pattern cell by cell, as of ``time``."""
        return [self._access(pattern, k, time) for k in range(max(pattern.span // self.grain, 1))]

    def _access(self, pattern: Pattern, k: int, time: int) -> Access:
        lanes, site = pattern.lanes, pattern.site
        if pattern.alike and self.uniform:
            shape, row, horizon = (1, lanes.shape[1]), np.zeros((1, 1), np.int64), self.order.horizon[:1]
            cells = pattern.offsets // self.grain + k
        else:
            self.split()
            shape, row, horizon = lanes.shape, lanes.block, self.order.horizon[:, 0][lanes.block]
            cells = row * self.written.shape[1] + (pattern.offsets // self.grain + k)
        thread = np.broadcast_to(lanes.thread, shape).astype(np.uint64)
        strength = strength_of(site)
        record = np.uint64((time << 32) | (site.index << 12) | (strength << 10)) | thread
        return Access(lanes, site, np.broadcast_to(cells, shape), thread, row, horizon << _TIME, strength, record)

    def check_writes(self, batch: "Batch", access: Access) -> None:
        """Report writes by others that nothing orders before this access."""
        self._check(batch, access, self.written, "a write")

    def check_reads(self, batch: "Batch", access: Access) -> None:
        """Report reads by others that nothing orders before this access."""
        records = self.read_last.reshape(-1).take(access.cells)
        # the last reader came after the other one: where it is stale, so are both
        if (records >= access.horizon).any():
            self._check(batch, access, self.read_last, "a read")
            self._check(batch, access, self.read_other, "a read")

    def _check(self, batch: "Batch", access: Access, table: Array, what: str) -> None:
        records = table.reshape(-1).take(access.cells)
        bad = self.unordered(access, records)
        if bad.any():
            report(batch, access, bad, records, what)

    def unordered(self, access: Access, records: Array) -> Array:
        """Where ``records`` are of other threads and nothing orders them before this access."""
        fresh = records >= access.horizon
        if not fresh.any():
            return fresh
        fresh &= (records & _THREAD) != access.thread
        if access.strength:
            fresh &= (records >> _STRENGTH_SHIFT & np.uint64(3)) < np.uint64(3 - access.strength)
        if fresh.any():
            fresh &= ~self._met(access, records)
        return fresh

    def _met(self, access: Access, records: Array) -> Array:
        """Where the record is of the same warp and older than the last meeting of its lane and ours."""
        mine, theirs = access.thread.astype(np.int64), (records & _THREAD).astype(np.int64)
        met: Array = records >> _TIME < self.order.met(access.row, mine, theirs)
        return met

    def note_read(self, access: Access) -> None:
        last, record = self.read_last.reshape(-1), access.record
        before = last.take(access.cells)
        fresh = before >= access.horizon
        if fresh.any():
            fresh &= (before ^ record) & _THREAD != 0
            self._note_other(access, fresh, before, record)
        last[access.cells] = record
        kept = last.take(access.cells)
        lost = kept != record
        if lost.any():
            # several lanes read one cell in this instruction
            self._note_other(access, lost, record, kept)

    def _note_other(self, access: Access, chosen: Array, readers: Array, last: Array) -> None:
        """Keep ``readers`` as the other reader beside the ``last`` one; a reader of another warp is not given up for
        one of the same."""
        if not chosen.any():
            return
        other = self.read_other.reshape(-1)
        near = chosen & ((readers ^ last) >> _WARP_SHIFT & np.uint64(31) == 0)
        if near.any():
            held = other.take(access.cells)
            foreign = (held >= access.horizon) & ((held ^ last) >> _WARP_SHIFT & np.uint64(31) != 0)
            chosen = chosen & ~(near & foreign)
        other[access.cells[chosen]] = readers[chosen]

    def note_write(self, access: Access) -> Array:
        """Note it; the answer has the record that is kept for each lane's cell: another lane's where lanes collide."""
        written = self.written.reshape(-1)
        written[access.cells] = access.record
        return written.take(access.cells)


def report(batch: "Batch", access: Access, bad: Array, records: Array, what: str, benign: bool = False) -> None:
    """Record a race of the lanes where ``bad`` holds with the party in ``records``."""
    lanes = access.lanes
    bad = np.broadcast_to(bad, lanes.shape)
    first = int(bad.reshape(-1).argmax())
    record = int(np.broadcast_to(records, lanes.shape).reshape(-1)[first])
    row = int(np.broadcast_to(lanes.block, lanes.shape).reshape(-1)[first])
    partner = batch.kernel.sites[record >> 12 & 0xFFFFF]
    thread = min(record & 0x3FF, lanes.threads - 1)
    verb = "reads" if loads(access.site.instruction) else "writes"
    value = ", with the same value" if benign else ""
    batch.fault(
        "shared-memory race",
        lanes,
        access.site,
        bad,
        lambda lane: f"{verb} shared memory that {what} at line {partner.line} touches, with no barrier between{value}",
        other=(row * lanes.threads + thread, partner),
        benign=benign,
    )


def winners(access: Access, kept: Array) -> Array:
    """The position in ``lanes`` (in lane order) of the lane whose record was kept, for each lane."""
    lanes = access.lanes
    thread = np.broadcast_to((kept & _THREAD).astype(np.int64), lanes.shape)
    lane = (np.broadcast_to(lanes.block, lanes.shape) * lanes.threads + thread).reshape(-1)
    return np.minimum(np.searchsorted(lanes.flat, lane), lanes.count - 1)
