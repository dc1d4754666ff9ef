"""Clusters of a batch: their barrier, and shared memory that other blocks use.

A thread arrives at the barrier of its cluster, and waits for the phase that it has arrived in; a phase is over when all
threads of the cluster that have not left the kernel have arrived. Who has waited comes after all that others did before
they arrived, unless they arrived ``.relaxed``: then only what was before a fence of theirs.

The shared memory of a block is gone when its last thread leaves the kernel. Who uses that of another block must keep it
there: what it did has to come, by a barrier or an ``mbarrier``, before something that the block still waits for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.cluster_shape import Clusters
from agent.execution.emulator.lanes import Lanes, by_block
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch
    from agent.execution.emulator.kernel import Block

_KEY = 1 << 40  # of a cluster's barrier among the phases: below every other
ENDED = "use of an ended block"


@define(eq=False)
class Uses:
    """When, and where in the code, each thread of the cluster last used the shared memory of one block."""

    times: Array
    sites: Array


@define(eq=False)
class Team:
    """``arrived`` and ``waited`` count phases by lane, ``done`` by cluster. Rows of the batch are blocks, cluster by
    cluster, by rank in each."""

    clusters: Clusters
    blocks: int
    threads: int
    size: int = field(init=False)
    span: int = field(init=False)
    arrived: Array = field(init=False)
    waited: Array = field(init=False)
    done: Array = field(init=False)
    waiting: "list[tuple[Lanes, Block]]" = field(factory=list)
    uses: dict[int, Uses] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.size, self.span = self.clusters.size, self.clusters.size * self.threads
        self.arrived, self.waited = (np.zeros(self.blocks * self.threads, np.int64) for _ in range(2))
        self.done = np.zeros(self.blocks // self.size, np.int64)

    # The barrier ----------------------------------------------------------------------------------------------------

    def arrive(self, batch: "Batch", lanes: Lanes, site: Site, relaxed: bool) -> None:
        flat = lanes.flat
        phase = self.done[flat // self.span]
        twice = self.arrived[flat] > self.waited[flat]
        batch.fault(
            "divergent barrier", lanes, site, twice,
            lambda lane: "arrives once more at the barrier of its cluster before it has waited there",
        )  # fmt: skip
        coming = flat[~twice]
        self.arrived[coming] = phase[~twice] + 1
        if batch.order is not None:
            phases = batch.order.phases
            for row, threads in by_block(coming, self.threads):
                if relaxed:
                    phases.bring_fenced(self._key(row), row, threads)
                else:
                    phases.arrive(batch.order, self._key(row), row, threads)
        self.settle(batch)

    def wait(self, batch: "Batch", lanes: Lanes, block: "Block") -> Lanes | None:
        """Those of ``lanes`` who may go on; the others are kept."""
        flat = lanes.flat
        never = self.arrived[flat] == self.waited[flat]
        batch.fault(
            "divergent barrier", lanes, block.sites[-1], never,
            lambda lane: "waits at the barrier of its cluster without having arrived there",
        )  # fmt: skip
        ready = self._ready(lanes)
        going, staying = lanes.split(ready.reshape(lanes.shape))
        if staying is not None:
            self.waiting.append((staying, block))
        if going is not None:
            self._pass(batch, going, block)
        return going

    def settle(self, batch: "Batch") -> None:
        """End the phases that are complete, and let go who waits for them."""
        here = np.repeat(self.done, self.span)
        came = self.arrived > here
        missing = ~came if batch.exited is None else ~came & ~batch.exited
        complete = came.reshape(-1, self.span).any(axis=1) & ~missing.reshape(-1, self.span).any(axis=1)
        if not complete.any():
            return
        for cluster in np.flatnonzero(complete).tolist():
            if batch.order is not None:
                batch.order.phases.end(self._key(cluster * self.size), int(self.done[cluster]) % 2)
        self.done[complete] += 1
        if batch.traffic is not None:
            batch.traffic.barrier(np.repeat(complete, self.size))
        held, self.waiting = self.waiting, []
        for lanes, block in held:
            going, staying = lanes.split(self._ready(lanes).reshape(lanes.shape))
            if staying is not None:
                self.waiting.append((staying, block))
            if going is not None:
                self._pass(batch, going, block)
                batch.push(block.end.targets[0], going)

    def _ready(self, lanes: Lanes) -> Array:
        ready: Array = self.arrived[lanes.flat] <= self.done[lanes.flat // self.span]
        return ready

    def _pass(self, batch: "Batch", lanes: Lanes, block: "Block") -> None:
        flat = lanes.flat
        if batch.watch is not None:
            batch.watch.barrier(block.sites[-1], lanes)
        if batch.order is not None:
            for row, threads in by_block(flat, self.threads):
                parity = int(self.arrived[row * self.threads + threads[0]] - 1) % 2
                batch.order.phases.acquire(self._key(row), parity, row, threads)
        self.waited[flat] = self.arrived[flat]

    def _key(self, row: int) -> int:
        return -_KEY - row // self.size

    # Shared memory of others ----------------------------------------------------------------------------------------

    def use(self, batch: "Batch", lanes: Lanes, rows: Array, site: Site) -> Array:
        """Lanes use the shared memory of the blocks ``rows``, one for each; the answer marks those whose block is still
        there. The others are reported."""
        own = rows == lanes.flat // self.threads
        there: Array = own | (batch.living[rows] > 0)
        batch.fault(
            ENDED, lanes, site, ~there,
            lambda lane: f"{_whose(batch, int(rows[lane]))}, all threads of which have left the kernel",
        )  # fmt: skip
        if batch.order is not None:
            for row in np.unique(rows[~own]).tolist():
                uses = self.uses.get(row)
                if uses is None:
                    uses = self.uses[row] = Uses(np.zeros(self.span, np.uint64), np.zeros(self.span, np.int64))
                mine = lanes.flat[(rows == row) & ~own] % self.span
                uses.times[mine], uses.sites[mine] = batch.order.clock.now, site.index
        return there

    def ended(self, batch: "Batch", rows: Array) -> None:
        """The last threads of those blocks leave the kernel."""
        if batch.order is None:
            return
        for row in rows.tolist():
            uses = self.uses.get(row)
            if uses is None:
                continue
            early = (uses.times > 0) & (uses.times >= batch.order.phases.known(row))
            for index in np.unique(uses.sites[early]).tolist():
                flat = np.flatnonzero(early & (uses.sites == index)) + row // self.size * self.span
                lanes = Lanes(self.blocks, self.threads, ragged=flat)
                words = f"{_whose(batch, row)}, which may have ended by then: it waits for nothing behind this"
                batch.fault(ENDED, lanes, batch.kernel.sites[index], np.ones((1, 1), bool), _saying(words))


def _whose(batch: "Batch", row: int) -> str:
    place = batch.where(row * batch.everyone.threads, batch.kernel.sites[0]).block
    return f"uses the shared memory of block {place}"


def _saying(words: str) -> Callable[[int], str]:
    return lambda lane: words
