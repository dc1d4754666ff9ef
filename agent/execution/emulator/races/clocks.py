"""What orders threads by way of flags: fences, and who sees what was written after them.

A thread that has passed a fence and then writes a flag *releases* what came before the fence: its own accesses, those
of its block that a barrier had ordered before it, and what it had acquired itself. So do the threads of its block whose
own fence lies before a barrier that the writer has passed (the usual ``__threadfence(); __syncthreads(); if (first)
atomicAdd(...)``). Atomics on one address add up: who sees the last has seen all. So does what a store to it released,
from the first atomic that finds it there: a lock may be opened by a store.

A thread that sees the flag *acquires* that: at once where an atomic or a load marked ``acquire`` reads it, else (a
volatile or relaxed load whose value decides a branch) with its next fence, or for the whole block with the block's next
barrier. Who takes a lock by a compare-and-swap has to pass a fence or a barrier too; what only that lacks is a class of
its own (``hoped``).

A fence or an atomic of block scope does all that for threads of its own block alone.

What somebody has acquired is an array with a time for each thread of the launch: its accesses before then are ordered.
Such arrays never change; they have numbers, 0 is "nothing".
"""

from collections.abc import Iterator

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.races.fences import Fences
from agent.execution.emulator.races.order import Clock, Order

MOST_THREADS = 1 << 16  # beyond, one time stands for a whole block
MOST_FLAGS = 1 << 10  # beyond, further addresses count as one flag
MOST_BYTES = 1 << 27  # of arrays of times; beyond, those that nobody holds any more are dropped
_OVERFLOW = 0
_ALL = -1


