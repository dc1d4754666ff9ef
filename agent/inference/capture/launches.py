"""Recorded launches as values."""

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

Three = tuple[int, int, int]

KEPT = "kept"
HELD = ("", KEPT, "too large", "over the total", "copy failed", "disk", "no extent")
"""What became of the contents that an argument points to, in the order of the library's own list; the first: it points
to nothing that the driver knows."""

KINDS = {0: "", 1: "host", 2: "device", 3: "array", 4: "unified"}
"""The driver's kinds of memory (``CUmemorytype``)."""


@frozen
class Memory:
    """The allocation that an address is in: ``extent`` bytes from ``base``, the address ``offset`` bytes into it.

    ``held`` is one of HELD; ``code`` the driver's error (``copy failed``) or the system's (``disk``). ``file`` holds
    the ``extent`` bytes, where they were kept.
    """

    base: int
    extent: int
    offset: int
    kind: str
    managed: bool
    device: int
    held: str
    code: int = 0
    file: Path | None = field(default=None, eq=False)


@frozen
class Argument:
    """The bytes of one parameter, ``offset`` bytes into the kernel's parameters; ``memory`` where they may be an
    address, which a number of eight bytes may look like too."""

    offset: int
    data: bytes
    memory: Memory | None = None


@frozen
class Symbol:
    """A ``__constant__`` or ``__device__`` variable of the kernel's module."""

    name: str
    memory: Memory


@frozen
class Launch:
    """One launch. ``number`` counts those of its kernel in its process, from 1. ``name`` is the kernel's symbol,
    ``readable`` the same demangled. ``layout`` says how the parameters' sizes were told: ``driver`` (or the symbol, of
    a kernel without any), ``file`` (the user's file), ``unknown`` (then there are no arguments here). ``after``: what
    the arguments, and then the symbols, pointed to once the launch was done; empty where that was not asked for."""

    process: int
    serial: int
    number: int
    name: str
    readable: str
    device: int
    context: int
    cooperative: bool
    layout: str
    grid: Three
    block: Three
    cluster: Three
    shared: int
    arguments: tuple[Argument, ...]
    symbols: tuple[Symbol, ...] = ()
    after: tuple[Memory, ...] = ()


@frozen
class Count:
    """How often a kernel was launched, and how many of its launches were recorded."""

    launches: int
    recorded: int


@frozen
class Process:
    """What one process of the program left. ``troubles`` say why the library recorded nothing there. ``counts`` are
    told as it ends; None where it was killed, crashed or replaced itself before. The numbers count what was seen and
    not recorded: launches of graphs, launches while a graph was captured, launches through calls of old, and launches
    beyond the first ones of a kernel. ``torn``: the log ends in the middle."""

    pid: int
    launches: tuple[Launch, ...]
    kernels: Mapping[str, str]
    troubles: tuple[str, ...]
    counts: Mapping[str, Count] | None
    graphs: int = 0
    in_capture: int = 0
    old_calls: int = 0
    beyond: int = 0
    torn: bool = False


@frozen
class Capture:
    """All that was recorded, process by process."""

    processes: tuple[Process, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(launch for process in self.processes for launch in process.launches)
