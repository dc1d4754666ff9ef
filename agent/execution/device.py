"""One interface for every place where device code runs: same requests, same answers.

The emulator and the GPU runners both satisfy :class:`Device`. Contents of buffers go in as arrays of bytes or as a
recipe (counter-based, so that any part can be made alone); outputs come back as arrays of bytes.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from agent.execution.compiler.result import Build
from agent.workload.binding import BoundStep
from agent.workload.forms import Form

Bytes = npt.NDArray[np.uint8]


@frozen
class Made:
    """Contents that a card makes itself: ``form`` with ``seed``, every float then moved by one unit in the last place
    (``nudge`` is the seed of the directions), and then widened from float to double where ``wide``."""

    form: Form
    seed: int
    nudge: int | None = None
    wide: bool = False


@frozen
class Recipe:
    """Contents that are computed on demand: ``make(start, stop)`` gives the bytes ``start <= i < stop``. ``made`` says
    the same for a card, where there is a way to say it."""

    nbytes: int
    make: Callable[[int, int], Bytes] = field(repr=False)
    made: Made | None = None


@frozen
class Poison:
    """Contents that say "nothing was written here": every byte is ``byte``; reading it is an uninitialised read."""

    byte: int = 0xCB


@frozen
class Image:
    """A buffer as it is before the run.

    ``offset`` shifts its address by that many bytes from a 256-byte boundary. ``alias`` names another image whose
    memory this one shares (from its start). ``symbol`` marks a module variable rather than an allocation.
    """

    name: str
    nbytes: int
    contents: Bytes | Recipe | Poison
    offset: int = 0
    alias: str | None = None
    symbol: bool = False


@frozen
class Parts:
    """What is wanted of an output that is too large to fetch: the byte ``ranges`` (start, stop), one after another, and
    a digest of all of it, lane by lane of ``dtype``, with ``key``."""

    ranges: tuple[tuple[int, int], ...]
    dtype: str
    key: int = 0


@frozen
class Digest:
    """Of a whole buffer: ``hash`` differs where any two contents do, but for chance; of floats also the ``sums`` of
    some groups of lanes, with signs that hang on place and key, and the groups' ``magnitudes``, for contents whose last
    bits differ. Each group has lanes from all over, as many as any other."""

    hash: int
    sums: tuple[float, ...]
    magnitudes: tuple[float, ...]


@frozen
class Request:
    """Run ``steps`` of ``build`` over ``images`` and return the bytes of ``outputs``.

    ``checks`` is a subset of ``{"bounds", "races", "initialised", "barriers"}`` (``bounds`` is always on in the
    emulator). ``blocks``, if given, picks for every launch which linear block indices run (the others are skipped, and
    the answer says so). ``step_cap`` bounds thread-instructions, ``seconds`` the wall clock. ``count`` asks for
    counters. ``watched`` buffers are not given back: the answer says whether they changed. Of outputs with ``parts``
    only these are given back (a device that :class:`ReadsParts`). ``reach`` asks how far accesses went, ``shadow``
    for the computation without rounding beside it (emulator only).
    """

    build: Build
    steps: tuple[BoundStep, ...]
    images: tuple[Image, ...]
    outputs: tuple[str, ...]
    checks: frozenset[str] = frozenset()
    blocks: Callable[[int], tuple[int, ...]] | None = field(default=None, repr=False)
    step_cap: int = 20_000_000_000
    seconds: float = 60.0
    count: bool = False
    cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)
    watched: tuple[str, ...] = ()
    parts: Mapping[str, Parts] = field(factory=dict, repr=False)
    reach: bool = False
    shadow: bool = False


@frozen
class Where:
    """One thread at one instruction; ``line`` is 1-based in the user's ``file`` (0 where unknown)."""

    file: str
    line: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


NOWHERE = Where("", 0, (0, 0, 0), (0, 0, 0))
"""Of a fault that a device noticed and could not place."""


@frozen
class Fault:
    """Something that the program must not do.

    ``kind``: ``out-of-bounds read``, ``out-of-bounds write``, ``misaligned access``, ``uninitialised read``,
    ``shared-memory race``, ``global-memory race``, ``divergent barrier``, ``write to read-only memory``, ``deadlock``,
    ``step limit``, ``null pointer``, ``invalid shuffle mask``, ``incomplete warp`` (lanes are missing from an
    instruction of a whole warp), ``invalid mbarrier`` (not initialised, or arrivals too many), ``use of an ended
    block`` (of its shared memory, by another of the cluster or by a copy under way), ``trap``; from a card, which knows
    less: ``illegal address``, ``illegal instruction``, ``stack overflow``, ``launch failure``. ``benign`` marks
    same-value write races, and always ``race on a tested value``, ``race of a test with an atomic``, ``race on a polled
    flag``, ``race behind a lock without a fence``, ``barrier of a split warp`` and ``bulk copy that nobody waits for``,
    which programs have that work. ``other`` is the second party of a race. ``count`` is how many times it was seen.
    """

    kind: str
    kernel: str
    where: Where
    message: str
    other: Where | None = None
    benign: bool = False
    count: int = 1


