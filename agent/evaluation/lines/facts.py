"""What was counted, put together for people: by kind of access and class of instruction, for a line or a whole kernel.

Light to import: what shows a profile reads these, and counts nothing itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from attrs import field, fields, frozen

SECTOR_BYTES = 32
WARP = 32

FAMILIES = ("fp32", "fp64", "tensor", "int", "memory", "control", "special", "shuffle", "other")
"""Classes of instructions, in the order in which they are shown."""


@frozen
class Traffic:
    """Warp-wide requests to global memory: the 32-byte ``sectors`` that they touch, and the fewest that could hold the
    bytes asked for. ``bytes`` are those of the sectors."""

    requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0

    @property
    def bytes(self) -> int:
        return self.sectors * SECTOR_BYTES


@frozen
class SharedAccesses:
    """Warp-wide accesses to shared memory, the ``passes`` (wavefronts) that they take, and the passes that accesses of
    their width take where no two lanes meet in a bank."""

    requests: int = 0
    passes: int = 0
    ideal_passes: int = 0


@frozen
class Branches:
    """Branches of warps, those at which the lanes of a warp parted, and the active ``lanes`` of all."""

    executed: int = 0
    divergent: int = 0
    lanes: int = 0


@frozen
class Atomics:
    """Warp-wide atomics, on global or shared memory; ``rounds``: turns that lanes take which meet at one address."""

    requests: int = 0
    rounds: int = 0


@frozen
class Local:
    """Warp-wide accesses to local memory (arrays that are indexed at run time), and the sectors that they touch."""

    requests: int = 0
    sectors: int = 0

    @property
    def bytes(self) -> int:
        return self.sectors * SECTOR_BYTES


@frozen
class Facts:
    """Counts in warps: ``instructions`` of PTX, the active ``lanes`` of all of them, and a ``mix`` of instructions by
    FAMILIES. What atomics do to global memory is not among the ``stores``."""

    instructions: int = 0
    lanes: int = 0
    mix: Mapping[str, int] = field(factory=dict)
    loads: Traffic = Traffic()
    stores: Traffic = Traffic()
    updates: Traffic = Traffic()
    shared: SharedAccesses = SharedAccesses()
    branches: Branches = Branches()
    atomics: Atomics = Atomics()
    local: Local = Local()
    barriers: int = 0

    @property
    def sectors(self) -> int:
        """Of global memory, by loads, stores and atomics."""
        return self.loads.sectors + self.stores.sectors + self.updates.sectors

    @property
    def ideal_sectors(self) -> int:
        return self.loads.ideal_sectors + self.stores.ideal_sectors + self.updates.ideal_sectors

    @property
    def requests(self) -> int:
        return self.loads.requests + self.stores.requests + self.updates.requests


@frozen
class PtxLine:
    """One instruction of PTX, as written, and what it counts."""

    text: str
    facts: Facts


@frozen
class ProfiledLine:
    """A 1-based line of the user's file. ``ptx`` are its instructions in order."""

    number: int
    facts: Facts
    ptx: tuple[PtxLine, ...] = field(default=(), repr=False)


def total(parts: Iterable[Facts]) -> Facts:
    """The sum of several, e.g. of the lines of a kernel."""
    return reduce(_sum, parts, Facts())


def _sum(one: Any, other: Any) -> Any:
    """Of two numbers, two mappings of numbers, or two values that are made of such, field by field."""
    if isinstance(one, int):
        return one + other
    if isinstance(one, Mapping):
        return in_order(Counter(one) + Counter(other))
    return type(one)(
        **{item.name: _sum(getattr(one, item.name), getattr(other, item.name)) for item in fields(type(one))}
    )


def in_order(mix: Mapping[str, int]) -> dict[str, int]:
    """Only what there is, by FAMILIES first."""
    names = [*FAMILIES, *sorted(set(mix) - set(FAMILIES))]
    return {name: mix[name] for name in names if mix.get(name)}
