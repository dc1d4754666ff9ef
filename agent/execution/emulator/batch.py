"""A batch of blocks running in step: which lanes are where, whose turn it is, and the values they hold.

Of the groups of lanes that wait at different program counters the lowest goes first, so that lanes that parted meet
again. A group that loops on and on while others wait (a lock, a flag) gives way after a while, to whom it has kept
waiting longest; if it waits for a block of another batch, the batch gives way as a whole.
"""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.device import Where
from agent.execution.emulator.addresses import LOCAL, SHARED, Array
from agent.execution.emulator.barriers import Arrival, Barriers, report_deadlock
from agent.execution.emulator.bulk import Bulk
from agent.execution.emulator.copies import Copies
from agent.execution.emulator.faults import FaultLog
from agent.execution.emulator.kernel import PATIENCE, Block, End, Kernel
from agent.execution.emulator.lanes import WARP, Lanes, all_lanes, union
from agent.execution.emulator.local import Local
from agent.execution.emulator.memory import Memory
from agent.execution.emulator.parameters import Parameters
from agent.execution.emulator.ptx.instruction import Instruction, Register
from agent.execution.emulator.shared import Shared
from agent.execution.emulator.sites import Site
from agent.execution.emulator.stuck import Hopeless, Stuck
from agent.execution.emulator.values import Values

if TYPE_CHECKING:
    from agent.execution.emulator.cluster_barrier import Team
    from agent.execution.emulator.races.clusters import ClusterShadow
    from agent.execution.emulator.races.global_memory import Traffic
    from agent.execution.emulator.races.order import Order
    from agent.execution.emulator.races.shared_memory import Shadow
    from agent.execution.emulator.reach import Reach
    from agent.execution.emulator.shadows.shadow import Twin
    from agent.execution.emulator.steps.warp import Warps
    from agent.execution.emulator.watch import Watch

TURN = 2_000  # blocks of code that a group runs out of order before the lowest goes first again
ROUNDS = 4  # times that all patience is used up before another batch gets its turn


class StepLimit(Exception):
    """More thread-instructions than the request allows; ``args``: the kernel, where it was, and who waited for whom."""


class TimeLimit(Exception):
    """More seconds than the request allows."""


class Cancelled(Exception):
    """The request was withdrawn."""


@define(eq=False)
class Meter:
    """What a run may still use."""

    step_cap: int
    deadline: float
    cancelled: Callable[[], bool]
    steps: int = 0
    next_look: float = 0.0

    def look(self) -> None:
        """Raise where time is up or the request was withdrawn."""
        now = time.monotonic()
        if now >= self.next_look:
            self.next_look = now + 0.02
            if now > self.deadline:
                raise TimeLimit
            if self.cancelled():
                raise Cancelled


