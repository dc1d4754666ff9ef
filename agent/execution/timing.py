"""Timing as a request to a device that can: what is run against what, and what came back."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from agent.execution.compiler.result import Build
from agent.execution.process import never
from agent.workload.binding import Bound

T = TypeVar("T")
Block = tuple[float, float, float, float]
"""Four calls in seconds: the first side's two and the second's two."""

Digests = npt.NDArray[np.void]
"""Calls x sets x outputs, each with ``hash``, ``sum`` (signs hang on the place) and ``magnitude`` of its groups."""


@frozen
class Entry:
    """A program with its plan bound at the sizes that are timed."""

    build: Build = field(repr=False)
    bound: Bound = field(repr=False)


@frozen
class Race:
    """``sides`` are timed against each other on contents of ``family``; the calls of the last one are digested.

    ``unordered`` outputs are compared as sets. ``blocks`` (least, most) of four calls are made, no new one after
    ``budget`` seconds once there are enough; ``warm`` further ones. ``seconds`` is the hard limit for the whole.
    """

    sides: tuple[Entry, Entry]
    family: str
    seed: int
    unordered: frozenset[str] = frozenset()
    blocks: tuple[int, int] = (6, 12)
    warm: int = 3
    budget: float = 1.0
    seconds: float = 60.0
    cancelled: Callable[[], bool] = field(default=never, repr=False)


@frozen
class Timed:
    """What a race gave. ``status``: ``ok``, ``fault``, ``refused``, ``crashed``, ``timeout``, ``cancelled``,
    ``unavailable``; ``side`` is whose launch failed (-1: no one's). The rest is as in
    :class:`agent.execution.children.timing_messages.Measured`, ``throttled`` in words. ``foreign``: other processes
    that were computing on the card."""

    status: str
    message: str = ""
    side: int = -1
    cold: tuple[Block, ...] = ()
    warm: tuple[Block, ...] = ()
    first: tuple[float, ...] = ()
    sets: int = 1
    overhead: float = 0.0
    calls: tuple[int, ...] = ()
    digests: Digests | None = field(default=None, repr=False)
    clocks: tuple[int, ...] = ()
    throttled: tuple[str, ...] = ()
    unwatched: str = ""
    odd: int = 0
    starved: bool = False
    fixed: tuple[str, ...] = ()
    foreign: int = 0
    seconds: float = 0.0


@frozen
class Figures:
    """A card, measured: peaks in bytes a second (a copy counts both ways), the level-2 cache and what must be read to
    empty it, in bytes."""

    card: str
    uuid: str
    driver: str
    read: float
    write: float
    copy: float
    l2: int
    flush: int


@runtime_checkable
class Timer(Protocol):
    """A device that can time."""

    def figures(self, cancelled: Callable[[], bool] = never) -> Figures | str:
        """The card's own peaks, measured once for each card and driver; or why there are none."""
        ...

    def race(self, race: Race) -> Timed:
        """Time two programs in one fresh process. Never raises for what they do."""
        ...

    def alone(self, race: Race, timed: Timed) -> Timed:
        """Digests of the last side for the calls of ``timed``, from a fresh process that runs nothing else."""
        ...

    def ready(self, count: int) -> None:
        """So many fresh processes will be wanted soon: start them all at once, before anything is timed."""
        ...

    def begin(self, count: int) -> None:
        """So many will be wanted after what is done now, which is not timed: they may come meanwhile."""
        ...


@runtime_checkable
class Exclusive(Protocol):
    """A device that can be had for oneself."""

    def exclusively(self, action: Callable[[], T], cancelled: Callable[[], bool] = never) -> T | None:
        """Do it while nobody else runs or times anything on the card that goes by our locks; None where cancelled."""
        ...


def digest_layout(groups: int) -> "np.dtype[np.void]":
    """The NumPy layout of one digest."""
    return np.dtype([("hash", "<u8"), ("sum", "<f8", (groups,)), ("magnitude", "<f8", (groups,))])
