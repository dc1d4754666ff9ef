"""Threads that ask a barrier in shared memory, again and again, whether its phase is over, when nobody is left who
could end it: all of the batch ask so, or wait at barriers, and no ``mbarrier`` has changed for long."""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.mbarrier import State
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

MOST_POLLS = 512  # of each thread, in vain


class Hopeless(Exception):
    """The batch has been reported and ends here."""


@define(eq=False)
class Stuck:
    """``polls`` by lane, since a barrier last changed; ``idle``: whether all of the batch did nothing else for long."""

    polls: Array | None = None
    idle: bool = False

    def moved(self) -> None:
        self.polls, self.idle = None, False

    def polled(self, batch: "Batch", site: Site, over: Array, waiting: list[State]) -> None:
        """The lanes at hand have asked; ``waiting`` are the states of barriers that are not ``over`` for some. Raises
        Hopeless."""
        if over.all():
            return
        if self.polls is None:
            self.polls = np.zeros(batch.everyone.count, np.int64)
        mine = batch.lanes.flat[~over]
        self.polls[mine] += 1
        self.idle = bool(self.polls[mine[0]] > MOST_POLLS) and self._all(batch)
        if self.idle and batch.alone:
            state = waiting[0]
            missing = f"{state.pending} of {state.expected} arrivals"
            if state.nbytes:
                missing += f" and {state.nbytes} bytes"
            words = f"waits for ever at an mbarrier: {missing} are missing, and nobody is left to bring them"
            batch.fault("deadlock", batch.lanes, site, ~over, lambda lane: words)
            raise Hopeless

    def _all(self, batch: "Batch") -> bool:
        """Whether every thread that there is polls in vain, or waits where others have to come."""
        assert self.polls is not None
        idle = self.polls > MOST_POLLS // 2
        if batch.exited is not None:
            idle |= batch.exited
        for arrivals in batch.barriers.waiting.values():
            for arrival in arrivals:
                idle[arrival.lanes.flat] = True
        for lanes in [] if batch.team is None else [lanes for lanes, _ in batch.team.waiting]:
            idle[lanes.flat] = True
        for parts in batch.parked.values():
            for lanes in parts:
                idle[lanes.flat] = True
        return bool(idle.all())
