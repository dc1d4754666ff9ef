"""Bulk copies that are under way: done when somebody waits for them, the latest moment that a program may count on.

A copy to shared memory ends when somebody looks whether the phase of its barrier is over: it was read when issued, and
is written then, by the thread that issued it. So what is read before shows what was there, or as a race. A copy to
global memory is read and written when its thread waits for its group: whoever changes the source before, changes what
is copied. What is still under way when a block ends is told.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.cluster_barrier import ENDED
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

UNAWAITED = "bulk copy that nobody waits for"


@define(eq=False)
class Inward:
    """A copy of ``lanes`` into the shared memory of block ``row`` of the batch, that ``finish`` ends."""

    site: Site
    lanes: Lanes
    row: int
    finish: "Callable[[Batch], None]"


@define(eq=False)
class Outward:
    """A copy of ``lanes`` to global memory; ``groups``: how many groups each had committed before."""

    site: Site
    lanes: Lanes
    groups: Array
    finish: "Callable[[Batch, Array], None]"
    left: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.left = np.ones(self.lanes.count, bool)


@define(eq=False)
class Bulk:
    """Of a batch: copies to shared memory by the number of their barrier, those to global memory, and the groups that
    each of ``lanes`` lanes has committed."""

    lanes: int
    inward: dict[int, list[Inward]] = field(factory=dict)
    outward: list[Outward] = field(factory=list)
    committed: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.committed = np.zeros(self.lanes, np.int64)

    def issue(self, key: int, copy: Inward) -> None:
        self.inward.setdefault(key, []).append(copy)

    def look(self, batch: "Batch", key: int) -> None:
        """Somebody looks at barrier ``key``: what it counts arrives."""
        for copy in self.inward.pop(key, ()):
            _as(batch, copy.lanes, copy.finish)

    def commit(self, lanes: Lanes) -> None:
        self.committed[lanes.flat] += 1

    def wait(self, batch: "Batch", lanes: Lanes, left: int) -> None:
        """End the copies of ``lanes`` but for those of the last ``left`` groups."""
        waits = np.zeros(self.lanes, bool)
        waits[lanes.flat] = True
        self._end(batch, lambda copy: waits[copy.lanes.flat] & (copy.groups < self.committed[copy.lanes.flat] - left))

    def _end(self, batch: "Batch", due: Callable[[Outward], Array]) -> None:
        for copy in self.outward:
            now = due(copy) & copy.left
            if now.any():
                copy.left &= ~now
                part = Lanes(copy.lanes.blocks, copy.lanes.threads, ragged=copy.lanes.flat[now])
                chosen = np.flatnonzero(now)
                _as(batch, part, lambda batch, copy=copy, chosen=chosen: copy.finish(batch, chosen))  # type: ignore[misc]
        self.outward = [copy for copy in self.outward if copy.left.any()]

    def ended(self, batch: "Batch", rows: Array) -> None:
        """The last threads of those blocks leave the kernel."""
        for copies in list(self.inward.values()):
            for copy in copies:
                if copy.row in rows:
                    words = "nobody waited for this copy into shared memory when the last thread of the block left"
                    batch.fault(ENDED, copy.lanes, copy.site, np.ones((1, 1), bool), _saying(words))
        self.inward = {
            key: kept for key, all_ in self.inward.items() if (kept := [one for one in all_ if one.row not in rows])
        }
        for out in self.outward:
            late = np.isin(out.lanes.flat // out.lanes.threads, rows) & out.left
            words = "the thread did not wait until this copy had read shared memory, before its block ended"
            batch.fault(UNAWAITED, out.lanes, out.site, late, _saying(words), benign=True)
        if self.outward:
            self._end(batch, lambda copy: np.isin(copy.lanes.flat // copy.lanes.threads, rows))


def _as(batch: "Batch", lanes: Lanes, act: "Callable[[Batch], None]") -> None:
    """``act`` with ``lanes`` at hand."""
    before, batch.lanes = batch.lanes, lanes
    act(batch)
    batch.lanes = before


def _saying(words: str) -> Callable[[int], str]:
    return lambda lane: words
