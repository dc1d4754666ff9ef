"""Barriers of a block: who has arrived, who may go on, and what is wrong about how they came.

A barrier completes for a block when every thread of it that has not exited has arrived, or as many as it names. Threads
that exit early do not hold it up, as on the hardware.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.kernel import Block
from agent.execution.emulator.lanes import Lanes, by_block
from agent.execution.emulator.leavers import Leavers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@define(eq=False)
class Arrival:
    """Lanes that wait at the end of ``block``, with their predicate where the barrier reduces one."""

    lanes: Lanes
    block: Block
    predicate: Array | None


@define(eq=False)
class Barriers:
    """By barrier number: the arrivals, how many threads of each block have come, how many are expected (0: all), and
    whether some came that do not wait (``passing``)."""

    blocks: int
    waiting: dict[int, list[Arrival]] = field(factory=dict)
    arrived: dict[int, Array] = field(factory=dict)
    expected: dict[int, Array] = field(factory=dict)
    passing: dict[int, Array] = field(factory=dict)
    leavers: Leavers = field(factory=Leavers)

    def arrive(self, batch: "Batch", lanes: Lanes, block: Block, numbers: Array, counts: Array | None) -> None:
        """Note that ``lanes`` have come; ``numbers`` and ``counts`` broadcast to ``lanes.shape``."""
        if numbers.size == 1:
            self._arrive(batch, lanes, block, int(numbers.reshape(-1)[0]), counts, None)
            return
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            self._arrive(batch, lanes.select(chosen), block, number, counts, (lanes, chosen))

    def _arrive(
        self,
        batch: "Batch",
        lanes: Lanes,
        block: Block,
        number: int,
        counts: Array | None,
        cut: "tuple[Lanes, Array] | None",
    ) -> None:
        arrived = self.arrived.setdefault(number, np.zeros(self.blocks, np.int64))
        np.add.at(arrived, np.broadcast_to(lanes.block, lanes.shape).reshape(-1), 1)
        expected = self.expected.setdefault(number, np.zeros(self.blocks, np.int64))
        if counts is not None:
            whole = lanes if cut is None else cut[0]
            wide = np.broadcast_to(counts, whole.shape).reshape(-1)
            if cut is not None:
                wide = wide[np.broadcast_to(cut[1], whole.shape).reshape(-1)]
            expected[np.broadcast_to(lanes.block, lanes.shape).reshape(-1)] = wide
            if batch.order is not None:
                for row, threads in by_block(lanes.flat, lanes.threads):
                    batch.order.phases.arrive(batch.order, self._phase(number, row), row, threads)
        if block.end.arrives:
            passing = self.passing.setdefault(number, np.zeros(self.blocks, bool))
            passing[np.broadcast_to(lanes.block, lanes.shape).reshape(-1)] = True
        else:
            predicate = batch.predicate(lanes) if block.end.output is not None else None
            self.waiting.setdefault(number, []).append(Arrival(lanes, block, predicate))

    def release(self, batch: "Batch") -> bool:
        """Let go on the blocks whose barriers are complete; True where any did."""
        any_did = False
        for number, arrived in self.arrived.items():
            expected = self.expected[number]
            complete = (arrived > 0) & (arrived >= np.where(expected > 0, expected, batch.living))
            if complete.any():
                any_did = True
                self._release(batch, number, complete)
        return any_did

    def _release(self, batch: "Batch", number: int, complete: Array) -> None:
        expected = self.expected[number]
        counted = bool((expected[complete] > 0).any())
        passing = self.passing.pop(number, np.zeros(self.blocks, bool))
        self.passing[number] = passing & ~complete
        some = complete & (expected > 0) & ((expected < batch.living) | passing)
        self.arrived[number][complete] = 0
        self.expected[number][complete] = 0
        going: list[Arrival] = []
        staying: list[Arrival] = []
        for arrival in self.waiting.pop(number, []):
            chosen = complete[arrival.lanes.block]
            goes, stays = arrival.lanes.split(chosen)
            for part, pile, held in ((goes, going, chosen), (stays, staying, ~chosen)):
                if part is not None:
                    pile.append(Arrival(part, arrival.block, _cut(arrival, part, held)))
        if staying:
            self.waiting[number] = staying
        if not counted:
            _check_alike(batch, going)
            if "barriers" in batch.checks:
                self.leavers.passed(batch, [(one.lanes, one.block.sites[-1]) for one in going])
        batch.synchronise(complete & ~some | (batch.living == 0))
        if some.any():
            self._order_some(batch, number, some, going)
        _reduce(batch, going)
        for arrival in going:
            if batch.watch is not None:
                batch.watch.barrier(arrival.block.sites[-1], arrival.lanes)
            batch.push(arrival.block.end.targets[0], arrival.lanes)

    def _order_some(self, batch: "Batch", number: int, some: Array, going: list[Arrival]) -> None:
        """Where only some threads of a block wait, these come after what those did who arrived."""
        if batch.traffic is not None:
            batch.traffic.barrier(some)
        if batch.order is None:
            return
        if batch.shadow is not None:
            batch.shadow.blocks_part()
        for row in np.flatnonzero(some).tolist():
            batch.order.phases.end(self._phase(number, row), 0)
        for arrival in going:
            for row, threads in by_block(arrival.lanes.flat, arrival.lanes.threads):
                if some[row]:
                    batch.order.phases.acquire(self._phase(number, row), 0, row, threads)

    def _phase(self, number: int, row: int) -> int:
        """A number that no ``mbarrier`` has."""
        return -1 - number * self.blocks - row


def _cut(arrival: Arrival, part: Lanes, held: Array) -> Array | None:
    if arrival.predicate is None or part is arrival.lanes:
        return arrival.predicate
    part_of: Array = arrival.predicate[np.broadcast_to(held, arrival.lanes.shape).reshape(-1)]
    return part_of


def _check_alike(batch: "Batch", going: list[Arrival]) -> None:
    """``__syncthreads`` must be the same one for all threads of a block (CUDA C++ guide, "Synchronization
    functions").
    """
    if "barriers" not in batch.checks or len({arrival.block.number for arrival in going}) < 2:
        return
    seen = np.full(batch.barriers.blocks, -1)
    for index, arrival in enumerate(going):
        rows = np.broadcast_to(arrival.lanes.block, arrival.lanes.shape)
        if not arrival.block.end.aligned:
            continue
        earlier = seen[rows]
        site = arrival.block.sites[-1]
        bad = (earlier >= 0) & np.array([going[k].block.number != arrival.block.number for k in range(len(going))])[
            earlier
        ]
        if bad.any():
            first = int(np.flatnonzero(bad.reshape(-1))[0])
            partner = going[int(earlier.reshape(-1)[first])]
            row = int(rows.reshape(-1)[first])
            there = partner.lanes.flat[partner.lanes.flat // partner.lanes.threads == row][0]
            line = partner.block.sites[-1].line
            batch.fault(
                "divergent barrier",
                arrival.lanes,
                site,
                bad,
                _at_different(line, site.line),
                other=(int(there), partner.block.sites[-1]),
            )
        fresh = rows[earlier < 0]
        seen[fresh] = index


def _at_different(first: int, second: int) -> Callable[[int], str]:
    return lambda lane: f"threads of one block wait at different barriers: lines {first} and {second}"


def _reduce(batch: "Batch", going: list[Arrival]) -> None:
    """The result of ``bar.red`` for each block, given to all its lanes."""
    if not any(arrival.predicate is not None for arrival in going):
        return
    totals = np.zeros(batch.barriers.blocks, np.int64)
    sizes = np.zeros(batch.barriers.blocks, np.int64)
    for arrival in going:
        if arrival.predicate is not None:
            rows = np.broadcast_to(arrival.lanes.block, arrival.lanes.shape).reshape(-1)
            np.add.at(totals, rows, arrival.predicate)
            np.add.at(sizes, rows, 1)
    for arrival in going:
        end = arrival.block.end
        if end.output is not None:
            result = {"popc": totals.astype(np.uint32), "and": totals == sizes, "or": totals > 0}[end.reduction]
            batch.values[end.output] = arrival.lanes.scatter(batch.values[end.output], _spread(result, arrival.lanes))


def _spread(result: Array, lanes: Lanes) -> Array:
    return np.ascontiguousarray(result[lanes.block])


def report_deadlock(batch: "Batch", waiting: list[Arrival]) -> None:
    """All that is left of the batch waits at barriers that will never be complete."""
    first = waiting[0]
    site, end = first.block.sites[-1], first.block.end
    row = int(first.lanes.block.reshape(-1)[0])
    partner = next(
        (one for one in waiting if one.block.number != first.block.number and (one.lanes.block == row).any()), None
    )
    if partner is not None:
        other = partner.block.sites[-1]
        lane = int(partner.lanes.flat[partner.lanes.flat // partner.lanes.threads == row][0])
        batch.fault(
            "divergent barrier",
            first.lanes,
            site,
            first.lanes.block == row,
            lambda position: (
                f"some threads wait for ever at line {site.line}, others of the block at line {other.line}"
            ),
            other=(lane, other),
        )
        return
    reason = "a barrier for more threads than ever arrive" if end.counted else "a barrier that others never reach"
    batch.fault("deadlock", first.lanes, site, np.ones((1, 1), bool), lambda position: f"waits for ever at {reason}")
