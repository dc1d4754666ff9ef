"""What a scan says of one kernel, and of one file."""

import enum
from collections.abc import Mapping

from attrs import frozen


class Cause(enum.Enum):
    """Why there is no estimate of a kernel."""

    ASKED = "the workload is not known"
    STATED = "the stated workload is wrong"
    DAMAGED = "parse errors"
    BUILD = "does not compile"
    COUNT = "cannot be run in the emulator"
    TIME = "takes too long"
    TWIN = "shares its name"
    LEFT = "not reached"
    FAULT = "fault of cuda-lsp"


@frozen
class Hint:
    """A finding of a rule inside a kernel or at its launch; ``line`` is 1-based."""

    rule: str
    line: int
    severity: str
    message: str


@frozen
class Hot:
    """A line that was counted to cost twice what it must or more."""

    line: int
    words: str
    meaning: str


@frozen
class Cost:
    """What one run of a kernel's plan takes of the card, all launches of the kernel together: estimated in seconds from
    counts of the emulator, never measured. ``floor`` names what sets ``floor_seconds``, the least that the launches can
    take by what they touch (``memory_seconds``), compute (``arithmetic_seconds``, of the kind ``arithmetic``) and are
    (the gaps between launches). ``terms`` is what each resource alone takes, ``limit`` the longest. ``sizes`` (in
    words) are smaller ones that all this is at, empty where it is at the workload's own. ``registers`` is None where
    the assembler did not say; ``occupancy`` is a ratio. ``tensor``: tensor cores compute in it, which no floor knows.
    ``counted`` says what ran."""

    seconds: float
    floor_seconds: float
    floor: str
    memory_seconds: float
    arithmetic_seconds: float
    arithmetic: str
    limit: str
    terms: Mapping[str, float]
    sizes: str
    launches: int
    registers: int | None
    occupancy: float
    counted: str
    tensor: bool = False
    hot: tuple[Hot, ...] = ()

    @property
    def headroom(self) -> float:
        """Estimated time over floor: 1 where there is nothing to gain."""
        return self.seconds / self.floor_seconds

    @property
    def saved(self) -> float:
        """Seconds that reaching the floor would save."""
        return max(0.0, self.seconds - self.floor_seconds)


@frozen
class Scanned:
    """One kernel. ``line`` and ``launches`` are 1-based lines. ``workload`` and ``origin`` are lines for people, empty
    where there is none; ``asks`` is then what only the user can tell. ``cost`` is None where ``cause`` (with
    ``message``) says why. ``kept``: an earlier scan found this, for the same text."""

    path: str
    kernel: str
    line: int
    signature: str
    launches: tuple[int, ...] = ()
    workload: str = ""
    origin: str = ""
    asks: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    cost: Cost | None = None
    cause: Cause | None = None
    message: str = ""
    kept: bool = False


@frozen
class ListedFile:
    """The kernels of a file in text order, none of them estimated yet. ``problem`` says why it cannot be read."""

    path: str
    kernels: tuple[Scanned, ...] = ()
    problem: str = ""
