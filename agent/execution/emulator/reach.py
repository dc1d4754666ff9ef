"""How far each access to memory went: for those who look for the extents of buffers rather than check them.

One record for each instruction and buffer: the first and last byte, whether anything was read that nothing had written
before, and up to which block of the grid there were accesses at all.
"""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from agent.execution.device import Reached
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.patterns import Pattern
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

Three = tuple[int, int, int]


@define
class _Span:
    """``low <= offset < high`` from the buffer's address; ``blocks`` is one more than the largest index by axis."""

    line: int
    low: int
    high: int
    blocks: Three
    reads: bool = False
    writes: bool = False
    fresh: bool = False


@define(eq=False)
class Reach:
    """What one run reached. ``shared`` is the first byte of shared memory beyond all accesses."""

    spans: dict[tuple[str, int, str], _Span] = field(factory=dict)
    shared: int = 0

    def on_global(
        self, batch: "Batch", lanes: Lanes, site: Site, buffer: Buffer, offsets: Array, nbytes: int, reads: bool,
        writes: bool,
    ) -> None:  # fmt: skip
        """An access of ``nbytes`` for each lane, told before it changes anything; ``offsets`` from its base."""
        low, high = int(offsets.min()) - buffer.start, int(offsets.max()) + nbytes - buffer.start
        blocks = _blocks(batch, lanes)
        span = self.spans.setdefault((site.kernel, site.index, buffer.name), _Span(site.line, low, high, blocks))
        span.low, span.high = min(span.low, low), max(span.high, high)
        span.blocks = (
            max(span.blocks[0], blocks[0]), max(span.blocks[1], blocks[1]), max(span.blocks[2], blocks[2]),
        )  # fmt: skip
        span.reads |= reads
        span.writes |= writes
        if reads and not span.fresh:
            span.fresh = _unwritten(buffer, offsets, nbytes)

    def on_shared(self, pattern: Pattern) -> None:
        self.shared = max(self.shared, pattern.high)

    def reached(self) -> tuple[Reached, ...]:
        return tuple(
            Reached(name, kernel, index, one.line, one.reads, one.writes, one.fresh, one.low, one.high, one.blocks)
            for (kernel, index, name), one in self.spans.items()
        )


def _blocks(batch: "Batch", lanes: Lanes) -> Three:
    numbers = batch.numbers[np.unique(lanes.block)]
    x, y, _ = batch.grid
    return int((numbers % x).max()) + 1, int((numbers // x % y).max()) + 1, int((numbers // (x * y)).max()) + 1


def _unwritten(buffer: Buffer, offsets: Array, nbytes: int) -> bool:
    """Whether any byte that is read was written by nobody."""
    if buffer.written is None:
        return True
    index = offsets.reshape(-1).astype(np.int64)
    return any(bool((buffer.written.take(index + k) == 0).any()) for k in range(nbytes))
