"""Instructions that a whole warp executes together (``mma``, ``ldmatrix``): the warps that have all their lanes.

A warp of which lanes are missing (they went another way, have exited, or the block has no such threads) may not execute
them at all: that is a fault, and its lanes get zeros.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP, Lanes
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

#: Base opcodes of such instructions.
COLLECTIVE = frozenset(("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"))


@define(eq=False)
class Whole:
    """``lanes`` are those of complete warps; ``kept`` their positions among ``all``, None where that is all of them."""

    all: Lanes
    lanes: Lanes
    kept: Array | None
    rows: int = field(init=False, default=0)

    def tables(self, operands: Sequence[Array]) -> list[Array]:
        """Values of the lanes at hand as tables ``(warps, 32)``. Blocks that all hold the same are computed once."""
        self.rows = max([operand.shape[0] for operand in operands], default=1)
        if self.lanes.ragged is not None:
            self.rows = 1
        shape = (self.rows, self.lanes.shape[1])
        return [np.broadcast_to(self.take(operand), shape).reshape(-1, WARP) for operand in operands]

    def take(self, value: Array) -> Array:
        """A value of all lanes as those of complete warps have it."""
        if self.kept is None or value.size == 1:
            return value
        cut: Array = np.broadcast_to(value, self.all.shape).reshape(-1)[self.kept][None, :]
        return cut

    def back(self, table: Array) -> Array:
        """A table as a value of all lanes."""
        value = table.reshape(-1, self.lanes.shape[1])
        if self.kept is None:
            return value
        result = np.zeros(self.all.count, value.dtype)
        result[self.kept] = value.reshape(-1)
        return result.reshape(self.all.shape)


def whole_warps(batch: "Batch", site: Site) -> Whole:
    """The complete warps among the lanes of ``batch``; the others are reported."""
    lanes = batch.lanes
    if lanes.whole_warps and lanes.threads % WARP == 0:
        return Whole(lanes, lanes, None)
    slot, count = lanes.warp_slot
    full = (np.bincount(slot // WARP, minlength=count) == WARP)[slot // WARP]
    if full.all():
        return Whole(lanes, lanes, None)
    batch.fault(
        "incomplete warp",
        lanes,
        site,
        ~full,
        lambda lane: f"executes {site.instruction.base}, for which all {WARP} lanes of its warp must be there",
    )
    kept = np.flatnonzero(full)
    return Whole(lanes, Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[kept]), kept)
