"""What the lines of a kernel cost, as counted values, and which of them deserve a word.

Light to import: the editor's server reads these, and counts nothing itself.
"""

from collections.abc import Iterator

from attrs import frozen

TWICE = 2.0
"""A line is bad where it needs at least so many times what would do."""

WEIGHTY = 0.05
"""The share of a kernel's cost below which a line is not worth a word."""

IDLE = 0.25
"""The share of a kernel's lanes that must be idle at one line to be worth a word."""

CLEAN = 1.25
"""Up to so many times what would do, a line is as good as it gets."""

WARP = 32


@frozen
class CountedLine:
    """Counts of one source line (1-based in the document that was counted), summed over the warps that ran.

    ``requests``, ``sectors`` and ``ideal_sectors`` are of global memory, ``shared_requests`` and ``passes`` of shared;
    ``ideal_passes`` is the fewest passes for one access of that width. ``instructions`` counts warp-instructions,
    ``lanes`` the active lanes of all of them. ``stores`` are those of the requests that are stores and nothing else,
    where they were counted apart, with their sectors and the fewest that would do."""

    number: int
    requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_requests: int = 0
    passes: int = 0
    ideal_passes: int = 1
    local_requests: int = 0
    atomics: int = 0
    instructions: int = 0
    lanes: int = 0
    stores: tuple[int, int, int] = (0, 0, 0)


@frozen
class LineCounts:
    """``blocks`` blocks of ``block`` threads of ``kernel`` ran at ``sizes`` (in words); ``made_up`` where nothing
    states the kernel's own launch."""

    kernel: str
    lines: tuple[CountedLine, ...]
    blocks: int
    block: tuple[int, int, int]
    sizes: str
    made_up: bool = False

    @property
    def where(self) -> str:
        """``counted in the emulator: 9 blocks of 16x16 threads of matmul at m=4096 n=4096 k=4096``."""
        threads = "x".join(str(extent) for extent in self.block if extent != 1) or "1"
        blocks = f"{self.blocks} block{'s' * (self.blocks != 1)}"
        on = " on a launch that was made up, as nothing states the kernel's own" if self.made_up else ""
        return f"counted in the emulator{on}: {blocks} of {threads} threads of {self.kernel} at {self.sizes}"


@frozen
class Bad:
    """A line that costs more than it must: in a few words, and what that means."""

    line: int
    words: str
    meaning: str


def bad_lines(counts: LineCounts) -> tuple[Bad, ...]:
    """The lines that cost a good deal more than they must, in order."""
    found = [*_traffic(counts), *_conflicts(counts), *_local(counts), *_idle(counts)]
    return tuple(sorted(found, key=lambda one: one.line))


def _traffic(counts: LineCounts) -> Iterator[Bad]:
    total = sum(line.sectors for line in counts.lines)
    for line in counts.lines:
        if 2 * line.atomics >= line.requests:
            continue  # where updates go is the data's choice, and what they cost is waiting, not sectors
        for name, requests, sectors, ideal in _parts(line):
            if sectors >= TWICE * ideal and sectors - ideal >= WEIGHTY * total:
                each, best = sectors / requests, ideal / requests
                yield Bad(
                    line.number,
                    f"{_number(each)} sectors per {name} ({_number(best)} would do)",
                    f"A warp-wide {name} of global memory touches {_number(each)} sectors of 32 bytes here; the bytes "
                    f"that it is about fit into {_number(best)} ({requests} of them).",
                )


def _parts(line: CountedLine) -> Iterator[tuple[str, int, int, int]]:
    """Loads and stores of one line apart, where one of them is bad: that is not to be thinned by the other."""
    stores, sectors, ideal = line.stores
    load = ("load", line.requests - stores, line.sectors - sectors, line.ideal_sectors - ideal)
    store = ("store", stores, sectors, ideal)
    worse = [part for part in (load, store) if part[1] and part[2] >= TWICE * part[3]]
    if len(worse) == 1 and 0 < stores < line.requests:
        yield worse[0]
    else:
        yield "request", line.requests, line.sectors, line.ideal_sectors


def _conflicts(counts: LineCounts) -> Iterator[Bad]:
    total = sum(line.passes for line in counts.lines)
    for line in counts.lines:
        ideal = line.shared_requests * line.ideal_passes
        if ideal and line.passes >= TWICE * ideal and line.passes - ideal >= WEIGHTY * total:
            each = _number(line.passes / line.shared_requests)
            yield Bad(
                line.number,
                f"{each} passes per shared access ({line.ideal_passes} would do)",
                f"Lanes of a warp meet in the same banks of shared memory: {line.shared_requests} warp-wide accesses "
                f"take {line.passes} passes.",
            )


def _local(counts: LineCounts) -> Iterator[Bad]:
    total = sum(line.instructions for line in counts.lines)
    for line in counts.lines:
        if line.local_requests and line.local_requests >= WEIGHTY * total:
            yield Bad(
                line.number,
                "an array in local memory",
                f"{line.local_requests} warp-wide accesses go to local memory, which is DRAM behind the caches: an "
                "array that is indexed by what only the run knows cannot stay in registers.",
            )


def _idle(counts: LineCounts) -> Iterator[Bad]:
    """The line at which most lanes are idle, where that is much of all that the kernel does."""
    if counts.block[0] * counts.block[1] * counts.block[2] % WARP:
        return
    slots = WARP * sum(line.instructions for line in counts.lines)
    worst = max(counts.lines, key=_idle_lanes, default=None)
    if worst is not None and slots and _idle_lanes(worst) >= IDLE * slots:
        yield Bad(
            worst.number,
            f"{_number(worst.lanes / worst.instructions)} of {WARP} lanes at work",
            "Lanes of a warp that do not take a branch, or have left a loop, wait for those that are still in it.",
        )


def _idle_lanes(line: CountedLine) -> int:
    return WARP * line.instructions - line.lanes


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
