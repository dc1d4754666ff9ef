"""Fences of one scope: what a thread that raises a flag has put in order before it."""

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.races.order import Order


@define(eq=False)
class Fences:
    """Times for each thread of a launch: ``passed`` is when it last passed a fence, ``settled`` that as of its block's
    last barrier, ``covered`` the time of the block's last barrier, and ``met`` of the warp's, when it passed that
    fence."""

    blocks: int
    threads: int
    passed: Array = field(init=False)
    settled: Array = field(init=False)
    covered: Array = field(init=False)
    met: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.passed, self.settled, self.covered, self.met = (
            np.zeros(self.blocks * self.threads, np.uint64) for _ in range(4)
        )

    def fence(self, mine: Array, now: int, order: Order, first: int) -> None:
        """The threads ``mine`` (numbers in the launch) pass a fence; ``order`` is that of their batch, whose first
        block is number ``first``."""
        row, thread = mine // self.threads - first, mine % self.threads
        self.passed[mine] = now
        self.covered[mine] = order.horizon[row, 0]
        self.met[mine] = order.last_met(row, thread)

    def barrier(self, rows: Array) -> None:
        self.settled[rows] = self.passed[rows]

    def meet(self, mine: Array) -> None:
        self.settled[mine] = np.maximum(self.settled[mine], self.passed[mine])

    def release(self, mine: Array) -> Array:
        """Which of ``mine`` have a fence behind them, their own or one of their block's before a barrier."""
        blocks, inverse = np.unique(mine // self.threads, return_inverse=True)
        settled: Array = np.any(self.settled[self.rows(blocks)], axis=1)
        releases: Array = (self.passed[mine] > 0) | settled[inverse]
        return releases

    def times(self, block: int, lanes: Array) -> Array:
        """Until when each thread of ``block`` is released by ``lanes`` of it together."""
        own: Array = np.maximum(self.settled[self.rows(np.array([block]))[0]], self.covered[lanes].max())
        thread = lanes % self.threads
        for warp in np.unique(thread // WARP).tolist():
            part = own[warp * WARP : (warp + 1) * WARP]
            np.maximum(part, self.met[lanes[thread // WARP == warp]].max(), out=part)
        np.maximum.at(own, thread, self.passed[lanes])
        return own

    def rows(self, blocks: Array) -> Array:
        """The threads of each block: ``(blocks, threads)``."""
        rows: Array = blocks[:, None] * self.threads + np.arange(self.threads)
        return rows