@define(eq=False)
class Batch:
    """``numbers`` are the linear numbers of the blocks; ``values`` the entries for all lanes (see ``Lanes``). ``team``:
    where blocks form clusters of several, how these keep together."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    numbers: Array
    values: Values
    memory: Memory
    shared: Shared
    local: Local
    parameters: Parameters
    faults: FaultLog
    meter: Meter
    checks: frozenset[str]
    watch: "Watch | None"
    order: "Order | None" = None
    traffic: "Traffic | None" = None
    reach: "Reach | None" = None
    twin: "Twin | None" = None
    team: "Team | None" = None
    everyone: Lanes = field(init=False)
    lanes: Lanes = field(init=False)
    groups: dict[int, list[Lanes]] = field(factory=dict)
    since: dict[int, int] = field(factory=dict)
    parked: dict[int, list[Lanes]] = field(factory=dict)
    barriers: Barriers = field(init=False)
    copies: Copies = field(init=False)
    bulk: Bulk = field(init=False)
    stuck: Stuck = field(factory=Stuck)
    alone: bool = False
    living: Array = field(init=False)
    exited: Array | None = None
    running: Values = field(init=False)
    fatigue: int = 0
    tired: int = -1
    clock: int = 0
    own_turn: int = 0
    forced: bool = False
    _at_barrier: End = field(init=False)

    def __attrs_post_init__(self) -> None:
        threads = self.block[0] * self.block[1] * self.block[2]
        self.everyone = self.lanes = all_lanes(len(self.numbers), threads)
        self.running = self.values
        self.living = np.full(len(self.numbers), threads, np.int64)
        self.barriers = Barriers(len(self.numbers))
        self.copies = Copies(self.everyone.count)
        self.bulk = Bulk(self.everyone.count)
        self.push(0, self.everyone)

    @property
    def shadow(self) -> "Shadow | ClusterShadow | None":
        return self.shared.shadow

    def chip(self, tag: int) -> "Shared | Local | Parameters":
        return self.shared if tag == SHARED else self.local if tag == LOCAL else self.parameters

    def synchronise(self, complete: Array) -> None:
        """The blocks where ``complete`` holds have passed a barrier."""
        if self.order is not None:
            self.order.barrier(complete)
        if self.shadow is not None:
            self.shadow.barrier(complete)
        if self.traffic is not None:
            self.traffic.barrier(complete)

    def meet(self, lanes: Lanes, warps: "Warps", present: Array) -> None:
        """The lanes of each warp where ``present`` holds have met at a barrier of their own."""
        if self.order is not None:
            self.order.warp_barrier(lanes, warps, present)
        if self.shadow is not None:
            self.shadow.warp_barrier(lanes, warps, present)
        if self.traffic is not None:
            self.traffic.meet(lanes)

    def ticks(self) -> int:
        """A clock that only goes forward: thread-instructions done so far."""
        return self.meter.steps

    # Scheduling -----------------------------------------------------------------------------------------------------

    def push(self, number: int, lanes: Lanes) -> None:
        """Let ``lanes`` wait for their turn at block ``number``."""
        if number not in self.groups:
            self.clock += 1
            self.since[number] = self.clock
        self.groups.setdefault(number, []).append(lanes)
        if number in self.parked:
            self.groups[number] += self.parked.pop(number)

    def run(self, alone: bool) -> bool:
        """Run until all threads are done (True), or until it seems that another batch must run first (False).

        ``alone``: there is no other batch that could do anything, so go on.
        """
        self.alone = alone
        try:
            return self._run(alone)
        except Hopeless:
            return True

    def _run(self, alone: bool) -> bool:
        rounds = 0
        while True:
            if not self.groups and not self._unblock():
                return True
            number = min(self.groups)
            if self.fatigue >= PATIENCE:
                self.fatigue = 0
                others = [other for other in self.groups if other != self.tired]
                if others:
                    lowest, number = number, min(others, key=self.since.__getitem__)
                    self.own_turn = TURN if number != lowest else 0
                rounds += 1
                if rounds >= ROUNDS and not alone:
                    return False
            self._advance(number, union(self.groups.pop(number)))

    def _advance(self, number: int, lanes: Lanes) -> None:
        """Run ``lanes`` from block ``number`` on, as long as they stay together and it is their turn."""
        blocks, meter, groups = self.kernel.blocks, self.meter, self.groups
        whole = lanes.whole
        values: Values = self.values if whole else [None] * len(self.values)  # type: ignore[list-item]
        dirty: set[int] = set()
        self.lanes, self.running = lanes, values
        while True:
            block = blocks[number]
            if not whole:
                for entry in block.reads:
                    if values[entry] is None:
                        values[entry] = lanes.gather(self.values[entry])
                dirty |= block.writes
            if block.mask is not None and not lanes.whole_warps and self._wait_for_warp(block, lanes, values, dirty):
                return
            for run in block.runs:
                run(values, self)
            meter.steps += block.weight * lanes.count
            if meter.steps > meter.step_cap:
                raise StepLimit(self.kernel.name, self.where(int(lanes.flat[0]), block.sites[-1]), self._waiting())
            meter.look()
            if self.watch is not None:
                self.watch.executed(block, lanes)
            onward = self._end(block, lanes, values, dirty)
            if onward is None:
                return
            if onward <= number:
                self.fatigue += block.tiring
            number = onward
            if self.own_turn > 0:
                self.own_turn -= 1
                yields = number in groups
            else:
                yields = bool(groups) and min(groups) <= number
            if yields or self.fatigue >= PATIENCE or number in self.parked:
                self._leave(lanes, values, dirty, (number,))
                self.push(number, lanes)
                self.tired = number
                return

    def _leave(self, lanes: Lanes, values: Values, dirty: set[int], numbers: Iterable[int]) -> None:
        """Put back what these lanes computed and somebody still reads."""
        if lanes.whole:
            return
        live = frozenset[int]().union(*(self.kernel.blocks[number].live for number in numbers))
        for entry in dirty & live:
            if values[entry] is not None:
                self.values[entry] = lanes.scatter(self.values[entry], values[entry])

    def _end(self, block: Block, lanes: Lanes, values: Values, dirty: set[int]) -> int | None:
        """Where all of ``lanes`` go on; None where they parted, wait or are done."""
        end = block.end
        if end.kind in ("next", "jump"):
            return end.targets[0]
        if end.kind == "branch":
            taken, rest = lanes.split(values[end.entries[0]])
            if end.negated:
                taken, rest = rest, taken
            if self.watch is not None:
                self.watch.branch(block, lanes, [part for part in (taken, rest) if part is not None])
            if self.twin is not None:
                self.twin.branch(lanes, end.entries[0], block.sites[-1])
            if rest is None:
                return end.targets[0]
            if taken is None:
                return end.targets[1]
            self._part(block, lanes, values, dirty, ((end.targets[0], taken), (end.targets[1], rest)))
            return None
        if end.kind == "table":
            return self._jump_by_table(block, lanes, values, dirty)
        if end.kind == "barrier":
            return self._barrier(block, lanes, values, dirty)
        if end.kind == "trap":
            self.fault("trap", lanes, block.sites[-1], np.ones((1, 1), bool), lambda lane: _trap_text(block))
        self._exit(lanes)
        return None

    def _part(
        self, block: Block, lanes: Lanes, values: Values, dirty: set[int], parts: Iterable[tuple[int, Lanes]]
    ) -> None:
        parts = tuple(parts)
        self._leave(lanes, values, dirty, [number for number, _ in parts])
        for number, part in parts:
            if number <= block.number:
                self.fatigue += block.tiring
            self.push(number, part)

    def _jump_by_table(self, block: Block, lanes: Lanes, values: Values, dirty: set[int]) -> int | None:
        index = values[block.end.entries[0]]
        targets = block.end.targets
        if self.twin is not None:
            self.twin.branch(lanes, block.end.entries[0], block.sites[-1])
        if index.size == 1:
            return targets[min(int(index[0, 0]), len(targets) - 1)]
        parts: dict[int, list[Lanes]] = {}
        for number in np.unique(index).tolist():
            target = targets[min(number, len(targets) - 1)]
            parts.setdefault(target, []).append(lanes.select(index == number))
        together = {target: union(found) for target, found in parts.items()}
        if self.watch is not None:
            self.watch.branch(block, lanes, list(together.values()))
        self._part(block, lanes, values, dirty, together.items())
        return None

    def _exit(self, lanes: Lanes) -> None:
        before = self.living.copy()
        self.living -= np.bincount(np.broadcast_to(lanes.block, lanes.shape).reshape(-1), minlength=len(self.living))
        if self.exited is None:
            self.exited = np.zeros(self.everyone.count, bool)
        self.exited[lanes.flat] = True
        if self.parked:
            for number in list(self.parked):
                self.push(number, union(self.parked.pop(number)))
        if self.barriers.waiting:
            self.barriers.release(self)
        if self.team is not None or self.bulk.inward or self.bulk.outward:
            ended = np.flatnonzero((before > 0) & (self.living == 0))
            self.bulk.ended(self, ended)
            if self.team is not None:
                self.team.ended(self, ended)
                self.team.settle(self)

    # Barriers -------------------------------------------------------------------------------------------------------

    def predicate(self, lanes: Lanes) -> Array:
        """The predicate that these lanes bring to the barrier they are at, one for each in lane order."""
        end = self._at_barrier
        value = self.running[end.entries[-1]]
        wide: Array = np.broadcast_to(~value if end.negated else value, self.lanes.shape).reshape(-1)
        return wide

    def _barrier(self, block: Block, lanes: Lanes, values: Values, dirty: set[int]) -> int | None:
        end = block.end
        if end.of_cluster and self.team is not None:
            return self._wait_for_cluster(block, lanes, values, dirty)
        numbers = values[end.entries[0]]
        simple = end.output is None and not end.counted
        if simple and lanes.count == int(self.living.sum()) and numbers.size == 1 and not self.barriers.waiting:
            if "barriers" in self.checks:
                self.barriers.leavers.passed(self, [(lanes, block.sites[-1])])
            self.synchronise(np.ones(len(self.living), bool))
            if self.watch is not None:
                self.watch.barrier(block.sites[-1], lanes)
            return end.targets[0]
        self._leave(lanes, values, dirty, end.targets)
        self._at_barrier = end
        self.barriers.arrive(self, lanes, block, numbers, values[end.entries[1]] if end.counted else None)
        if end.arrives:
            self.push(end.targets[0], lanes)
        self.barriers.release(self)
        return None

    def _wait_for_cluster(self, block: Block, lanes: Lanes, values: Values, dirty: set[int]) -> int | None:
        assert self.team is not None
        self._leave(lanes, values, dirty, block.end.targets)
        going = self.team.wait(self, lanes, block)
        if going is lanes:
            return block.end.targets[0]
        if going is not None:
            self.push(block.end.targets[0], going)
        return None

    def _wait_for_warp(self, block: Block, lanes: Lanes, values: Values, dirty: set[int]) -> bool:
        """Hold back the lanes of warps of which a member named in the mask has yet to come; True where any was."""
        if self.forced:
            self.forced = False
            return False
        assert block.mask is not None
        slot, count = lanes.warp_slot
        present = np.zeros((count, WARP), bool)
        present.reshape(-1)[slot] = True
        wanted = np.zeros((count, WARP), np.uint32)
        wanted.reshape(-1)[slot] = np.broadcast_to(values[block.mask], lanes.shape).reshape(-1)
        needed = (np.bitwise_or.reduce(wanted, axis=1)[:, None] >> np.arange(WARP, dtype=np.uint32)) & 1 != 0
        short = (needed & ~present & self._alive(lanes)).any(axis=1)
        if not short.any():
            return False
        late = short[slot // WARP].reshape(lanes.shape)
        self._leave(lanes, values, dirty - block.writes, (block.number,))
        waiting, ready = lanes.split(late)
        if ready is not None:
            self.push(block.number, ready)
        if waiting is not None:
            self.parked.setdefault(block.number, []).append(waiting)
        return True

    def _alive(self, lanes: Lanes) -> Array:
        """For the warps of ``lanes``, which lanes exist and have not exited: ``(warps, 32)``."""
        per_block = -(-lanes.threads // WARP)
        ids = lanes.warp_ids
        thread = (ids % per_block * WARP)[:, None] + np.arange(WARP)
        exists = thread < lanes.threads
        if self.exited is None:
            return exists
        flat = (ids // per_block * lanes.threads)[:, None] + np.minimum(thread, lanes.threads - 1)
        alive: Array = exists & ~self.exited[flat]
        return alive

    def _unblock(self) -> bool:
        """Nobody can go on: let those go that wait for lanes of their warp in vain, else report who waits for whom."""
        if self.parked:
            number = min(self.parked)
            lanes = union(self.parked.pop(number))
            site = self.kernel.blocks[number].sites[0]
            self.fault(
                "invalid shuffle mask",
                lanes,
                site,
                np.ones((1, 1), bool),
                lambda lane: "waits for lanes of its warp that are named in the mask and never come",
            )
            self.forced = True
            self._advance(number, lanes)
            return True
        waiting = [arrival for arrivals in self.barriers.waiting.values() for arrival in arrivals]
        held = [] if self.team is None else self.team.waiting
        waiting += [Arrival(lanes, block, None) for lanes, block in held]
        if waiting:
            report_deadlock(self, waiting)
        return False

    def _waiting(self) -> str:
        """In words, the lines of the barriers at which threads wait at this moment."""
        arrivals = [arrival for arrivals in self.barriers.waiting.values() for arrival in arrivals]
        lines = sorted({arrival.block.sites[-1].line for arrival in arrivals})
        return f"; other threads wait at the barrier of line {', '.join(map(str, lines))}" if lines else ""

    # Faults ---------------------------------------------------------------------------------------------------------

    def where(self, lane: int, site: Site) -> Where:
        """Lane number ``block * threads + thread`` of the batch as a place in the source."""
        threads = self.everyone.threads
        return self.place(int(self.numbers[lane // threads]), lane % threads, site)

    def place(self, number: int, thread: int, site: Site) -> Where:
        """A thread of the block of that linear number (of any batch) at ``site``."""
        return Where(site.file, site.line, _three(number, self.grid), _three(thread, self.block))

    def fault(
        self,
        kind: str,
        lanes: Lanes,
        site: Site,
        bad: Array,
        message: Callable[[int], str],
        other: tuple[int, Site] | None = None,
        benign: bool = False,
    ) -> None:
        """Record a fault of the lanes where ``bad`` holds. ``message`` takes a lane's position in ``lanes``."""
        flat = bad if bad.ndim == 1 else np.broadcast_to(bad, lanes.shape).reshape(-1)
        if not flat.any():
            return
        first = int(flat.argmax())
        self.faults.record(
            kind,
            self.kernel.name,
            lambda: self.where(int(lanes.flat[first]), site),
            lambda: message(first),
            int(np.count_nonzero(flat)),
            (site.file, site.line),
            (lambda: self.where(other[0], other[1])) if other else None,
            other[1].line if other else 0,
            benign,
        )


def _three(linear: int, size: tuple[int, int, int]) -> tuple[int, int, int]:
    return linear % size[0], linear // size[0] % size[1], linear // (size[0] * size[1])


def _trap_text(block: Block) -> str:
    instruction: Instruction = block.sites[-1].instruction
    if instruction.base != "call":
        return "executes a trap"
    by_pointer = isinstance(instruction.sources[0], Register)
    return "calls through a pointer that leads to no such function" if by_pointer else "an assertion failed"
