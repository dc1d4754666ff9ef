"""What orders threads of a block that meet at an ``mbarrier``: who has seen a phase end comes after all who arrived.

What a thread knows is an array with a time for each thread of its block, or of its cluster: accesses before then are
ordered. An arrival hands on what its thread did, what its warp did before they last met, and all it knew; the phase
collects that, and who waits for the phase takes it over. Such arrays never change; they have numbers, 0 is "nothing". A
barrier of the block orders all of it anyway; in a cluster each thread of the block then knows what any of them knew.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP

if TYPE_CHECKING:
    from agent.execution.emulator.races.order import Order

# beyond, those that nobody holds any more are dropped; where that is not half of them, all that was known counts as
# ordered: a race may be missed, none is invented
MOST_ARRAYS, MOST_BYTES = 1 << 12, 1 << 25


@define(eq=False)
class Phases:
    """``held`` is what each thread knows, ``gathered`` what arrivals have brought to a phase under way, ``passed`` what
    those that ended had gathered, by barrier and parity. Clusters are of ``team`` blocks each; in those, ``fenced`` is
    what each thread has to hand on since its last fence. What is older than ``floor`` is ordered."""

    blocks: int
    threads: int
    team: int = 1
    arrays: list[Array] = field(init=False)
    held: Array = field(init=False)
    fenced: Array = field(init=False)
    floor: int = 0
    gathered: dict[int, int] = field(factory=dict)
    passed: dict[tuple[int, int], int] = field(factory=dict)
    joined: dict[tuple[int, int], int] = field(factory=dict)
    used: bool = False  # whether any thread knows anything by way of a phase

    def __attrs_post_init__(self) -> None:
        self.arrays = [np.zeros(self.team * self.threads, np.uint64)]
        self.held = np.zeros((self.blocks, self.threads), np.int64)
        self.fenced = np.zeros_like(self.held)

    def begin(self, keys: Iterable[int]) -> None:
        """Those barriers were initialised."""
        for key in keys:
            self.gathered.pop(key, None)
            self.passed.pop((key, 0), None)
            self.passed.pop((key, 1), None)

    def arrive(self, order: "Order", key: int, row: int, threads: Array) -> None:
        """Those threads of block ``row`` arrive at ``key``."""
        self._tidy(order)
        self.gathered[key] = self._brought(order, row, threads, self.gathered.get(key, 0))

    def _brought(self, order: "Order", row: int, threads: Array, more: int) -> int:
        """What these have to hand on, and ``more``."""
        base = self._join_all([more, *np.unique(self.held[row, threads]).tolist()])
        times = self.arrays[base].copy()
        own = times[row % self.team * self.threads :][: self.threads]
        own[threads] = order.clock.tick()
        for warp in np.unique(threads // WARP).tolist():
            mine = threads[threads // WARP == warp]
            part = own[warp * WARP : (warp + 1) * WARP]
            np.maximum(part, order.met_by(row, warp, mine % WARP)[: len(part)], out=part)
        if self.team > 1:
            np.maximum(own, order.horizon[row, 0], out=own)
        return self._number(times)

    def fence(self, order: "Order", row: int, threads: Array) -> None:
        """Those threads of block ``row`` pass a fence that counts for the cluster."""
        self._tidy(order)
        self.fenced[row, threads] = self._brought(order, row, threads, 0)

    def bring_fenced(self, key: int, row: int, threads: Array) -> None:
        """Those threads arrive without handing on more than they did before their last fence."""
        fenced = np.unique(self.fenced[row, threads]).tolist()
        self.gathered[key] = self._join_all([self.gathered.get(key, 0), *fenced])

    def end(self, key: int, parity: int) -> None:
        """The phase of that parity is complete."""
        self.passed[key, parity] = self.gathered.pop(key, 0)

    def acquire(self, key: int, parity: int, row: int, threads: Array) -> None:
        """Those threads have seen that the phase is complete."""
        found = self.passed.get((key, parity), 0)
        if found:
            self.used = True
            known = self.held[row, threads]
            unique, inverse = np.unique(known, return_inverse=True)
            both = [self._join_all([number, found]) for number in unique.tolist()]
            self.held[row, threads] = np.array(both, np.int64)[inverse]

    def barrier(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier of their own."""
        if self.team == 1:
            self.held[complete] = 0
            return
        for row in np.flatnonzero(complete & self.held.any(axis=1)).tolist():
            self.held[row] = self._join_all(np.unique(self.held[row]).tolist())

    def meet(self, flat: Array) -> None:
        """These lanes (numbers in the batch) have met others of their warp: what one knows all know."""
        known = self.held.reshape(-1)
        if not known[flat].any():
            return
        warps = flat // self.threads * -(-self.threads // WARP) + flat % self.threads // WARP
        for warp in np.unique(warps[known[flat] > 0]).tolist():
            lanes = flat[warps == warp]
            known[lanes] = self._join_all(np.unique(known[lanes]).tolist())

    def since(self, row: Array, mine: Array, theirs: Array) -> Array:
        """Before when accesses of ``theirs`` are ordered before what ``mine`` do now."""
        numbers = self.held[row, mine]
        if not numbers.any():
            return np.zeros((1, 1), np.uint64)
        numbers, theirs = np.broadcast_arrays(numbers, row % self.team * self.threads + theirs)
        times = np.zeros(numbers.shape, np.uint64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            times[here] = self.arrays[number][theirs[here]]
        return times

    def since_lanes(self, mine: Array, theirs: Array) -> Array:
        """The same of lanes of the batch, of any blocks of one cluster; both are flat."""
        numbers, times = self.held.reshape(-1)[mine], np.full(mine.shape, self.floor, np.uint64)
        places = theirs % (self.team * self.threads)
        for number in np.unique(numbers[numbers > 0]).tolist():
            here = numbers == number
            times[here] = np.maximum(self.arrays[number][places[here]], np.uint64(self.floor))
        return times

    def known(self, row: int) -> Array:
        """What any thread of block ``row`` knows."""
        joined = self.arrays[self._join_all(np.unique(self.held[row]).tolist())]
        times: Array = np.maximum(joined, np.uint64(self.floor))
        return times

    def _tidy(self, order: "Order") -> None:
        most = max(min(MOST_ARRAYS, MOST_BYTES // (8 * self.team * self.threads)), 64)
        if len(self.arrays) < most:
            return
        kept = {0, *np.unique(self.held).tolist(), *np.unique(self.fenced).tolist()}
        kept |= {*self.gathered.values(), *self.passed.values()}
        if len(kept) > most // 2:
            self.gathered, self.passed, kept = {}, {}, {0}
            self.held[:] = self.fenced[:] = 0
            self.floor = order.clock.tick()
            order.horizon[:] = self.floor
        names = np.array(sorted(kept))
        self.arrays, self.joined = [self.arrays[name] for name in names.tolist()], {}
        self.held, self.fenced = np.searchsorted(names, self.held), np.searchsorted(names, self.fenced)
        self.gathered = {key: int(np.searchsorted(names, number)) for key, number in self.gathered.items()}
        self.passed = {key: int(np.searchsorted(names, number)) for key, number in self.passed.items()}

    def _number(self, times: Array) -> int:
        self.arrays.append(times)
        return len(self.arrays) - 1

    def _join_all(self, numbers: list[int]) -> int:
        result = 0
        for number in numbers:
            if not number or not result or number == result:
                result = number or result
                continue
            key = (min(number, result), max(number, result))
            if key not in self.joined:
                self.joined[key] = self._number(np.maximum(self.arrays[key[0]], self.arrays[key[1]]))
            result = self.joined[key]
        return result
