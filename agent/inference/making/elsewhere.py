"""The same kernel on other numbers that nobody wrote: what is counted on one set of them may come of these alone."""

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence

from agent.execution.compiler.result import Options
from agent.inference.making.choosing import tried
from agent.inference.making.launches import NARROW, Trial
from agent.inference.probing.known import Known, known
from agent.inference.probing.outcome import Stopped
from agent.inference.probing.probe import Limits
from agent.inference.probing.sampling import kind_of
from agent.inference.probing.subject import Subject, is_whole_number, open_subject
from agent.inference.probing.trial import Lab, Three
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression
from agent.workload.workload import Workload

_LEAST = 32  # of a row, to say how the lanes of a warp go along it
_SIZES: tuple[tuple[int, ...], ...] = ((128,), (96, 160, 64, 224))
_SMALL = (1, 3)
_SIDES = (32, 16, 8)


def at_other_numbers(
    document: Document, kernel: Kernel, first: Workload, options: Options | None = None, limits: Limits | None = None
) -> Iterator[Workload]:
    """Launches on other numbers, as far as they run without a fault: all sizes alike, and each of them another. What
    the launch in sight tells stays; where it tells no block, and a kernel takes one of two sides, these differ too.
    Raises Stopped where the kernel cannot be compiled or run."""
    limits = limits or Limits(20.0)
    told = known(document, kernel)
    kept = _kept(told, first)
    (launch,) = first.plan.launches()
    grid, blocks = _three(launch.grid), (_three(launch.block),) * len(_SIZES)
    if told.block is None and "threadIdx.y" in document.slice_text(kernel.span):
        blocks = _blocks(blocks[0])
    elif not _numbers_of(first).keys() - kept.keys():
        return
    subject = open_subject(document, kernel, told, options or Options(), limits.cancelled, loose=True)
    lab = Lab(subject, time.monotonic() + limits.seconds, limits.cancelled, limits.seconds / 3)
    for count, (block, sizes, small) in enumerate(zip(blocks, _SIZES, _SMALL, strict=False), 1):
        trial = Trial(grid, max(sizes), _numbers(subject, sizes, small) | kept, NARROW)
        with contextlib.suppress(Stopped, WorkloadError):
            if not (found := tried(lab, trial, block, count)).broken:
                yield found.workload


def invented(document: Document, kernel: Kernel, made: Workload) -> frozenset[str]:
    """The parameters whose values nobody wrote: the others a launch in sight tells."""
    return frozenset(_numbers_of(made).keys() - _kept(known(document, kernel), made).keys())


def plausible(made: Workload) -> bool:
    """Whether none of its sizes is too short to say how the lanes of a warp go along a row."""
    return all(kind_of(one.name) == "small" or one.value >= _LEAST for one in made.sizes)


def _kept(told: Known, made: Workload) -> dict[str, int | float]:
    mine = _numbers_of(made)
    return {name: value for name, value in told.arguments.items() if mine.get(name) == value}


def _numbers_of(workload: Workload) -> dict[str, int | float]:
    """All numbers of a launch that was made up."""
    written = {one.name: one.value.constant for one in workload.constants}
    sizes = {one.name: one.value for one in workload.sizes}
    return {name: value for name, value in written.items() if value is not None} | sizes


def _numbers(subject: Subject, sizes: Sequence[int], small: int) -> dict[str, int | float]:
    following = itertools.cycle(sizes)
    found: dict[str, int | float] = {}
    for one in subject.scalars:
        if one.dtype == "bool":
            found[one.name] = 1
        elif is_whole_number(one.dtype):
            size = small if kind_of(one.name) == "small" else next(following)
            found[one.name] = min(size, 127) if one.dtype == "i8" else size
        else:
            found[one.name] = 0.5
    return found


def _blocks(first: Three) -> tuple[Three, ...]:
    """As many threads along other sides."""
    x, y, z = first
    return tuple((side, x * y // side, z) for side in _SIDES if side != x and x * y % side == 0)


def _three(numbers: Sequence[Expression]) -> Three:
    x, y, z = (int(one.constant or 1) for one in numbers)
    return x, y, z
