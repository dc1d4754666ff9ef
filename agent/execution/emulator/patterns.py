"""A shared-memory access as a pattern that is worked out once.

In a loop the address register of an access is often the very same array every time round. Then everything that follows
from the addresses alone (are they in range, which elements, how many bank passes, do lanes collide) still holds.
"""

from functools import cached_property

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.sites import Site

SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}
MOST_LARGE = 64  # patterns kept for addresses that differ between blocks: each holds megabytes


@define(eq=False, slots=False)
class Pattern:
    """Sound accesses of ``span`` bytes each at ``offsets`` (broadcastable to ``lanes.shape``). ``rows``: the blocks
    whose shared memory it is, where that is not each lane's own."""

    site: Site
    lanes: Lanes
    offsets: Array
    span: int
    rows: Array | None = None
    passes: int | None = None
    known: bool = False
    _elements: dict[tuple[int, int], Array] = field(factory=dict)

    @cached_property
    def alike(self) -> bool:
        """Every block of the batch accesses the same offsets."""
        return self.rows is None and self.lanes.all_rows and self.offsets.shape[0] == 1

    @cached_property
    def row(self) -> Array:
        """The block of the batch whose memory each lane accesses, broadcastable to ``lanes.shape``."""
        return self.lanes.block if self.rows is None else self.rows

    @cached_property
    def low(self) -> int:
        return int(self.offsets.min())

    @cached_property
    def high(self) -> int:
        """The first byte beyond all accesses."""
        return int(self.offsets.max()) + self.span

    @cached_property
    def apart(self) -> bool:
        """No two lanes of a block touch the same byte; False where that is not cheap to tell."""
        offsets, lanes = self.offsets, self.lanes
        if offsets.shape[1] == 1:
            return lanes.shape[1] == 1 and lanes.ragged is None
        if lanes.ragged is not None:
            row = np.diff(lanes.block[0])
            return bool(((np.diff(offsets[0]) >= self.span) | (row > 0)).all())
        if bool((offsets[:, 1:] - offsets[:, :-1] >= self.span).all()):
            return True
        if offsets.shape[0] > 1:
            return False
        ordered = np.sort(offsets[0])
        return bool((np.diff(ordered) >= self.span).all())

    def elements(self, width: int, row: int) -> Array:
        """Element numbers in an array of ``row`` elements of ``width`` bytes per block."""
        found = self._elements.get((width, row))
        if found is None:
            found = self.row * row + (self.offsets >> SHIFT[width])
            self._elements[width, row] = found
        return found

    def columns(self, width: int) -> Array:
        """Element numbers within a block, where every block accesses the same."""
        found = self._elements.get((width, 0))
        if found is None:
            found = self._elements[width, 0] = self.offsets[0] >> SHIFT[width]
        return found


@define(eq=False)
class Patterns:
    """The last pattern of each site."""

    last: dict[int, tuple[Array, Lanes, Pattern]] = field(factory=dict)
    large: int = 0

    def find(self, site: Site, lanes: Lanes, addresses: Array) -> Pattern | None:
        found = self.last.get(site.index)
        return found[2] if found is not None and found[0] is addresses and found[1] is lanes else None

    def keep(self, addresses: Array, pattern: Pattern) -> None:
        if pattern.offsets.size > 4096:
            if self.large >= MOST_LARGE:
                return
            self.large += pattern.site.index not in self.last
        self.last[pattern.site.index] = (addresses, pattern.lanes, pattern)
