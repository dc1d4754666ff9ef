"""Races on shared memory: two threads of a block touch the same bytes, one writes, and nothing orders the two.

What orders accesses of different threads (PTX ISA, "Memory consistency model", cut down to what synchronises by
itself):

- a barrier of the block (``bar``/``barrier``) orders everything before it against everything after; where it counts
  only some of the threads, those who wait come after what those did who arrived;
- ``bar.warp.sync`` orders the lanes of its mask. Shuffles and votes order nothing: CUDA promises no memory ordering for
  them, and code that relies on lanes of a warp moving in step is a race here as it is on Volta and later;
- atomics, and loads and stores marked relaxed, acquire or release, do not race among each other, nor with volatile
  ones. They order no *other* accesses here: data handed over by a flag shows as a race.

Two lanes of one instruction that write the same bytes race as well. A race of writes that all leave the same value is
*benign*.

Accesses are first only listed. As long as no two of them can meet (their address ranges are disjoint, or both read)
there is nothing to look at, and a barrier of all blocks empties the list; well synchronised code never pays for
records.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.known import Known
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.patterns import Pattern
from agent.execution.emulator.races.records import STRONG, Access, Records, report, winners
from agent.execution.emulator.steps.warp import Warps

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

READ, WRITE, ATOMIC = 0, 1, 2
MOST_LISTED = 512


@define(eq=False)
class Shadow:
    """``records`` is None where races are not asked for, ``known`` where unwritten bytes are not."""

    records: Records | None
    known: Known | None
    listed: dict[tuple[int, int], tuple[Pattern, int]] = field(factory=dict)
    ranges: list[tuple[int, int, int]] = field(factory=list)
    exact: bool = False

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        if self.records is None:
            return
        if complete.all():
            self.listed.clear()
            self.ranges.clear()
            self.exact = False
        else:
            self._settle()
        self.records.barrier(complete)

    def warp_barrier(self, lanes: Lanes, warps: Warps, present: Array) -> None:
        """The lanes of each warp where ``present`` holds have met."""
        if self.records is not None:
            self.records.warp_barrier(lanes, warps, present)

    def blocks_part(self) -> None:
        """From here on blocks go ways of their own: what orders the threads of one says nothing of another."""
        if self.records is not None:
            self._settle()
            self.records.split()

    def read(self, batch: "Batch", pattern: Pattern) -> Array | None:
        """Note a read. The answer marks lanes that read bytes nobody has written (None: no such lane)."""
        if self.records is not None and not self._defer(self.records, pattern, READ):
            for access in self.records.accesses(pattern, self.records.now):
                self.records.check_writes(batch, access)
                self.records.note_read(access)
        return self.known.missing(pattern) if self.known is not None else None

    def write(self, batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> None:
        """Note a write of ``values`` side by side; memory still holds what was there before."""
        self.meet_write(batch, pattern, width, values)
        if self.known is not None:
            self.known.mark(pattern)

    def meet_write(self, batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> None:
        """The same of a write that is only under way: the bytes are not there yet."""
        if self.records is not None and not self._defer(self.records, pattern, WRITE):
            for access in self.records.accesses(pattern, self.records.now):
                self._write(self.records, batch, access, pattern, width, values)

    def atomic(self, batch: "Batch", pattern: Pattern) -> None:
        """Note a read-modify-write."""
        if self.records is not None and not self._defer(self.records, pattern, ATOMIC):
            for access in self.records.accesses(pattern, self.records.now):
                self.records.check_writes(batch, access)
                self.records.check_reads(batch, access)
                self.records.note_write(access)
        if self.known is not None:
            self.known.mark(pattern)

    def _defer(self, records: Records, pattern: Pattern, kind: int) -> bool:
        """List the access where it cannot meet any that is listed; else settle the list and answer False."""
        if self.exact:
            return False
        key = (id(pattern), records.now)
        if kind != WRITE and key in self.listed:
            return True
        alone = kind != WRITE or pattern.apart
        if not alone or len(self.listed) >= MOST_LISTED or self._meets(pattern, kind):
            self._settle()
            return False
        self.listed[key] = (pattern, kind)
        self.ranges.append((pattern.low, pattern.high, kind))
        return True

    def _meets(self, pattern: Pattern, kind: int) -> bool:
        low, high = pattern.low, pattern.high
        return any(
            low < its_high and its_low < high and (WRITE in (kind, its) or kind != its)
            for its_low, its_high, its in self.ranges
        )

    def _settle(self) -> None:
        """Enter what is listed into the records; none of it races among itself."""
        if self.exact or self.records is None:
            return
        self.exact = True
        for (_, time), (pattern, kind) in self.listed.items():
            for access in self.records.accesses(pattern, time):
                if kind == READ:
                    self.records.note_read(access)
                else:
                    self.records.note_write(access)
        self.listed.clear()
        self.ranges.clear()

    def _write(
        self,
        records: Records,
        batch: "Batch",
        access: Access,
        pattern: Pattern,
        width: int,
        values: list[Array],
    ) -> None:
        before = records.written.reshape(-1).take(access.cells)
        bad = records.unordered(access, before)
        if bad.any():
            same = _same_as_memory(batch, pattern, width, values)
            _report_both(batch, access, bad, same, before)
        records.check_reads(batch, access)
        kept = records.note_write(access)
        lost = kept != access.record
        if lost.any() and access.strength < STRONG:
            # lanes of this very instruction wrote the same cell: benign where each wrote what stays
            position = winners(access, kept)
            equal = np.ones(access.lanes.count, bool)
            for value in values:
                wide = np.broadcast_to(value, access.lanes.shape).reshape(-1)
                equal &= wide == wide[position]
            _report_both(batch, access, lost, equal.reshape(access.lanes.shape), kept)


def _report_both(batch: "Batch", access: Access, bad: Array, same: Array, records: Array) -> None:
    for chosen, benign in ((bad & ~same, False), (bad & same, True)):
        if chosen.any():
            report(batch, access, chosen, records, "a write", benign)


def _same_as_memory(batch: "Batch", pattern: Pattern, width: int, values: list[Array]) -> Array:
    same = np.ones((1, 1), bool)
    for value, now in zip(values, batch.shared.peek(pattern, width, len(values)), strict=True):
        same = same & (now == value)
    return same
