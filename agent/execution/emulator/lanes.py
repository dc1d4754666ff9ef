"""Which lanes of a batch are active, and how values travel between the whole batch and a part of it.

A batch is ``blocks`` x ``threads`` lanes. A value is an array of two axes that broadcasts to the active lanes: ``(1,
1)`` where it is the same everywhere, ``(1, threads)`` where it depends on the thread alone, ``(blocks, 1)`` on the
block alone, else full. Active lanes are a *rectangle* (some rows, some columns; None means all) or, where a condition
cut across both, a *ragged* list of lane numbers; in a ragged part values have shape ``(1, 1)`` or ``(1, count)``.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from attrs import define

from agent.execution.emulator.addresses import Array

WARP = 32


@define(eq=False, slots=False)
class Lanes:
    """``ragged`` excludes ``rows`` and ``columns``. Every index array is sorted."""

    blocks: int
    threads: int
    rows: Array | None = None
    columns: Array | None = None
    ragged: Array | None = None

    @cached_property
    def whole(self) -> bool:
        """Every lane of the batch."""
        return self.rows is None and self.columns is None and self.ragged is None

    @cached_property
    def all_rows(self) -> bool:
        """A rectangle over every block of the batch."""
        return self.rows is None and self.ragged is None

    @cached_property
    def whole_warps(self) -> bool:
        """Every thread of every block that takes part (so that warps can be cut by reshaping alone)."""
        return self.columns is None and self.ragged is None

    @cached_property
    def shape(self) -> tuple[int, int]:
        if self.ragged is not None:
            return 1, len(self.ragged)
        return (
            self.blocks if self.rows is None else len(self.rows),
            self.threads if self.columns is None else len(self.columns),
        )

    @cached_property
    def count(self) -> int:
        return self.shape[0] * self.shape[1]

    @cached_property
    def block(self) -> Array:
        """Row number in the batch of each lane, broadcastable to ``shape``."""
        if self.ragged is not None:
            return (self.ragged // self.threads)[None, :]
        return (np.arange(self.blocks) if self.rows is None else self.rows)[:, None]

    @cached_property
    def thread(self) -> Array:
        """Thread number in its block of each lane, broadcastable to ``shape``."""
        if self.ragged is not None:
            return (self.ragged % self.threads)[None, :]
        return (np.arange(self.threads) if self.columns is None else self.columns)[None, :]

    @cached_property
    def flat(self) -> Array:
        """Lane numbers ``block * threads + thread``, ascending, shape ``(count,)``."""
        if self.ragged is not None:
            return self.ragged
        return np.asarray(self.block * self.threads + self.thread).reshape(-1)

    @cached_property
    def warp_slot(self) -> tuple[Array, int]:
        """For each active lane (in ``flat`` order) its place in a ``(warps, 32)`` table of the warps that take part,
        and how many warps those are."""
        per_block = -(-self.threads // WARP)
        thread = np.broadcast_to(self.thread, self.shape).reshape(-1)
        block = np.broadcast_to(self.block, self.shape).reshape(-1)
        warp = block * per_block + thread // WARP
        first = np.empty(len(warp), bool)
        first[:1] = True
        np.not_equal(warp[1:], warp[:-1], out=first[1:])
        rank = np.cumsum(first) - 1
        return rank * WARP + thread % WARP, int(rank[-1]) + 1 if len(rank) else 0

    @cached_property
    def warp_ids(self) -> Array:
        """Number in the batch of each warp that takes part, in the order of ``warp_slot``'s table."""
        slot, warps = self.warp_slot
        per_block = -(-self.threads // WARP)
        ids = np.empty(warps, np.int64)
        flat = self.flat
        ids[slot // WARP] = flat // self.threads * per_block + flat % self.threads // WARP
        return ids

    @cached_property
    def warps(self) -> int:
        """How many warps have an active lane."""
        if self.ragged is not None:
            return self.warp_slot[1]
        if self.columns is None:
            return self.shape[0] * -(-self.threads // WARP)
        return self.shape[0] * len(np.unique(self.columns // WARP))

    def gather(self, value: Array) -> Array:
        """A value of the whole batch as these lanes see it."""
        height, width = value.shape
        if self.ragged is not None:
            if height == 1:
                return value if width == 1 else value.take(self.thread[0], axis=1)
            if width == 1:
                return value.reshape(-1).take(self.block)
            return value.reshape(-1).take(self.ragged)[None, :]
        if self.rows is not None and height > 1:
            value = value[self.rows]
        if self.columns is not None and width > 1:
            value = value[:, self.columns]
        return value

    def scatter(self, whole: Array, part: Array) -> Array:
        """A new value of the whole batch: ``part`` on these lanes, ``whole`` elsewhere."""
        if self.whole:
            return part
        if self.ragged is not None:
            result = _full(whole, self.blocks, self.threads)
            result.reshape(-1)[self.ragged] = part.reshape(-1)
            return result
        height = self.blocks if self.rows is not None or max(whole.shape[0], part.shape[0]) > 1 else 1
        width = self.threads if self.columns is not None or max(whole.shape[1], part.shape[1]) > 1 else 1
        result = _full(whole, height, width)
        if self.rows is None:
            result[:, self.columns] = part
        elif self.columns is None:
            result[self.rows] = part
        else:
            result[self.rows[:, None], self.columns[None, :]] = part
        return result

    def split(self, chosen: Array) -> tuple["Lanes | None", "Lanes | None"]:
        """These lanes parted by a condition (broadcastable to ``shape``): where it holds, and the rest."""
        if chosen.size == 1:
            return (self, None) if chosen.reshape(-1)[0] else (None, self)
        hits = int(np.count_nonzero(chosen))
        if hits == chosen.size:
            return self, None
        if hits == 0:
            return None, self
        return self.select(chosen), self.select(~chosen)

    def select(self, chosen: Array) -> "Lanes":
        """The lanes where ``chosen`` holds (at least one does)."""
        if self.ragged is None and chosen.shape[0] == 1 and chosen.size > 1:
            return Lanes(self.blocks, self.threads, self.rows, self.thread[0][chosen[0]])
        if self.ragged is None and chosen.shape[1] == 1 and chosen.size > 1:
            return Lanes(self.blocks, self.threads, self.block[:, 0][chosen[:, 0]], self.columns)
        return Lanes(self.blocks, self.threads, ragged=self.flat[np.broadcast_to(chosen, self.shape).reshape(-1)])


def _full(value: Array, height: int, width: int) -> Array:
    return np.array(np.broadcast_to(value, (height, width)), order="C")


def by_block(flat: Array, threads: int) -> list[tuple[int, Array]]:
    """Lane numbers as the row of each block and its threads."""
    rows, thread = np.divmod(flat, threads)
    return [(row, thread[rows == row]) for row in np.unique(rows).tolist()]


def all_lanes(blocks: int, threads: int) -> Lanes:
    return Lanes(blocks, threads)


def union(parts: Sequence[Lanes]) -> Lanes:
    """The lanes of all ``parts`` (which have none in common), as a rectangle where that is plain to see."""
    first = parts[0]
    if len(parts) == 1:
        return first
    blocks, threads = first.blocks, first.threads
    count = sum(part.count for part in parts)
    if count == blocks * threads:
        return Lanes(blocks, threads)
    if all(part.ragged is None for part in parts):
        if all(_same(part.rows, first.rows) and part.columns is not None for part in parts):
            columns = _merged([part.thread[0] for part in parts])
            return Lanes(blocks, threads, first.rows, None if len(columns) == threads else columns)
        if all(_same(part.columns, first.columns) and part.rows is not None for part in parts):
            rows = _merged([part.block[:, 0] for part in parts])
            return Lanes(blocks, threads, None if len(rows) == blocks else rows, first.columns)
    return Lanes(blocks, threads, ragged=_merged([part.flat for part in parts]))


def _same(first: Array | None, second: Array | None) -> bool:
    if first is None or second is None:
        return first is second
    return first is second or np.array_equal(first, second)


def _merged(parts: Sequence[Array]) -> Array:
    merged = np.concatenate(parts)
    merged.sort()
    return merged