@define(eq=False)
class Clocks:
    """``narrow``: the kernel has fences or atomics of block scope. ``wide`` are the fences that count for all, ``near``
    all of them. ``held`` is what a thread has acquired, ``seen`` what it has seen and not yet acquired (``close``: what
    threads of its own block have released), ``hoped`` what it took a lock for, ``known`` what a block has acquired.
    ``flags`` by address and the block that they are for."""

    clock: Clock
    blocks: int
    threads: int
    narrow: bool = False
    unit: int = field(init=False)
    wide: Fences = field(init=False)
    near: Fences = field(init=False)
    held: Array = field(init=False)
    seen: Array = field(init=False)
    close: Array = field(init=False)
    hoped: Array = field(init=False)
    known: Array = field(init=False)
    table: dict[int, Array] = field(factory=dict)
    numbers: int = 0
    joined: dict[tuple[int, int], int] = field(factory=dict)
    flags: dict[tuple[int, int], int] = field(factory=dict)
    addresses: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        count = self.blocks * self.threads
        self.unit = 1 if count <= MOST_THREADS else self.threads
        self.wide = Fences(self.blocks, self.threads)
        self.near = Fences(self.blocks, self.threads) if self.narrow else self.wide
        self.held, self.seen, self.close, self.hoped = (np.zeros(count, np.int64) for _ in range(4))
        self.known = np.zeros(self.blocks, np.int64)
        self.table[0] = np.zeros(count // self.unit, np.uint64)

    # What happens ---------------------------------------------------------------------------------------------------

    def fence(self, mine: Array, order: Order, first: int, near: bool = False) -> None:
        """The threads ``mine`` (numbers in the launch) pass a fence, of block scope where ``near``; ``order`` is that
        of their batch, whose first block is number ``first``."""
        now = self.clock.tick()
        if self.narrow:
            self.near.fence(mine, now, order, first)
            self._acquire(mine, self.close)
        if not near:
            self.wide.fence(mine, now, order, first)
            self._acquire(mine, self.seen)

    def barrier(self, blocks: Array) -> None:
        """Those blocks have passed a barrier."""
        rows = self.wide.rows(blocks)
        self.wide.barrier(rows)
        if self.narrow:
            self.near.barrier(rows)
        for block, row in zip(blocks.tolist(), rows, strict=True):
            self._tidy()
            ids = self._gathered(row)
            if len(ids) > 1 or ids[0]:
                self.known[block] = self._join_all([int(self.known[block]), *ids.tolist()])
                self.held[row] = self.seen[row] = self.close[row] = 0

    def meet(self, mine: Array) -> None:
        """These lanes have met others of their warp: what one has acquired holds for all."""
        self.wide.meet(mine)
        if self.narrow:
            self.near.meet(mine)
        if len(ids := self._gathered(mine)) == 1 and not ids[0]:
            return
        warps = mine // self.threads * -(-self.threads // WARP) + mine % self.threads // WARP
        for warp in np.unique(warps).tolist():
            self._tidy()
            lanes = mine[warps == warp]
            self.held[lanes] = self._join_all(self._gathered(lanes).tolist())
            self.seen[lanes] = self.close[lanes] = 0

    def _gathered(self, mine: Array) -> Array:
        """The numbers of all that these have acquired or seen."""
        return np.unique(np.concatenate((self.held[mine], self.seen[mine], self.close[mine])))

    def exchange(self, mine: Array, addresses: Array, near: bool = False, lock: bool = False) -> None:
        """Atomics of ``mine`` at ``addresses``, of block scope where ``near``: each releases, then acquires. ``lock``:
        it acquires only with the next fence."""
        for address, lanes in self._each(addresses, mine):
            flag = self._flag(address)
            if not near:
                self._raise((flag, _ALL), lanes, self.wide)
                self._take((flag, _ALL), lanes, self.seen, lock)
            if self.narrow:
                for block, here in self._each(lanes // self.threads, lanes):
                    self._raise((flag, block), here, self.near)
                    self._take((flag, block), here, self.close, lock)

    def find(self, addresses: Array, stamps: Array, near: bool) -> None:
        """Atomics, of block scope where ``near``, find at ``addresses`` what stores left there, as ``stamps`` say (0:
        an atomic did): what those released counts as raised, for these atomics and all that come after them."""
        stored = np.flatnonzero(stamps)
        for address, stamp in set(zip(addresses[stored].tolist(), stamps[stored].tolist(), strict=True)):
            self._tidy()
            for scope, number in self._left(stamp, near):
                flag = (self._flag(address), scope)
                self.flags[flag] = self._join(self.flags.get(flag, 0), number)

    def _raise(self, flag: tuple[int, int], lanes: Array, fences: Fences) -> None:
        releasing = lanes[fences.release(lanes)]
        if len(releasing):
            self.flags[flag] = self._join(self.flags.get(flag, 0), self._number(self._released(releasing, fences)))

    def _take(self, flag: tuple[int, int], lanes: Array, later: Array, lock: bool) -> None:
        found = self.flags.get(flag)
        if found:
            for kept in (later, self.hoped) if lock else (self.held,):
                kept[lanes] = self._join_each(kept[lanes], found)

    def observe(self, mine: Array, addresses: Array, stamps: Array, at_once: bool, near: bool = False) -> None:
        """``mine`` have read flags at ``addresses``, last written as ``stamps`` say (see ``global_races``)."""
        kept, close = (self.held, self.held) if at_once else (self.seen, self.close)
        if self.flags:
            for address, lanes in self._each(addresses, mine):
                flag = self._flag(address)
                if not near:
                    self._add(kept, lanes, self.flags.get((flag, _ALL), 0))
                if self.narrow:
                    for block, here in self._each(lanes // self.threads, lanes):
                        self._add(close, here, self.flags.get((flag, block), 0))
        for stamp, lanes in self._each(stamps, mine):
            if stamp:
                self._heed(stamp, lanes, kept, close, near)

    def _heed(self, stamp: int, lanes: Array, kept: Array, close: Array, near: bool) -> None:
        """A flag that was written at ``stamp``, by a store."""
        for scope, number in self._left(stamp, near):
            if scope == _ALL:
                self._add(kept, lanes, number)
            else:
                self._add(close, lanes[lanes // self.threads == scope], number)

    def _left(self, stamp: int, near: bool) -> Iterator[tuple[int, int]]:
        """What a store at ``stamp`` has released: for all (not for who looks with block scope, ``near``), and for the
        writer's block."""
        writer, time = np.array([stamp & 0xFFFF_FFFF]), np.uint64(stamp >> 32)
        if not near and self.wide.release(writer)[0]:
            yield _ALL, self._number(np.minimum(self._released(writer, self.wide), time))
        if self.narrow and self.near.release(writer)[0]:
            block = int(writer[0]) // self.threads
            yield block, self._number(np.minimum(self._released(writer, self.near), time))

    def _add(self, kept: Array, lanes: Array, number: int) -> None:
        if number:
            kept[lanes] = self._join_each(kept[lanes], number)

    def _acquire(self, mine: Array, waiting: Array) -> None:
        if waiting[mine].any():
            for number, lanes in self._each(waiting[mine], mine):
                self._add(self.held, lanes, number)
            waiting[mine] = 0

    # What is ordered ------------------------------------------------------------------------------------------------

    def before(self, mine: Array, theirs: Array, times: Array) -> Array:
        """Where accesses of ``theirs`` at ``times`` are ordered before what ``mine`` do now."""
        return self._earlier((self.known[mine // self.threads], self.held[mine]), theirs, times)

    def unfenced(self, mine: Array, theirs: Array, times: Array) -> Array:
        """Where they would be, had ``mine`` passed a fence after taking a lock."""
        return self._earlier((self.hoped[mine],), theirs, times)

    def _earlier(self, held: tuple[Array, ...], theirs: Array, times: Array) -> Array:
        result = np.zeros(len(theirs), bool)
        for numbers in held:
            for number in np.unique(numbers).tolist():
                if number:
                    here = numbers == number
                    result[here] |= times[here] < self.table[number][theirs[here] // self.unit]
        return result

    def _released(self, mine: Array, fences: Fences) -> Array:
        """The times that the threads ``mine`` release together."""
        blocks = np.unique(mine // self.threads)
        base = self._join_all([*np.unique(self.held[mine]).tolist(), *self.known[blocks].tolist()])
        times = self.table[base].copy()
        for block in blocks.tolist():
            own = fences.times(block, mine[mine // self.threads == block])
            if self.unit == 1:
                part = times[block * self.threads : (block + 1) * self.threads]
                np.maximum(part, own, out=part)
            else:
                times[block] = max(times[block], own.max())
        return times

    def _flag(self, address: int) -> int:
        if address not in self.addresses and len(self.addresses) >= MOST_FLAGS:
            return _OVERFLOW
        self.addresses.add(address)
        return address

    # Joining --------------------------------------------------------------------------------------------------------

    def _number(self, times: Array) -> int:
        self.numbers += 1
        self.table[self.numbers] = times
        return self.numbers

    def _each(self, keys: Array, mine: Array) -> Iterator[tuple[int, Array]]:
        """The threads by key."""
        for key, lanes in _groups(keys, mine):
            self._tidy()
            yield key, lanes

    def _tidy(self) -> None:
        """Drop what nobody holds, if that is much: not amid a step, where new numbers are on their way to who will hold
        them."""
        if len(self.table) * self.table[0].nbytes > MOST_BYTES:
            self._drop()

    def _drop(self) -> None:
        kept = (self.held, self.seen, self.close, self.hoped, self.known)
        held = np.unique(np.concatenate([*kept, list(self.flags.values()), [0]]))
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