@frozen
class LineCounters:
    """Counts for one source line of one kernel, summed over the warps that ran.

    ``requests``: warp-wide global loads, stores and atomics (those of constant memory are none);
    ``sectors``: 32-byte sectors they touched;
    ``ideal_sectors``: the fewest for the bytes asked. ``shared_requests``/``wavefronts``: warp-wide shared accesses
    and the passes they took (conflict-free when equal, for accesses of up to 4 bytes a lane). ``instructions`` counts
    warp-instructions, ``thread_instructions`` active lanes. ``branches``/``divergent``: warp-level branches and those
    where lanes parted. ``waits``: how often a warp has to stop for loads from global memory; loads that can be under
    way together count once. ``cache_lines``: lines of 128 bytes that requests touched. ``partial_sectors``: those of
    the ``store_sectors`` of which a request writes only some bytes, ``partial_lines`` the lines that these are in.
    ``branch_lanes``: active lanes at the ``branches``. ``atomic_rounds``: turns that the lanes of a warp take where
    several go to one address (as many as ``atomics`` where none meet, and where a warp's whole numbers are combined).
    ``local_sectors``: those of the ``local_requests``; neighbouring lanes have neighbouring words of local memory.
    """

    requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    shared_requests: int = 0
    wavefronts: int = 0
    instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent: int = 0
    barriers: int = 0
    atomics: int = 0
    local_requests: int = 0
    waits: int = 0
    cache_lines: int = 0
    partial_sectors: int = 0
    partial_lines: int = 0
    branch_lanes: int = 0
    atomic_rounds: int = 0
    local_sectors: int = 0


@frozen
class InstructionCounters:
    """Counts of one PTX instruction (``text``, as written): ``kind`` is one of the classes of ``LaunchCounters.mix``,
    ``width`` the bytes that it reads or writes for each lane (0 where it is no access to memory). ``waits`` are counted
    by line only."""

    text: str
    file: str
    line: int
    kind: str
    width: int
    counts: LineCounters


