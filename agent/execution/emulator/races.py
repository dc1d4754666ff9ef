"""Races on shared memory: two threads of a block touch the same bytes, one writes, and nothing orders the two.

What orders accesses of different threads (PTX ISA, "Memory consistency model", cut down to what synchronises by
itself):

- a barrier of the block (``bar``/``barrier``) orders everything before it against everything after, for the whole
  block, also where it counts only some of the threads (so a race between threads outside such a barrier can be
  missed);
- ``bar.warp.sync`` orders the lanes of its mask. Shuffles and votes order nothing: CUDA promises no memory ordering
  for them, and code that relies on lanes of a warp moving in step is a race here as it is on Volta and later;
- atomics, and loads and stores marked relaxed, acquire or release, do not race among each other, nor with volatile
  ones. They order no *other* accesses here: data handed over by a flag shows as a race.

Two lanes of one instruction that write the same bytes race as well. A race of writes that all leave the same value is
*benign*.

For each cell (4 bytes, or 1 where the kernel has narrower accesses) there are records of the last write, the last read,
and the last read by another warp than that. A record is one integer ``time | site | strength | thread``; time counts
barriers, so what a barrier has ordered is what is older than it. As long as all blocks of the batch do the same to
their shared memory one row of records stands for all of them.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.sites import Site
from agent.execution.emulator.steps_warp import Warps

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

PLAIN, VOLATILE, STRONG = 0, 1, 2
_THREAD = np.uint64(0x3FF)
_TIME = np.uint64(32)
_WARP_SHIFT = np.uint64(5)
_STRENGTH_SHIFT = np.uint64(10)


def strength_of(site: Site) -> int:
    """PLAIN, VOLATILE or STRONG."""
    words = site.instruction.modifiers
    if site.instruction.base in ("atom", "red") or {"relaxed", "acquire", "release"} & set(words):
        return STRONG
    return VOLATILE if "volatile" in words else PLAIN


@define(eq=False)
class Shadow:
    """``races`` and ``initialised`` say which of the two checks are on; ``grain`` is a cell's size in bytes."""

    blocks: int
    threads: int
    nbytes: int
    grain: int
    races: bool
    initialised: bool
    uniform: bool = True
    now: int = 1
    horizon: Array = field(init=False)
    warp_time: Array = field(init=False)
    pair_time: Array | None = None
    written: Array = field(init=False)
    read_last: Array = field(init=False)
    read_other: Array = field(init=False)
    known: Array | None = None

    def __attrs_post_init__(self) -> None:
        self.horizon = np.ones((self.blocks, 1), np.uint64)
        self.warp_time = np.zeros((self.blocks, -(-self.threads // WARP)), np.uint64)
        self._clear(1)
        if self.initialised:
            self.known = np.zeros((1, max(self.nbytes, 1)), bool)

    def _clear(self, rows: int) -> None:
        cells = -(-max(self.nbytes, 1) // self.grain)
        self.written, self.read_last, self.read_other = (np.zeros((rows, cells), np.uint64) for _ in range(3))

    # What orders ----------------------------------------------------------------------------------------------------

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        self.now += 1
        if complete.all():
            self.horizon[:] = self.now
            if not self.uniform:
                self.uniform, self.pair_time = True, None
                self.warp_time[:] = 0
                self._clear(1)
        else:
            self._apart()
            self.horizon[complete] = self.now

    def warp_barrier(self, lanes: Lanes, warps: Warps, present: Array) -> None:
        """The lanes of each warp where ``present`` holds have met."""
        self.now += 1
        if not lanes.all_rows or (warps.rows > 1 and present.size > 1):
            self._apart()
        if present.size == 1:
            self.warp_time[slice(None) if lanes.rows is None else lanes.rows] = self.now
            return
        per_block = self.warp_time.shape[1]
        ids = np.arange(warps.count) if warps.rows else lanes.warp_ids
        if warps.rows == 1 and self.blocks > 1:
            ids = (np.arange(self.blocks)[:, None] * per_block + ids).reshape(-1)
            present = np.tile(np.broadcast_to(present, (warps.count, WARP)), (self.blocks, 1))
        elif warps.rows and lanes.rows is not None:
            ids = (lanes.rows[:, None] * per_block + np.arange(per_block)).reshape(-1)
        if self.pair_time is None:
            self.pair_time = np.zeros((self.blocks * per_block, WARP, WARP), np.uint64)
        met = present[:, :, None] & present[:, None, :]
        times = self.pair_time[ids]
        times[met] = self.now
        self.pair_time[ids] = times

    def _apart(self) -> None:
        """From here on blocks differ: give each its own records."""
        if self.uniform:
            self.uniform = False
            for name in ("written", "read_last", "read_other"):
                setattr(self, name, np.repeat(getattr(self, name), self.blocks, axis=0))

    # Accesses -------------------------------------------------------------------------------------------------------

    def read(self, batch: "Batch", lanes: Lanes, site: Site, offsets: Array, span: int) -> Array | None:
        """Note a read. The answer marks lanes that read bytes nobody has written (None: no such lane)."""
        if self.races:
            for k in range(max(span // self.grain, 1)):
                access = self._access(lanes, site, offsets, k)
                self._check_read(batch, access)
                self._note_read(access)
        if self.known is None:
            return None
        unknown = ~self._known_bytes(lanes, offsets, span)
        return unknown if unknown.any() else None

    def write(self, batch: "Batch", lanes: Lanes, site: Site, offsets: Array, width: int, values: list[Array]) -> None:
        """Note a write of ``values`` side by side; memory still holds what was there before."""
        span = width * len(values)
        if self.races:
            for k in range(max(span // self.grain, 1)):
                self._write_cell(batch, self._access(lanes, site, offsets, k), offsets, width, values)
        if self.known is not None:
            self._make_known(lanes, offsets, span)

    def atomic(self, batch: "Batch", lanes: Lanes, site: Site, offsets: Array, span: int) -> None:
        """Note a read-modify-write."""
        if self.races:
            for k in range(max(span // self.grain, 1)):
                access = self._access(lanes, site, offsets, k)
                self._check_against(batch, access, self.written, "a write")
                self._check_readers(batch, access)
                self.written.reshape(-1)[access.cells] = access.record
        if self.known is not None:
            self._make_known(lanes, offsets, span)

    def _access(self, lanes: Lanes, site: Site, offsets: Array, k: int) -> "_Access":
        cells = (offsets // self.grain if self.grain > 1 else offsets) + k
        if lanes.all_rows and offsets.shape[0] == 1 and self.uniform:
            shape, row, horizon = (1, lanes.shape[1]), np.zeros((1, 1), np.int64), self.horizon[:1]
        else:
            self._apart()
            shape, row = lanes.shape, lanes.block
            horizon = self.horizon[:, 0][row]
            cells = row * self.written.shape[1] + cells
        thread = np.broadcast_to(lanes.thread, shape).astype(np.uint64)
        strength = strength_of(site)
        mark = np.uint64((self.now << 32) | (site.index << 12) | (strength << 10))
        return _Access(
            lanes, site, np.broadcast_to(cells, shape), thread, row, horizon << _TIME, strength, mark | thread
        )

    def _unordered(self, access: "_Access", records: Array) -> Array:
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

    def _met(self, access: "_Access", records: Array) -> Array:
        """Where the record is of the same warp and older than the last meeting of its lane and ours."""
        warp = access.thread >> _WARP_SHIFT
        same: Array = (records & _THREAD) >> _WARP_SHIFT == warp
        if not same.any():
            return same
        place = warp.astype(np.int64)
        met = self.warp_time[access.row, place]
        if self.pair_time is not None:
            mine, theirs = access.thread.astype(np.int64) % WARP, (records & _THREAD).astype(np.int64) % WARP
            met = np.maximum(met, self.pair_time[access.row * self.warp_time.shape[1] + place, mine, theirs])
        return same & (records >> _TIME < met)

    def _check_read(self, batch: "Batch", access: "_Access") -> None:
        self._check_against(batch, access, self.written, "a write")

    def _check_against(self, batch: "Batch", access: "_Access", table: Array, what: str) -> None:
        records = table.reshape(-1).take(access.cells)
        bad = self._unordered(access, records)
        if bad.any():
            _report(batch, access, bad, records, what)

    def _check_readers(self, batch: "Batch", access: "_Access") -> None:
        records = self.read_last.reshape(-1).take(access.cells)
        # the last reader came after the other one: where it is stale, so are both
        if (records >= access.horizon).any():
            self._check_against(batch, access, self.read_last, "a read")
            self._check_against(batch, access, self.read_other, "a read")

    def _note_read(self, access: "_Access") -> None:
        last, record = self.read_last.reshape(-1), access.record
        before = last.take(access.cells)
        fresh = before >= access.horizon
        if fresh.any():
            fresh &= (before ^ record) & _THREAD != 0
            self._note_other(access, fresh, before)
        last[access.cells] = record
        kept = last.take(access.cells)
        lost = kept != record
        if lost.any():
            # several lanes read one cell in this instruction
            self._note_other(access, lost, record, kept)

    def _note_other(self, access: "_Access", chosen: Array, readers: Array, last: Array | None = None) -> None:
        """Keep ``readers`` as the other reader beside the last one; a reader of another warp is not given up for one of
        the same."""
        if not chosen.any():
            return
        other = self.read_other.reshape(-1)
        against = access.record if last is None else last
        near = chosen & ((readers ^ against) >> _WARP_SHIFT & np.uint64(31) == 0)
        if near.any():
            held = other.take(access.cells)
            foreign = (held >= access.horizon) & ((held ^ against) >> _WARP_SHIFT & np.uint64(31) != 0)
            chosen = chosen & ~(near & foreign)
        other[access.cells[chosen]] = readers[chosen]

    def _write_cell(self, batch: "Batch", access: "_Access", offsets: Array, width: int, values: list[Array]) -> None:
        written = self.written.reshape(-1)
        records = written.take(access.cells)
        bad = self._unordered(access, records)
        if bad.any():
            same = _same_as_memory(batch, access.lanes, offsets, width, values)
            for chosen, benign in ((bad & ~same, False), (bad & same, True)):
                if chosen.any():
                    _report(batch, access, chosen, records, "a write", benign)
        self._check_readers(batch, access)
        written[access.cells] = access.record
        kept = written.take(access.cells)
        lost = kept != access.record
        if lost.any() and access.strength < STRONG:
            self._report_collision(batch, access, lost, kept, values)

    def _report_collision(
        self, batch: "Batch", access: "_Access", lost: Array, kept: Array, values: list[Array]
    ) -> None:
        """Lanes of one instruction wrote the same cell: benign where each wrote what stays."""
        lanes = access.lanes
        lost, kept = np.broadcast_to(lost, lanes.shape), np.broadcast_to(kept, lanes.shape)
        winner = np.broadcast_to(lanes.block, lanes.shape) * lanes.threads + (kept & _THREAD).astype(np.int64)
        position = np.searchsorted(lanes.flat, winner.reshape(-1))
        position = np.minimum(position, lanes.count - 1)
        same = np.ones(lanes.count, bool)
        for value in values:
            wide = np.broadcast_to(value, lanes.shape).reshape(-1)
            same &= wide == wide[position]
        equal = same.reshape(lanes.shape)
        for chosen, benign in ((lost & ~equal, False), (lost & equal, True)):
            if chosen.any():
                _report(batch, access, chosen, kept, "a write", benign)

    # Initialised ----------------------------------------------------------------------------------------------------

    def _known_rows(self, lanes: Lanes, offsets: Array, changes: bool) -> Array:
        """Indices into the flattened ``known`` of each access's first byte."""
        assert self.known is not None
        if self.known.shape[0] == 1:
            if not changes or (lanes.all_rows and offsets.shape[0] == 1):
                return offsets
            self.known = np.repeat(self.known, self.blocks, axis=0)
        first: Array = lanes.block * self.known.shape[1] + offsets
        return first

    def _known_bytes(self, lanes: Lanes, offsets: Array, span: int) -> Array:
        first = self._known_rows(lanes, offsets, False)
        assert self.known is not None
        flat = self.known.reshape(-1)
        known: Array = flat.take(first)
        for k in range(1, span):
            known = known & flat.take(first + k)
        return known

    def _make_known(self, lanes: Lanes, offsets: Array, span: int) -> None:
        first = self._known_rows(lanes, offsets, True)
        assert self.known is not None
        flat = self.known.reshape(-1)
        for k in range(span):
            flat[first + k] = True


@define(eq=False)
class _Access:
    """One instruction's access to one cell for each lane: shapes ``lanes.shape``, or one row for all blocks alike."""

    lanes: Lanes
    site: Site
    cells: Array
    thread: Array
    row: Array
    horizon: Array
    strength: int
    record: Array


def _same_as_memory(batch: "Batch", lanes: Lanes, offsets: Array, width: int, values: list[Array]) -> Array:
    same = np.ones((1, 1), bool)
    found = batch.shared.peek(lanes, offsets, width, len(values))
    for value, now in zip(values, found, strict=True):
        same = same & (now == value)
    return same


def _report(batch: "Batch", access: _Access, bad: Array, records: Array, what: str, benign: bool = False) -> None:
    lanes = access.lanes
    bad = np.broadcast_to(bad, lanes.shape)
    first = int(bad.reshape(-1).argmax())
    record = int(np.broadcast_to(records, lanes.shape).reshape(-1)[first])
    row = int(np.broadcast_to(lanes.block, lanes.shape).reshape(-1)[first])
    partner = batch.kernel.sites[record >> 12 & 0xFFFFF]
    thread = min(record & 0x3FF, lanes.threads - 1)
    verb = "reads" if access.site.instruction.base == "ld" else "writes"
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
