"""How a warp's accesses fall on 32-byte sectors of global memory and on the 32 banks of shared memory.

Tables have a row for each warp and a column for each lane; ``active`` marks the lanes that take part.
"""

from typing import NamedTuple

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP

SECTOR_BITS = 5
LINE_BITS = 7
BANKS = 32


def filled(table: Array, active: Array) -> Array:
    """The table with idle lanes set to the largest entry of their row, so that they add nothing distinct."""
    if active.all():
        return table
    most = np.where(active, table, 0).max(axis=1, keepdims=True)
    return np.where(active, table, most)


class Sectors(NamedTuple):
    """The distinct sectors of each warp, one entry each: row of the table and sector number. ``ideal`` counts the
    fewest sectors that could hold the distinct bytes of each warp, ``cache_lines`` the distinct lines of 128 bytes,
    ``partial`` those sectors of which some bytes are not written, ``partial_lines`` the lines that these are in."""

    warp: Array
    sector: Array
    ideal: int
    cache_lines: int
    partial: int
    partial_lines: int


def one_sector(offset: Array, span: int) -> Sectors:
    """What a warp touches whose lanes all ask for the same ``span`` bytes at ``offset`` (one entry)."""
    whole = max(1, span >> SECTOR_BITS)
    partial = int(span < 1 << SECTOR_BITS)
    return Sectors(np.zeros(1, np.int64), offset >> SECTOR_BITS, whole, 1, partial, partial)


def sectors(table: Array, span: int, writes: bool = False) -> Sectors:
    """What aligned accesses of ``span`` bytes at byte offsets ``table`` (int64, no idle lanes) touch. Which sectors are
    partial is asked of writes alone."""
    flat = table.reshape(-1)
    steps = _steps(flat)
    if int(steps.min()) < 0:
        flat = np.sort(table, axis=1).reshape(-1)
        steps = _steps(flat)
    distinct = 1 + np.bitwise_count(np.packbits(steps != 0).view(np.uint32)).astype(np.int64)
    numbers = flat >> SECTOR_BITS
    fresh = _steps(numbers) != 0
    fresh[::WARP] = True
    places = np.flatnonzero(fresh)
    ideal = int((-(-distinct * span >> SECTOR_BITS)).sum())
    found, rows = numbers[places], places // WARP
    lines = found >> LINE_BITS - SECTOR_BITS
    covered = int(distinct.sum()) * span == len(found) << SECTOR_BITS
    if covered or not writes:
        return Sectors(rows, found, ideal, _distinct_lines(rows, lines), 0, 0)
    partial = _partial(steps, fresh, places, span)
    partial_lines = _distinct_lines(rows[partial], lines[partial])
    return Sectors(rows, found, ideal, _distinct_lines(rows, lines), int(np.count_nonzero(partial)), partial_lines)


def _distinct_lines(rows: Array, lines: Array) -> int:
    """Of lines in ascending order within each row."""
    return min(1, len(rows)) + int(np.count_nonzero((lines[1:] != lines[:-1]) | (rows[1:] != rows[:-1])))


def _partial(steps: Array, fresh: Array, places: Array, span: int) -> Array:
    """Of which sectors not all bytes are written."""
    distinct = np.add.reduceat((steps != 0) | fresh, places, dtype=np.int64)
    partial: Array = distinct * span < 1 << SECTOR_BITS
    return partial


def local_sectors(table: Array, active: Array, span: int) -> int:
    """Sectors of local memory for accesses of ``span`` bytes at each lane's own offset: "consecutive 32-bit words are
    accessed by consecutive thread IDs" (CUDA C++ Programming Guide, "Local Memory"), so eight lanes share a sector."""
    words = (table >> 2)[:, :, None] + np.arange(max(1, span // 4))
    places = words * 4 + (np.arange(WARP) // 8)[None, :, None]
    wide = np.broadcast_to(active, table.shape)[:, :, None] & np.ones(words.shape, bool)
    flat = np.sort(filled(places.reshape(len(table), -1), wide.reshape(len(table), -1)), axis=1)
    return len(flat) + int(np.count_nonzero(flat[:, 1:] != flat[:, :-1]))


def _steps(flat: Array) -> Array:
    """How much each lane is above the lane before it, 0 for the first of each warp."""
    steps = np.empty(len(flat), np.int64)
    np.subtract(flat[1:], flat[:-1], out=steps[1:])
    steps[::WARP] = 0
    return steps


def wavefronts(table: Array, active: Array, span: int, serial: bool = False) -> int:
    """Passes that shared memory needs for aligned accesses of ``span`` bytes at offsets ``table``.

    One pass serves each of the 32 four-byte banks once; lanes that read the same word share it. 8-byte accesses go by
    half warps and 16-byte ones by quarters, or by groups twice as large where neighbours (lanes 2k and 2k+1, or k and
    k+2 of each four) all access the same address. The rule for groups was found by counting
    ``l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld`` on an H200. ``serial``: atomics, for which lanes on one word
    queue.
    """
    words = filled(table, active) >> 2
    if serial:
        return int(_most_per_bank(words, np.broadcast_to(active, words.shape)).sum())
    if span <= 4:
        return int(_passes(words).sum())
    per_lane = span // 4
    wide = words[:, :, None] + np.arange(per_lane)
    idle = ~np.broadcast_to(active, words.shape)
    paired = _alike(words, idle, 1) | _alike(words, idle, 2)
    total = 0
    for chosen, groups in ((paired, per_lane // 2), (~paired, per_lane)):
        if chosen.any():
            passes = _passes(wide[chosen].reshape(-1, WARP // groups * per_lane)).reshape(-1, groups)
            total += int((passes * (~idle[chosen]).reshape(len(passes), groups, -1).any(axis=2)).sum())
    return total


def _alike(words: Array, idle: Array, distance: int) -> Array:
    """For each warp, whether every lane accesses the same address as the lane whose number differs in that bit."""
    partner = np.arange(WARP) ^ distance
    alike: Array = ((words == words[:, partner]) | idle | idle[:, partner]).all(axis=1)
    return alike


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
