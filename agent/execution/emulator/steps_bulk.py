"""``cp.async.bulk``: copies of whole ranges between global and shared memory that one thread asks for.

A copy is done at once, by the thread that asks, 16 or 32 bytes at a time; then its barrier gets the bytes. So what is
read without waiting for the barrier shows as a race with that thread; that thread's own missing wait does not show. Of
copies to global memory groups are awaited, and nothing is left to wait for.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.steps_mbarrier import Barrier, complete_bytes
from agent.execution.emulator.values import Lowering, Step, Values

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_LEAST, _MOST = 16, 32  # bytes of one access: no more than a sector; copies come in multiples of the least
_TO_SHARED = ("shared", "global", "mbarrier::complete_tx::bytes")
_TO_GLOBAL = ("global", "shared", "bulk_group")


def bulk_copy(lowering: Lowering, words: list[str]) -> Step:
    """``words`` are the modifiers behind ``async.bulk``, without hints. Raises Refused."""
    if words in (["commit_group"], ["wait_group"], ["wait_group", "read"]) or words[:1] == ["prefetch"]:
        return Step(lambda values, batch: None, (), ())
    form = tuple(word if word.startswith("mbarrier") else word.split("::")[0] for word in words)
    if form not in (_TO_SHARED, _TO_GLOBAL):
        raise lowering.refuse()
    operands, inward, site = lowering.instruction.sources, form == _TO_SHARED, lowering.site
    barrier = Barrier.of(lowering, operands[3]) if inward else None
    target, target_shift, _ = lowering.address(operands[0])
    source, source_shift, _ = lowering.address(operands[1])
    size = lowering.source(operands[2], "b32")

    def run(values: Values, batch: "Batch") -> None:
        lanes = batch.lanes
        into, out_of, sizes = (
            np.broadcast_to(values[entry].astype(np.uint64) + np.uint64(shift), lanes.shape).reshape(-1)
            for entry, shift in ((target, target_shift), (source, source_shift), (size, 0))
        )
        bad = sizes % np.uint64(_LEAST) != 0
        batch.fault(
            "misaligned access", lanes, site, bad, lambda lane: f"copies {sizes[lane]} bytes, no multiple of {_LEAST}"
        )
        for count, chosen in _alike(np.where(bad, 0, sizes)):
            batch.lanes = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[chosen])
            _copy(batch, lowering, into[chosen], out_of[chosen], count, inward)
        batch.lanes = lanes
        if barrier is not None:
            complete_bytes(batch, values, barrier, -sizes.astype(np.int64))

    reads = (target, source, size)
    return Step(run, reads if barrier is None else (*reads, barrier.entry), ())


def _alike(sizes: Array) -> Iterator[tuple[int, Array]]:
    """Positions of lanes by the size of their copies."""
    for count in np.unique(sizes).tolist():
        yield count, np.flatnonzero(sizes == count)


def _copy(batch: "Batch", lowering: Lowering, into: Array, out_of: Array, count: int, inward: bool) -> None:
    """``count`` bytes for each of the lanes at hand, in the largest steps that all addresses are multiples of."""
    site = lowering.site
    together = int(np.bitwise_or.reduce(into | out_of)) | count | _MOST
    step = max(together & -together, _LEAST)
    for first in range(0, count, step):
        # new arrays each time: what an access works out about its addresses is kept by them
        to, of = into[None, :] + np.uint64(first), out_of[None, :] + np.uint64(first)
        if inward:
            words = memory.load(batch, site, of, 0, 8, step // 8)
            batch.shared.store(batch, batch.lanes, site, to, 0, 8, words)
        else:
            words = batch.shared.load(batch, batch.lanes, site, of, 0, 8, step // 8)
            memory.store(batch, site, to, 0, 8, words)
