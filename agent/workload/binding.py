"""Binding: a workload and a plan at given sizes become concrete launches and byte counts."""

from collections.abc import Mapping
from functools import cached_property

from attrs import frozen

from agent.workload.textures import View
from agent.workload.workload import Access, Domain

Three = tuple[int, int, int]


@frozen
class BoundBuffer:
    """``count`` elements of ``dtype``, ``nbytes`` in all; ``low``/``high`` are the domain's bounds as numbers."""

    name: str
    dtype: str
    count: int
    nbytes: int
    access: Access
    domain: Domain
    low: float | None
    high: float | None
    symbol: bool = False
    scratch: bool = False
    zeroed: bool = False


@frozen
class PointerArgument:
    """The address of ``buffer`` plus ``offset`` bytes."""

    buffer: str
    offset: int = 0


@frozen
class ValueArgument:
    """A scalar of ``dtype`` passed by value."""

    dtype: str
    value: int | float


@frozen
class TextureArgument:
    """A texture or surface object over a buffer."""

    view: View


@frozen
class Placed:
    """A member of a struct, ``offset`` bytes from its start."""

    offset: int
    held: PointerArgument | ValueArgument | TextureArgument


@frozen
class RecordArgument:
    """A struct of ``nbytes`` passed by value; all bytes but those of its ``members`` are zero."""

    nbytes: int
    alignment: int
    members: tuple[Placed, ...]


Argument = PointerArgument | ValueArgument | TextureArgument | RecordArgument


def within(argument: Argument) -> tuple[Placed, ...]:
    """What an argument passes, each at its place: itself, or the members of a struct."""
    return argument.members if isinstance(argument, RecordArgument) else (Placed(0, argument),)


@frozen
class BoundLaunch:
    kernel: str
    grid: Three
    block: Three
    shared: int
    arguments: tuple[Argument, ...]


@frozen
class BoundFill:
    buffer: str
    byte: int


@frozen
class BoundCopy:
    target: str
    source: str


BoundStep = BoundLaunch | BoundFill | BoundCopy


@frozen
class Bound:
    """A plan at concrete sizes: repeats unrolled, swaps resolved, every number a number. ``exchanged``: the names that
    stand for another buffer at its end, and for which."""

    sizes: Mapping[str, int]
    buffers: tuple[BoundBuffer, ...]
    steps: tuple[BoundStep, ...]
    exchanged: tuple[tuple[str, str], ...] = ()

    @cached_property
    def shown(self) -> frozenset[str]:
        """The buffers that a texture or surface shows: CUDA says how these are aligned."""
        launches = (step for step in self.steps if isinstance(step, BoundLaunch))
        return frozenset(
            argument.view.buffer
            for launch in launches
            for argument in launch.arguments
            if isinstance(argument, TextureArgument)
        )
