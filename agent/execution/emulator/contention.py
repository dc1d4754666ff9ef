"""How many atomics of a launch meet in one 32-byte sector of memory, where they queue."""

import numpy as np
from attrs import define, field

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.sectors import SECTOR_BITS

_MERGED = frozenset(("add", "min", "max", "and", "or", "xor", "inc", "dec"))
MOST = 1 << 16
"""Sectors of one buffer beyond which none is looked for that all blocks want: atomics on so many are spread."""


@define(eq=False)
class Contention:
    """``operations`` in all by buffer; ``wanted``: by buffer and sector, operations there and of how many blocks."""

    operations: dict[str, int] = field(factory=dict)
    wanted: dict[str, dict[int, tuple[int, int]]] = field(factory=dict)

    def close(self, name: str, block: Array, sector: Array, count: Array) -> None:
        """The atomics of one batch: ``count`` operations of a block (row of the batch) in a sector."""
        self.operations[name] = self.operations.get(name, 0) + int(count.sum())
        places, inverse = np.unique(sector, return_inverse=True)
        if len(places) > MOST:
            return
        totals = np.bincount(inverse, weights=count).astype(np.int64)
        pairs = np.unique(np.stack([inverse.reshape(-1), block]), axis=1)[0]
        blocks = np.bincount(pairs, minlength=len(places))
        known = self.wanted.setdefault(name, {})
        for place, total, many in zip(places.tolist(), totals.tolist(), blocks.tolist(), strict=True):
            before = known.get(place, (0, 0))
            known[place] = (before[0] + total, before[1] + many)

    def common(self, blocks_run: int) -> dict[str, int]:
        """For each buffer the operations in the most wanted of those sectors that all blocks go to."""
        return {
            name: max((total for total, blocks in known.values() if blocks >= blocks_run), default=0)
            for name, known in self.wanted.items()
        }


def operations(table: Array, active: Array, instruction: Instruction) -> tuple[Array, Array, Array]:
    """Warp (row of ``table``), sector and number of the operations that memory carries out one after the other there.

    ``table`` has byte offsets by warp and lane. One request carries each word of a sector once; what else a warp's
    lanes want of a word comes after that. Where all lanes of a warp add whole numbers to one address, compilers combine
    them.
    """
    active = np.broadcast_to(active, table.shape)
    rows = np.broadcast_to(np.arange(len(table))[:, None], table.shape)[active]
    order = np.lexsort((table[active], rows))
    rows, places = rows[order], table[active][order]
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (places[1:] != places[:-1])])
    counts = np.diff(np.r_[starts, len(rows)])
    rows, places = rows[starts], places[starts]
    if _MERGED & set(instruction.modifiers) and instruction.types[-1][0] in "usb":
        counts = np.where(np.bincount(rows, minlength=len(table))[rows] == 1, 1, counts)
    sectors = places >> SECTOR_BITS
    firsts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (sectors[1:] != sectors[:-1])])
    return rows[firsts], sectors[firsts], np.maximum.reduceat(counts, firsts)
