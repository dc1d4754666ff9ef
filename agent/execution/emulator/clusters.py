"""Clusters of blocks, as far as every launch has them: one block each, which is its own and only neighbour.

Nothing here can launch larger clusters; a kernel that asks for such, and makes use of them, is refused.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.flow import Item, Refused
from agent.execution.emulator.instruction import Function, Special
from agent.execution.emulator.values import Lowering, Step, Values, file_of, lowers

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

#: Special registers by what they are in a cluster of one block: another register, or a number.
SPECIALS: dict[str, str | int] = {
    "cluster_ctarank": 0,
    "cluster_nctarank": 1,
    "is_explicit_cluster": 0,
    **{f"clusterid.{axis}": f"ctaid.{axis}" for axis in "xyz"},
    **{f"nclusterid.{axis}": f"nctaid.{axis}" for axis in "xyz"},
    **{f"cluster_ctaid.{axis}": 0 for axis in "xyz"},
    **{f"cluster_nctaid.{axis}": 1 for axis in "xyz"},
}


def check_clusters(kernel: Function, items: Sequence[Item]) -> None:
    """Raise Refused where the kernel makes use of clusters of several blocks."""
    if kernel.cluster > 1 and any(_uses(item) for item in items):
        raise Refused(f"{kernel.name} makes use of clusters of {kernel.cluster} blocks")


def _uses(item: Item) -> bool:
    instruction = item.instruction
    named = (operand.name for operand in instruction.sources if isinstance(operand, Special))
    return instruction.base in ("mapa", "getctarank") or any(
        "cluster" in word for word in (*named, *_spaces(instruction.modifiers))
    )


def _spaces(words: tuple[str, ...]) -> Iterator[str]:
    """Scopes of ordering (``.cluster`` behind ``.acquire``) do not count: they hold in a block as well."""
    yield from (word for word in words if "::" in word)
    yield from words[:1]


@lowers("mapa")
def map_address(lowering: Lowering) -> Step:
    """The place in the shared memory of another block of the cluster: there is only the own one."""
    out, (source, rank) = lowering.destination(lowering.instruction.destinations[0]), lowering.instruction.sources
    address, number, site = (
        lowering.source(source, file_of(lowering.instruction.types[-1])),
        lowering.source(rank, "b32"),
        lowering.site,
    )

    def run(values: Values, batch: "Batch") -> None:
        ranks: Array = values[number]
        batch.fault(
            "out-of-bounds read",
            batch.lanes,
            site,
            ranks != 0,
            lambda lane: "asks for another block in a cluster of one",
        )
        values[out] = values[address]

    return Step(run, (address, number), (out,))


@lowers("getctarank")
def rank_of_address(lowering: Lowering) -> Step:
    out = lowering.destination(lowering.instruction.destinations[0])

    def run(values: Values, batch: "Batch") -> None:
        values[out] = np.zeros((1, 1), np.uint32)

    return Step(run, (), (out,))
