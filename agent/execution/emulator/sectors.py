"""How a warp's accesses fall on 32-byte sectors of global memory and on the 32 banks of shared memory.

Tables have a row for each warp and a column for each lane; ``active`` marks the lanes that take part.
"""

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP

SECTOR_BITS = 5
BANKS = 32


def filled(table: Array, active: Array) -> Array:
    """The table with idle lanes set to the largest entry of their row, so that they add nothing distinct."""
    if active.all():
        return table
    most = np.where(active, table, 0).max(axis=1, keepdims=True)
    return np.where(active, table, most)


def sectors(table: Array, span: int) -> tuple[int, int]:
    """Sectors touched by aligned accesses of ``span`` bytes at byte offsets ``table``, and the fewest that would do.

    The fewest: the distinct bytes of each warp, packed.
    """
    if not (table[:, 1:] >= table[:, :-1]).all():
        table = np.sort(table, axis=1)
    rows = len(table)
    lines = table >> SECTOR_BITS
    touched = rows + int(np.count_nonzero(lines[:, 1:] != lines[:, :-1]))
    distinct = 1 + np.count_nonzero(table[:, 1:] != table[:, :-1], axis=1)
    ideal = int((-(-distinct * span >> SECTOR_BITS)).sum())
    return touched, ideal


def wavefronts(table: Array, active: Array, span: int, serial: bool = False) -> int:
    """Passes that shared memory needs for aligned accesses of ``span`` bytes at offsets ``table``.

    One pass serves each of the 32 four-byte banks once; lanes that read the same word share it. 8-byte accesses go by
    half warps and 16-byte ones by quarters, unless the whole warp fits in one pass. (NVIDIA, CUDA C++ programming
    guide, "Shared memory" of compute capability 5.x and later.) ``serial``: atomics, for which lanes on one word
    queue.
    """
    words = filled(table, active) >> 2
    if serial:
        return int(_most_per_bank(words, np.broadcast_to(active, words.shape)).sum())
    if span <= 4:
        return int(_passes(words).sum())
    per_lane = span // 4
    wide = words[:, :, None] + np.arange(per_lane)
    together = _passes(wide.reshape(len(words), -1))
    parts = wide.reshape(len(words) * per_lane, WARP // per_lane * per_lane)
    apart = _passes(parts).reshape(len(words), per_lane)
    present = np.broadcast_to(active, words.shape).reshape(len(words), per_lane, -1).any(axis=2)
    return int(np.where(together <= 1, together, (apart * present).sum(axis=1)).sum())


def _passes(words: Array) -> Array:
    """For each row, the largest number of distinct words on one bank."""
    order = np.sort((words % BANKS << 32) | words // BANKS, axis=1)
    fresh = np.ones(order.shape, bool)
    np.not_equal(order[:, 1:], order[:, :-1], out=fresh[:, 1:])
    return _most_per_bank(order >> 32, fresh)


def _most_per_bank(words: Array, counted: Array) -> Array:
    rows = np.arange(len(words))[:, None] * BANKS
    places = (rows + words % BANKS)[counted]
    most: Array = np.bincount(places, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    return most