@frozen
class LaunchCounters:
    """Counts of one launch. ``lines`` is keyed by 1-based source line; ``mix`` counts warp-instructions by class.

    ``touched`` maps each buffer to the distinct 32-byte sectors that the blocks that ran read and wrote (the least
    DRAM traffic); ``block_touched`` is the same summed over single blocks, so that re-use between blocks shows.
    ``mix`` classes: ``fp32``, ``fp64``, ``int``, ``multiply`` (of whole numbers), ``special`` (sfu), ``load``,
    ``store``, ``shared``, ``atomic``, ``barrier``, ``shuffle``, ``branch``, ``convert``, ``tensor`` (``mma``),
    ``other``.

    ``queued`` counts the operations of atomics on each buffer that wait for one another where they meet in a 32-byte
    sector (see ``emulator.contention``), ``queued_at_one`` those in the sector that got most, among the sectors that
    every block that ran went to. ``compound`` counts warp-instructions that cards carry out in several steps, and
    those of tensor cores, by opcode (``div.rn.f32``); ``mix`` has them once. Conversions between whole numbers are
    ``other``: most become part of the instruction that uses them. ``instructions`` are all of the kernel's, in their
    order in the PTX with calls laid inline, also those that no warp came to (empty where counts were extrapolated).
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks_run: int
    lines: Mapping[int, LineCounters]
    mix: Mapping[str, int]
    touched_read: Mapping[str, int]
    touched_written: Mapping[str, int]
    block_touched: Mapping[str, int]
    queued: Mapping[str, int] = field(factory=dict)
    queued_at_one: Mapping[str, int] = field(factory=dict)
    compound: Mapping[str, int] = field(factory=dict)
    instructions: tuple[InstructionCounters, ...] = field(default=(), repr=False)

    def total(self, name: str) -> int:
        """The sum of one LineCounters field over all lines."""
        return sum(int(getattr(counters, name)) for counters in self.lines.values())


@frozen
class Reached:
    """How far one instruction (number ``site`` of ``kernel`` as laid out) went in one buffer: bytes ``low <= i < high``
    from its address. ``fresh``: it read bytes that nothing had written before; ``blocks`` is one more than the largest
    index of a block that made the access, by axis. An atomic both reads and writes."""

    buffer: str
    kernel: str
    site: int
    line: int
    reads: bool
    writes: bool
    fresh: bool
    low: int
    high: int
    blocks: tuple[int, int, int]


@frozen(eq=False)
class ShadowOutput:
    """What an output would hold without rounding, by 16 bits: ``code`` says what part of what number they are
    (``formats``: the code of the first part of each PTX type; 0 where the program's value is its own shadow), ``value``
    the float64, ``flags`` 1 where a branch went another way than it would have, 2 where the shadow was lost. All of
    that counts where the output ``held`` holds the ``bits`` that it was stored with."""

    code: Bytes = field(repr=False)
    value: npt.NDArray[np.float64] = field(repr=False)
    flags: Bytes = field(repr=False)
    bits: npt.NDArray[np.uint16] = field(repr=False)
    held: npt.NDArray[np.uint16] = field(repr=False)
    formats: Mapping[str, int]

    def numbers(
        self, kind: str, own: npt.NDArray[np.float64], at: npt.NDArray[np.int64] | None = None
    ) -> tuple[npt.NDArray[np.float64], Bytes]:
        """The elements ``at`` those places (all of them where it is None) as numbers of PTX type ``kind`` without
        rounding, and their flags; ``own`` are the program's."""
        size = {"f16": 1, "bf16": 1, "f32": 2, "f64": 4}[kind]
        whole, flags = np.ones(len(own), np.bool_), np.zeros(len(own), np.uint8)
        for part in range(size):
            place = slice(part, len(own) * size, size) if at is None else at * size + part
            code = self.code[place] * (self.bits[place] == self.held[place])
            whole &= code == self.formats[kind] + part
            flags |= self.flags[place] * (code != 0)
        first = slice(0, len(own) * size, size) if at is None else at * size
        return np.where(whole, self.value[first], own), flags


@frozen
class ShadowLine:
    """Errors against the shadow of the ``results`` of one source line of one kernel, in units in the last place of each
    result: the ``largest``, the root mean square, and the largest that operands ``brought`` from other lines; and how
    many threads ``parted`` there, by a branch that goes another way without rounding. ``reaching``: the largest of a
    result from which an error goes on to memory."""

    kernel: str
    file: str
    line: int
    results: int
    largest: float
    rms: float
    brought: float
    parted: int
    reaching: float = 0.0


@frozen
class Shadows:
    """``outputs`` by name; one that is missing holds no number that was computed."""

    outputs: Mapping[str, ShadowOutput]
    lines: tuple[ShadowLine, ...]


@frozen
class Answer:
    """What a run did.

    ``status``: ``ok``; ``fault`` (ended early or not, see ``faults``); ``refused`` (something here cannot run this:
    ``message`` names it); ``timeout``; ``crashed``; ``cancelled``; ``unavailable``. ``outputs`` holds the bytes of each
    output asked for (partial after a fault). ``written`` marks per byte what the run wrote, where the device can tell
    (None otherwise).
    ``seconds`` is how long the run took here and is no statement about a GPU unless the device is one. ``changed`` are
    the watched buffers that the run wrote to, ``digests`` those of the outputs with parts. ``inexact`` names the
    opcodes of the emulated kernels whose results PTX does not define to the bit (see ``emulator.exactness``).
    ``reached`` is how far accesses to buffers went and ``shared_reached`` the bytes of shared memory up to the last one
    used, where the request asked. ``compiled`` are the emulated kernels of which the compiled back end ran a launch.
    """

    status: str
    outputs: Mapping[str, Bytes]
    written: Mapping[str, npt.NDArray[np.bool_]] | None
    faults: tuple[Fault, ...]
    counters: tuple[LaunchCounters, ...]
    message: str
    seconds: float
    thread_instructions: int = 0
    complete: bool = True
    changed: frozenset[str] = frozenset()
    digests: Mapping[str, Digest] = field(factory=dict)
    inexact: tuple[str, ...] = ()
    reached: tuple[Reached, ...] = ()
    shared_reached: int = 0
    shadows: Shadows | None = field(default=None, repr=False)
    compiled: tuple[str, ...] = ()


@runtime_checkable
class ReadsParts(Protocol):
    """A device that gives back parts and digests of large outputs, where ``reads_parts``."""

    @property
    def reads_parts(self) -> bool: ...


class Device(Protocol):
    """Where code runs. ``name`` is what users see: ``emulated`` or the card's own name."""

    @property
    def name(self) -> str: ...

    @property
    def emulated(self) -> bool: ...

    def run(self, request: Request) -> Answer:
        """Run it. Never raises for what the program does; the answer says what happened."""
        ...
