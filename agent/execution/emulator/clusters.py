"""``mapa`` and ``getctarank``: places in the shared memory of the blocks of a cluster."""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import TAG_BITS, WINDOWS, Array, tags_of
from agent.execution.emulator.cluster_shape import RANK_BITS, parted
from agent.execution.emulator.values import FILE_TYPES, Lowering, Step, Values, file_of, lowers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@lowers("mapa")
def map_address(lowering: Lowering) -> Step:
    """The same place in the shared memory of the block of that rank."""
    out, (source, rank) = lowering.destination(lowering.instruction.destinations[0]), lowering.instruction.sources
    file = file_of(lowering.instruction.types[-1])
    address, number, site = lowering.source(source, file), lowering.source(rank, "b32"), lowering.site
    generic = "shared::cluster" not in lowering.instruction.modifiers
    window = WINDOWS["shared"] if generic else 0

    def run(values: Values, batch: "Batch") -> None:
        ranks = values[number]
        _check_rank(lowering, batch, ranks)
        if batch.team is None:
            values[out] = values[address]
            return
        if generic:
            bad = tags_of(values[address]) != window >> TAG_BITS
            batch.fault("out-of-bounds read", batch.lanes, site, bad, lambda lane: "maps what is no shared memory")
        _, offsets = parted(values[address].astype(np.int64) - window)
        mapped: Array = offsets + ((ranks.astype(np.int64) + 1) << RANK_BITS) + window
        values[out] = mapped.astype(FILE_TYPES[file])

    return Step(run, (address, number), (out,))


def _check_rank(lowering: Lowering, batch: "Batch", ranks: Array) -> None:
    size = 1 if batch.team is None else batch.team.size
    count = "one" if size == 1 else f"{size} blocks"
    batch.fault(
        "out-of-bounds read", batch.lanes, lowering.site, ranks >= size,
        lambda lane: f"asks for another block in a cluster of {count}",
    )  # fmt: skip


@lowers("getctarank")
def rank_of_address(lowering: Lowering) -> Step:
    """The rank of the block in whose shared memory the address lies."""
    instruction = lowering.instruction
    out = lowering.destination(instruction.destinations[0])
    address = lowering.source(instruction.sources[0], file_of(instruction.types[-1]))
    window = 0 if "shared::cluster" in instruction.modifiers else WINDOWS["shared"]

    def run(values: Values, batch: "Batch") -> None:
        if batch.team is None:
            values[out] = np.zeros((1, 1), np.uint32)
            return
        owner, _ = parted(values[address].astype(np.int64) - window)
        own = batch.lanes.block % batch.team.size
        values[out] = np.where(owner > 0, owner - 1, own).astype(np.uint32)

    return Step(run, (address,), (out,))
