"""Threads that leave a kernel while others of their block come to a barrier.

The hardware counts them out, so nothing hangs. Where they came to that barrier before and left instead of coming again,
its condition differs between the threads of a block, which CUDA forbids (C++ programming guide, "Synchronization
Functions"): a fault. Where they left earlier but their warp goes on to the barrier (the usual ``if (i >= n) return;``),
not all threads of the warp execute it, which ``bar.sync`` asks for (PTX ISA, "bar, barrier"): programs have that, and
it works.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

SPLIT = "barrier of a split warp"


@define(eq=False)
class Leavers:
    """``came``: by line of a barrier, which threads of the batch have come to it so far; ``told``: lines of which it
    has been said that warps come to them split."""

    came: dict[tuple[str, int], Array] = field(factory=dict)
    told: set[tuple[str, int]] = field(factory=set)

    def passed(self, batch: "Batch", going: Iterable[tuple[Lanes, Site]]) -> None:
        """These threads go on from a barrier of the whole block."""
        for lanes, site in going:
            place = (site.file, site.line)
            came = self.came.get(place)
            if came is None:
                came = self.came[place] = np.zeros(batch.everyone.count, bool)
            elif batch.exited is not None and self._again(batch, lanes, site, came):
                continue
            came[lanes.flat] = True
            if batch.exited is not None and place not in self.told and _split(batch, lanes, site, batch.exited):
                self.told.add(place)

    def _again(self, batch: "Batch", lanes: Lanes, site: Site, came: Array) -> bool:
        """Whether some of the same blocks came before and have left; reported if so."""
        assert batch.exited is not None
        left = (came & batch.exited).reshape(-1, lanes.threads)
        rows: Array = np.any(left, axis=1)
        bad = np.broadcast_to(rows[lanes.block], lanes.shape)
        if not bad.any():
            return False
        row = int(np.broadcast_to(lanes.block, lanes.shape)[bad].reshape(-1)[0])
        thread, count = int(left[row].argmax()), int(left[row].sum())
        words = f"{count} threads of the block that came to this barrier before have left the kernel instead"
        there = (row * lanes.threads + thread, site)
        batch.fault("divergent barrier", lanes, site, bad, lambda lane: words, other=there)
        return True


def _split(batch: "Batch", lanes: Lanes, site: Site, exited: Array) -> bool:
    """Whether lanes of a warp came and others of it have left; reported if so."""
    per_block = -(-lanes.threads // WARP)
    padded = np.zeros((len(batch.living), per_block * WARP), bool)
    padded[:, : lanes.threads] = exited.reshape(-1, lanes.threads)
    warps: Array = np.any(padded.reshape(-1, WARP), axis=1)
    if not warps.any():
        return False
    flat = lanes.flat
    mine = flat // lanes.threads * per_block + flat % lanes.threads // WARP
    bad: Array = warps[mine]
    if bad.any():
        words = "others of its warp have left the kernel before this barrier"
        batch.fault(SPLIT, lanes, site, bad, lambda lane: words, benign=True)
    return bool(bad.any())
