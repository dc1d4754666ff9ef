"""What orders the threads of one block, as times: barriers of the block, and meetings of lanes of a warp.

Time is one number for a whole launch. An access of one thread comes before an access of another of its block where a
barrier, or a ``bar.warp.sync`` that both took part in, lies between the two.
"""

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.races.phases import Phases
from agent.execution.emulator.steps.warp import Warps


@define(eq=False)
class Clock:
    """The time of a launch: it goes on at each barrier and fence."""

    now: int = 1

    def tick(self) -> int:
        self.now += 1
        return self.now


def _named(warps: Warps) -> Array:
    """Which lanes each lane names in its mask, the first operand: lanes of one warp may bring different masks."""
    masks = warps.tables[0]
    named: Array = (masks[:, :, None] >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1) != 0
    return named


@define(eq=False)
class Order:
    """The order within the blocks of one batch.

    ``horizon`` is the time of each block's last barrier, ``warp_time`` that of each warp's, ``pair_time`` of two lanes
    (None as long as warps met whole). Clusters are of ``team`` blocks each.
    """

    blocks: int
    threads: int
    clock: Clock
    team: int = 1
    horizon: Array = field(init=False)
    warp_time: Array = field(init=False)
    pair_time: Array | None = None
    phases: Phases = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.horizon = np.ones((self.blocks, 1), np.uint64)
        self.warp_time = np.zeros((self.blocks, -(-self.threads // WARP)), np.uint64)
        self.phases = Phases(self.blocks, self.threads, self.team)

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        self.horizon[complete] = self.clock.tick()
        if self.phases.used:
            self.phases.barrier(complete)
        if complete.all():
            self.pair_time = None

    def warp_barrier(self, lanes: Lanes, warps: Warps, present: Array) -> None:
        """The lanes of each warp where ``present`` holds have met."""
        now = self.clock.tick()
        if self.phases.used:
            self.phases.meet(lanes.flat if present.all() else lanes.flat[warps.back(present).reshape(-1)])
        if present.size == 1:
            self.warp_time[slice(None) if lanes.rows is None else lanes.rows] = now
            return
        per_block = self.warp_time.shape[1]
        ids = np.arange(warps.count) if warps.rows else lanes.warp_ids
        met = np.broadcast_to(present[:, :, None] & present[:, None, :] & _named(warps), (warps.count, WARP, WARP))
        if warps.rows == 1 and self.blocks > 1:
            rows = np.arange(self.blocks) if lanes.rows is None else lanes.rows
            ids = (rows[:, None] * per_block + ids).reshape(-1)
            met = np.tile(met, (len(rows), 1, 1))
        elif warps.rows and lanes.rows is not None:
            ids = (lanes.rows[:, None] * per_block + np.arange(per_block)).reshape(-1)
        if self.pair_time is None:
            self.pair_time = np.zeros((self.blocks * per_block, WARP, WARP), np.uint64)
        times = self.pair_time[ids]
        times[met] = now
        self.pair_time[ids] = times

    def met(self, row: Array, mine: Array, theirs: Array) -> Array:
        """When two threads of a block (numbers in it) last met: as lanes of one warp, or by way of an ``mbarrier``; 0
        where they never did. Shapes broadcast."""
        warp = mine // WARP
        times = self.warp_time[row, warp]
        if self.pair_time is not None:
            pairs = self.pair_time[row * self.warp_time.shape[1] + warp, mine % WARP, theirs % WARP]
            times = np.maximum(times, pairs)
        near = np.where(theirs // WARP == warp, times, np.uint64(0))
        return np.maximum(near, self.phases.since(row, mine, theirs)) if self.phases.used else near

    def since(self, mine: Array, theirs: Array) -> Array:
        """Before when accesses of the lanes ``theirs`` of the batch are ordered before what ``mine`` do now; 0 for
        those of another cluster. Both are flat."""
        row, other = mine // self.threads, theirs // self.threads
        times = np.zeros(mine.shape, np.uint64)
        near = np.flatnonzero(row == other)
        if len(near):
            block = row[near]
            met = self.met(block, mine[near] % self.threads, theirs[near] % self.threads)
            times[near] = np.maximum(self.horizon[block, 0], met)
        far = np.flatnonzero((row != other) & (row // self.team == other // self.team))
        if len(far) and self.team > 1:
            times[far] = self.phases.since_lanes(mine[far], theirs[far])
        return times

    def met_by(self, row: int, warp: int, lanes: Array) -> Array:
        """When each lane of a warp of block ``row`` last met one of ``lanes``: ``(32,)``."""
        times: Array = np.full(WARP, self.warp_time[row, warp])
        if self.pair_time is not None:
            times = np.maximum(times, self.pair_time[row * self.warp_time.shape[1] + warp, lanes].max(axis=0))
        return times

    def last_met(self, row: Array, thread: Array) -> Array:
        """When each thread last met any lane of its warp."""
        warp = thread // WARP
        times: Array = self.warp_time[row, warp]
        if self.pair_time is not None:
            times = np.maximum(times, self.pair_time[row * self.warp_time.shape[1] + warp, thread % WARP].max(axis=-1))
        return times
