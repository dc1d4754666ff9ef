"""Copies from global to shared memory that are under way (``cp.async``): read when issued, written when waited for.

Until its thread waits, the target keeps what it held, so that a missing wait shows as stale or unwritten data. (The
hardware may be earlier; a program must not count on either.)
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@define(eq=False)
class Copy:
    """``targets`` are shared addresses ``(1, count)``, ``values`` words of ``width`` bytes side by side; ``groups``
    says for each lane how many groups it had committed before."""

    site: Site
    lanes: Lanes
    targets: Array
    width: int
    values: list[Array]
    groups: Array


@define(eq=False)
class Copies:
    """Per batch: what is under way, and how many groups each lane has committed."""

    lanes: int
    pending: list[Copy] = field(factory=list)
    committed: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.committed = np.zeros(self.lanes, np.int64)

    def issue(self, lanes: Lanes, site: Site, targets: Array, width: int, values: list[Array]) -> None:
        flat = [np.array(np.broadcast_to(value, lanes.shape)).reshape(1, -1) for value in (targets, *values)]
        ragged = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat)
        self.pending.append(Copy(site, ragged, flat[0], width, flat[1:], self.committed[lanes.flat]))

    def commit(self, lanes: Lanes) -> None:
        self.committed[lanes.flat] += 1

    def wait(self, batch: "Batch", lanes: Lanes, left: int | None) -> None:
        """Finish the copies of ``lanes``, all but those of the last ``left`` groups (None: all copies)."""
        waits = np.zeros(self.lanes, bool)
        waits[lanes.flat] = True
        still: list[Copy] = []
        for copy in self.pending:
            flat = copy.lanes.flat
            due = waits[flat]
            if left is not None:
                due &= copy.groups < self.committed[flat] - left
            if due.any():
                _finish(batch, _part(copy, due))
            if not due.all():
                still.append(_part(copy, ~due))
        self.pending = still


def _part(copy: Copy, chosen: Array) -> Copy:
    if chosen.all():
        return copy
    lanes = Lanes(copy.lanes.blocks, copy.lanes.threads, ragged=copy.lanes.flat[chosen])
    values = [value[:, chosen] for value in copy.values]
    return Copy(copy.site, lanes, copy.targets[:, chosen], copy.width, values, copy.groups[chosen])


def _finish(batch: "Batch", copy: Copy) -> None:
    batch.shared.store(batch, copy.lanes, copy.site, copy.targets, 0, copy.width, copy.values)
