"""How a kernel wants to be launched: the block that its code is written for, and how many blocks have work to do.

A block fits where shared memory is neither overrun nor read before it is written. A grid is as large as needed where
more blocks would find nothing left to do; where there is no such end, the number of blocks is a size like any other.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field, frozen

from agent.execution.device import Fault
from agent.inference.probing.outcome import Stopped
from agent.inference.probing.subject import AXES, Subject, shared_arrays
from agent.inference.probing.trial import FIRST, OTHER, Contents, Lab, Seen, Span, Three

MOST_SHARED = 48 * 1024
"""Dynamic shared memory of a trial, in bytes: what every card gives without asking."""
_MOST_THREADS = 1 << 20  # of a trial; those of blocks without work cost little
_CLEARLY_MORE = 8  # times as many blocks as some pointers need, and the others still go on: they have no end
_CANDIDATES = 24
_LINES = ((128, 1, 1), (256, 1, 1), (64, 1, 1), (32, 1, 1), (512, 1, 1), (1024, 1, 1))
_PLANES = ((16, 16, 1), (32, 8, 1), (8, 8, 1), (32, 32, 1), (32, 4, 1), (32, 16, 1), (64, 4, 1))
_SOLIDS = ((8, 8, 4), (4, 4, 4), (8, 8, 8), (16, 4, 4))
_ON_CHIP = ("shared variable", "of shared memory")


class Unbounded(Exception):
    """Along this axis every block has something to do, however many there are."""

    def __init__(self, axis: int) -> None:
        super().__init__(AXES[axis])
        self.axis = axis


@frozen
class Settled:
    """One sample: the grid that is just large enough, what was reached on it (by pointer, and over all contents), and
    the pointers whose accesses go on with each further block."""

    grid: Three
    spans: Mapping[str, Span]
    seen: tuple[Seen, ...]
    going_on: frozenset[str]

    @property
    def shared(self) -> int:
        return max(one.shared for one in self.seen)

    @property
    def work(self) -> int:
        return sum(one.work for one in self.seen)


@define(eq=False)
class Launcher:
    """``free`` are the axes whose number of blocks is given rather than found. ``starts`` remembers how many blocks
    were needed last."""

    lab: Lab
    block: Three
    free: dict[int, str]
    contents: tuple[Contents, ...]
    starts: dict[int, int] = field(factory=dict)

    @property
    def axes(self) -> tuple[int, ...]:
        subject = self.lab.subject
        return tuple(index for index, axis in enumerate(AXES) if subject.uses(f"ctaid.{axis}"))

    def settle(self, values: Mapping[str, int | float]) -> Settled:
        """Raises Unbounded, Stopped."""
        found = [axis for axis in self.axes if axis not in self.free]
        grid = [int(values[self.free[axis]]) if axis in self.free else 1 for axis in range(3)]
        for axis in found:
            if not self.lab.subject.guards(AXES[axis]):
                raise Unbounded(axis)
            grid[axis] = self.starts.get(axis, 4)
        while True:
            seen = self._runs(values, grid)
            spans = _joined(seen)
            growing = [axis for axis in found if self._goes_on(axis, grid, spans)]
            if not growing:
                break
            for axis in found:
                grid[axis] = 4 * grid[axis] if axis in growing else _ended(axis, grid, spans) + 1
        needed, going_on = self._needed(found, grid, spans)
        for axis in found:
            self.starts[axis] = max(4, min(2 * needed[axis], 64))
        if going_on or (needed != grid and self._sees_the_grid()):
            seen = self._runs(values, needed)
            spans = _joined(seen)
        x, y, z = needed
        return Settled((x, y, z), spans, seen, going_on)

    def _runs(self, values: Mapping[str, int | float], grid: Sequence[int]) -> tuple[Seen, ...]:
        shared = MOST_SHARED if self.lab.subject.dynamic_shared else 0
        x, y, z = grid
        return tuple(self.lab.run(values, (x, y, z), self.block, shared, contents) for contents in self.contents)

    def _sees_the_grid(self) -> bool:
        return any(self.lab.subject.uses(f"nctaid.{axis}") for axis in AXES)

    def _goes_on(self, axis: int, grid: Sequence[int], spans: Mapping[str, Span]) -> bool:
        """Whether more blocks have to be tried along ``axis``. Raises Unbounded."""
        ended = [span.blocks[axis] for span in spans.values() if span.blocks[axis] < grid[axis]]
        if len(ended) == len(spans):
            return False
        if ended and grid[axis] >= max(_CLEARLY_MORE * max(ended), 32):
            return False
        if 4 * math.prod(grid) * math.prod(self.block) <= _MOST_THREADS:
            return True
        if not ended:
            raise Unbounded(axis)
        return False

    def _needed(
        self, found: Sequence[int], grid: Sequence[int], spans: Mapping[str, Span]
    ) -> tuple[list[int], frozenset[str]]:
        needed, going_on = list(grid), set[str]()
        for axis in found:
            needed[axis] = _ended(axis, grid, spans)
            going_on |= {name for name, span in spans.items() if span.blocks[axis] >= grid[axis]}
        return needed, frozenset(going_on)


def _ended(axis: int, grid: Sequence[int], spans: Mapping[str, Span]) -> int:
    """Blocks up to the last with anything to do, for the pointers that have such a last one."""
    return max((span.blocks[axis] for span in spans.values() if span.blocks[axis] < grid[axis]), default=1)


def _joined(seen: Sequence[Seen]) -> dict[str, Span]:
    found: dict[str, Span] = {}
    for one in seen:
        for name, span in one.spans.items():
            found[name] = found[name].joined(span) if name in found else span
    return found


def contents_for(subject: Subject) -> tuple[Contents, ...]:
    """One way of filling memory where no loaded value decides a branch, else two."""
    decided = any(isinstance(one, int) for sources in subject.influence.branches.values() for one in sources)
    return (FIRST, OTHER) if decided else (FIRST,)


# Blocks -------------------------------------------------------------------------------------------------------------


def choose_block(lab: Lab, values: Mapping[str, int | float], known: Three | None) -> Three:
    """The first block that keeps shared memory in order, or the one that comes nearest. Raises Stopped."""
    if known is not None:
        return known
    scores: list[tuple[tuple[int, int], Three, str, int]] = []
    for block in list(dict.fromkeys(_candidates(lab.subject)))[:_CANDIDATES]:
        try:
            faults = _faults(lab, values, block)
        except Stopped as stopped:
            lab.look()
            scores.append(((2, 0), block, stopped.reason, stopped.line))
            continue
        outside = [fault for fault in faults if fault.kind != "uninitialised read"]
        score = (len(outside) > 0, len(faults) - len(outside))
        if not any(score):
            return block
        first = (outside or faults)[0]
        scores.append(((int(score[0]), score[1]), block, first.message, first.where.line))
    best, block, why, line = min(scores, key=lambda one: one[0])
    if best[0] == 2:
        raise Stopped(why, line)
    if best[0]:
        raise Stopped(f"no block was found that it runs with: with {_three(block)} threads it {why}", line)
    return block


def _faults(lab: Lab, values: Mapping[str, int | float], block: Three) -> list[Fault]:
    """What goes wrong within a block."""
    subject = lab.subject
    grid = tuple(2 if subject.uses(f"ctaid.{axis}") else 1 for axis in AXES)
    shared = MOST_SHARED if subject.dynamic_shared else 0
    checks = frozenset(("initialised", "barriers"))
    seen = lab.run(values, (grid[0], grid[1], grid[2]), block, shared, FIRST, checks)
    return [fault for fault in seen.faults if not fault.benign and _within(fault)]


def _within(fault: Fault) -> bool:
    if fault.kind in ("out-of-bounds read", "out-of-bounds write", "uninitialised read"):
        return any(words in fault.message for words in _ON_CHIP) or "shared memory" in fault.message
    return fault.kind in ("divergent barrier", "trap", "incomplete warp", "invalid shuffle mask")


def _candidates(subject: Subject) -> Iterator[Three]:
    function = subject.code.function
    if function.required_threads is not None:
        yield function.required_threads
        return
    most = math.prod(function.max_threads) if function.max_threads is not None else 1024
    fitting = [block for block in _guesses(subject) if math.prod(block) <= min(most, 1024) and block[2] <= 64]
    yield from fitting or [(min(most, 1024), 1, 1)]


def _guesses(subject: Subject) -> Iterator[Three]:
    used = [axis for axis in AXES if subject.uses(f"tid.{axis}") or subject.uses(f"ntid.{axis}")]
    written = [one for one in subject.factors if one <= 1024]
    asks = all(subject.uses(f"ntid.{axis}") for axis in used)
    if "z" in used:
        yield from () if asks else ((side, side, side) for side in written)
        yield from _SOLIDS
    elif "y" in used:
        yield from () if asks else _pairs(written)
        yield from _PLANES
        yield from _pairs(written)
    elif used:
        lengths = [*written, *(nbytes // size for nbytes in shared_arrays(subject) for size in (4, 8))]
        sides = [(side, 1, 1) for side in lengths if side in (8, 16) or (side >= 32 and side % 32 == 0)]
        yield from () if asks else sides
        yield from _LINES
        yield from sides
    else:
        yield (1, 1, 1)


def _pairs(sides: Sequence[int]) -> Iterator[Three]:
    yield from ((side, side, 1) for side in sides)
    yield from ((one, other, 1) for one in sides for other in sides if one != other)


def _three(block: Three) -> str:
    return " x ".join(str(side) for side in block if side != 1) or "1"
