"""What orders threads of different blocks: fences and flags.

A thread that has passed a fence and then writes a flag *releases* what came before the fence: its own accesses, those
of its block that a barrier had ordered before it, and what it had acquired itself. So do the threads of its block whose
own fence lies before a barrier that the writer has passed (the usual ``__threadfence(); __syncthreads(); if (first)
atomicAdd(...)``). Atomics on one address add up: who sees the last has seen all.

A thread that sees the flag *acquires* that: at once where an atomic or a load marked ``acquire`` reads it, else (a
volatile or relaxed load whose value decides a branch) with its next fence, or for the whole block with the block's next
barrier. A fence of block scope orders nothing here.

What somebody has acquired is an array with a time for each thread of the launch: its accesses before then are ordered.
Such arrays never change; they have numbers, 0 is "nothing".
"""

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.race_order import Clock, Order

MOST_THREADS = 1 << 16  # beyond, one time stands for a whole block
MOST_FLAGS = 1 << 10  # beyond, further addresses count as one flag
MOST_BYTES = 1 << 27  # of arrays of times; beyond, those that nobody holds any more are dropped
_OVERFLOW = 0


@define(eq=False)
class Clocks:
    """``fenced`` is when each thread last passed a fence, ``settled`` that as of its block's last barrier, ``covered``
    the time of the block's last barrier, and ``met`` of the warp's, when it passed that fence. ``held`` is what a
    thread has acquired, ``seen`` what it has seen and not yet acquired, ``known`` what a block has acquired."""

    clock: Clock
    blocks: int
    threads: int
    unit: int = field(init=False)
    fenced: Array = field(init=False)
    settled: Array = field(init=False)
    covered: Array = field(init=False)
    met: Array = field(init=False)
    held: Array = field(init=False)
    seen: Array = field(init=False)
    known: Array = field(init=False)
    table: dict[int, Array] = field(factory=dict)
    numbers: int = 0
    joined: dict[tuple[int, int], int] = field(factory=dict)
    flags: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        count = self.blocks * self.threads
        self.unit = 1 if count <= MOST_THREADS else self.threads
        self.fenced, self.settled, self.covered, self.met = (np.zeros(count, np.uint64) for _ in range(4))
        self.held, self.seen = (np.zeros(count, np.int64) for _ in range(2))
        self.known = np.zeros(self.blocks, np.int64)
        self.table[0] = np.zeros(count // self.unit, np.uint64)

    # What happens ---------------------------------------------------------------------------------------------------

    def fence(self, mine: Array, order: Order, first: int) -> None:
        """The threads ``mine`` (numbers in the launch) pass a fence; ``order`` is that of their batch, whose first
        block is number ``first``."""
        row, thread = mine // self.threads - first, mine % self.threads
        self.fenced[mine] = self.clock.tick()
        self.covered[mine] = order.horizon[row, 0]
        self.met[mine] = order.last_met(row, thread)
        self._acquire(mine)

    def barrier(self, blocks: Array) -> None:
        """Those blocks have passed a barrier."""
        rows = self._rows(blocks)
        self.settled[rows] = self.fenced[rows]
        for block, row in zip(blocks.tolist(), rows, strict=True):
            ids = np.unique(np.concatenate((self.held[row], self.seen[row])))
            if len(ids) > 1 or ids[0]:
                self.known[block] = self._join_all([int(self.known[block]), *ids.tolist()])
                self.held[row] = self.seen[row] = 0

    def meet(self, mine: Array) -> None:
        """These lanes have met others of their warp: what one has acquired holds for all."""
        self.settled[mine] = np.maximum(self.settled[mine], self.fenced[mine])
        if not (self.held[mine].any() or self.seen[mine].any()):
            return
        warps = mine // self.threads * -(-self.threads // WARP) + mine % self.threads // WARP
        for warp in np.unique(warps).tolist():
            lanes = mine[warps == warp]
            ids = np.unique(np.concatenate((self.held[lanes], self.seen[lanes])))
            self.held[lanes], self.seen[lanes] = self._join_all(ids.tolist()), 0

    def exchange(self, mine: Array, addresses: Array) -> None:
        """Atomics of ``mine`` at ``addresses``: each releases, then acquires."""
        for address, lanes in _groups(addresses, mine):
            flag = self._flag(address)
            releasing = lanes[self._releases(lanes)]
            if len(releasing):
                self.flags[flag] = self._join(self.flags.get(flag, 0), self._number(self._released(releasing)))
            if self.flags.get(flag):
                self.held[lanes] = self._join_each(self.held[lanes], self.flags[flag])

    def observe(self, mine: Array, addresses: Array, stamps: Array, at_once: bool) -> None:
        """``mine`` have read flags at ``addresses``, last written as ``stamps`` say (see ``global_races``)."""
        kept = self.held if at_once else self.seen
        if self.flags:
            for address, lanes in _groups(addresses, mine):
                found = self.flags.get(self._flag(address), 0)
                if found:
                    kept[lanes] = self._join_each(kept[lanes], found)
        for stamp, lanes in _groups(stamps, mine):
            writer, time = stamp & 0xFFFF_FFFF, stamp >> 32
            if stamp and self._releases(np.array([writer]))[0]:
                released = np.minimum(self._released(np.array([writer])), np.uint64(time))
                kept[lanes] = self._join_each(kept[lanes], self._number(released))

    def _acquire(self, mine: Array) -> None:
        if self.seen[mine].any():
            for number, lanes in _groups(self.seen[mine], mine):
                self.held[lanes] = self._join_each(self.held[lanes], number)
            self.seen[mine] = 0

    # What is ordered ------------------------------------------------------------------------------------------------

    def before(self, mine: Array, theirs: Array, times: Array) -> Array:
        """Where accesses of ``theirs`` at ``times`` are ordered before what ``mine`` do now."""
        result = np.zeros(len(mine), bool)
        for numbers in (self.known[mine // self.threads], self.held[mine]):
            for number in np.unique(numbers).tolist():
                if number:
                    here = numbers == number
                    result[here] |= times[here] < self.table[number][theirs[here] // self.unit]
        return result

    def _releases(self, mine: Array) -> Array:
        blocks, inverse = np.unique(mine // self.threads, return_inverse=True)
        settled: Array = np.any(self.settled[self._rows(blocks)], axis=1)
        releases: Array = (self.fenced[mine] > 0) | settled[inverse]
        return releases

    def _released(self, mine: Array) -> Array:
        """The times that the threads ``mine`` release together."""
        blocks = np.unique(mine // self.threads)
        base = self._join_all([*np.unique(self.held[mine]).tolist(), *self.known[blocks].tolist()])
        times = self.table[base].copy()
        for block in blocks.tolist():
            lanes = mine[mine // self.threads == block]
            own = np.maximum(self.settled[self._rows(np.array([block]))[0]], self.covered[lanes].max())
            thread = lanes % self.threads
            for warp in np.unique(thread // WARP).tolist():
                part = own[warp * WARP : (warp + 1) * WARP]
                np.maximum(part, self.met[lanes[thread // WARP == warp]].max(), out=part)
            np.maximum.at(own, thread, self.fenced[lanes])
            if self.unit == 1:
                part = times[block * self.threads : (block + 1) * self.threads]
                np.maximum(part, own, out=part)
            else:
                times[block] = max(times[block], own.max())
        return times

    def _rows(self, blocks: Array) -> Array:
        """The threads of each block: ``(blocks, threads)``."""
        rows: Array = blocks[:, None] * self.threads + np.arange(self.threads)
        return rows

    def _flag(self, address: int) -> int:
        return address if address in self.flags or len(self.flags) < MOST_FLAGS else _OVERFLOW

    # Joining --------------------------------------------------------------------------------------------------------

    def _number(self, times: Array) -> int:
        if len(self.table) * times.nbytes > MOST_BYTES:
            self._drop()
        self.numbers += 1
        self.table[self.numbers] = times
        return self.numbers

    def _drop(self) -> None:
        held = np.unique(np.concatenate((self.held, self.seen, self.known, list(self.flags.values()), [0])))
        self.table = {number: self.table[number] for number in held.astype(np.int64).tolist()}
        self.joined.clear()

    def _join(self, one: int, other: int) -> int:
        if not one or not other or one == other:
            return one or other
        key = (one, other) if one < other else (other, one)
        found = self.joined.get(key)
        if found is None:
            times = np.maximum(self.table[one], self.table[other])
            found = next((known for known in key if np.array_equal(times, self.table[known])), 0)
            self.joined[key] = found = found or self._number(times)
        return found

    def _join_all(self, numbers: list[int]) -> int:
        result = 0
        for number in numbers:
            result = self._join(result, number)
        return result

    def _join_each(self, numbers: Array, other: int) -> Array:
        unique, inverse = np.unique(numbers, return_inverse=True)
        joined: Array = np.array([self._join(number, other) for number in unique.tolist()], np.int64)[inverse]
        return joined


def _groups(keys: Array, mine: Array) -> list[tuple[int, Array]]:
    """The threads by key."""
    if len(keys) and (keys == keys[0]).all():
        return [(int(keys[0]), mine)]
    order = np.argsort(keys, kind="stable")
    unique, starts = np.unique(keys[order], return_index=True)
    return list(zip(unique.tolist(), np.split(mine[order], starts[1:]), strict=True))
