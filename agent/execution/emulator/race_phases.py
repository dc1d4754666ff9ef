"""What orders threads of a block that meet at an ``mbarrier``: who has seen a phase end comes after all who arrived.

What a thread knows is an array with a time for each thread of its block: accesses before then are ordered. An arrival
hands on what its thread did, what its warp did before they last met, and all it knew; the phase collects that, and who
waits for the phase takes it over. Such arrays never change; they have numbers, 0 is "nothing". A barrier of the block
orders all of it anyway.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP

if TYPE_CHECKING:
    from agent.execution.emulator.race_order import Order

MOST_ARRAYS = 1 << 12  # beyond, a phase counts as a barrier of all blocks: a race may be missed, none is invented


@define(eq=False)
class Phases:
    """``held`` is what each thread knows, ``gathered`` what arrivals have brought to a phase under way, ``passed`` what
    those that ended had gathered, by barrier and parity."""

    blocks: int
    threads: int
    arrays: list[Array] = field(init=False)
    held: Array = field(init=False)
    gathered: dict[int, int] = field(factory=dict)
    passed: dict[tuple[int, int], int] = field(factory=dict)
    joined: dict[tuple[int, int], int] = field(factory=dict)
    used: bool = False  # whether any thread knows anything by way of a phase

    def __attrs_post_init__(self) -> None:
        self.arrays = [np.zeros(self.threads, np.uint64)]
        self.held = np.zeros((self.blocks, self.threads), np.int64)

    def begin(self, keys: Iterable[int]) -> None:
        """Those barriers were initialised."""
        for key in keys:
            self.gathered.pop(key, None)
            self.passed.pop((key, 0), None)
            self.passed.pop((key, 1), None)

    def arrive(self, order: "Order", key: int, row: int, threads: Array) -> None:
        """Those threads of block ``row`` arrive at ``key``."""
        if len(self.arrays) >= MOST_ARRAYS:
            self._clear(order)
        base = self._join_all([self.gathered.get(key, 0), *np.unique(self.held[row, threads]).tolist()])
        times = self.arrays[base].copy()
        times[threads] = order.clock.tick()
        for warp in np.unique(threads // WARP).tolist():
            mine = threads[threads // WARP == warp]
            part = times[warp * WARP : (warp + 1) * WARP]
            np.maximum(part, order.met_by(row, warp, mine % WARP)[: len(part)], out=part)
        self.gathered[key] = self._number(times)

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
        self.held[complete] = 0

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
        numbers, theirs = np.broadcast_arrays(numbers, theirs)
        times = np.zeros(numbers.shape, np.uint64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            times[here] = self.arrays[number][theirs[here]]
        return times

    def _clear(self, order: "Order") -> None:
        self.arrays, self.gathered, self.passed, self.joined = self.arrays[:1], {}, {}, {}
        self.held[:] = 0
        order.horizon[:] = order.clock.tick()

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
