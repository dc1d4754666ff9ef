"""Where a kernel loses precision: errors against float64 by output and by source line, from the emulator's shadow.

Some blocks run with float64 beside every number (``docs/emulator.md``). Errors of outputs are in units in the last
place of the output's largest value, those of lines in units of each result. Nothing is compared with another program.
"""

from collections.abc import Sequence
from functools import partial
from math import floor, log2

import numpy as np
from attrs import evolve, frozen

from agent.evaluation import runs
from agent.evaluation.estimates.counting import interior, kinds_of
from agent.evaluation.lines.counts import bare
from agent.evaluation.oracles.shadows import own_of, wide_of
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Sizes, bound_at
from agent.evaluation.values import EPSILON, SMALLEST, lane_mask
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, ShadowLine
from agent.execution.emulator.shadows.reach import NOTICED
from agent.source.kernel import Kernel
from agent.workload.binding import Bound, BoundBuffer, BoundFill
from agent.workload.dtypes import base
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import Access, Workload

BLOCKS = (3, 1)
"""Blocks of a large grid that are tried, until one try ends in time."""

MOST_LAUNCHES = 24


@frozen
class LineErrors:
    """Errors of the ``results`` that a line hands on, in units in the last place of each: the ``largest``, the root
    mean square, and the largest that operands ``brought`` from other lines; threads that ``parted`` at a branch there.
    ``reaching`` is the largest of a result whose error goes on to memory, and is not made up for on the way.
    """

    number: int
    results: int
    largest: float
    rms: float
    brought: float
    parted: int
    reaching: float = 0.0

    @property
    def grows(self) -> bool:
        """Whether precision is lost on this line, and not only passed on, nor won back."""
        return self.reaching >= NOTICED and self.reaching >= 2 * self.brought


@frozen
class OutputErrors:
    """Errors of one output in units in the last place of its largest value, over the ``compared`` elements; elements
    that are not known because a branch ``parted``, or because the bits of a number were ``lost`` to the shadow."""

    name: str
    dtype: str
    compared: int
    largest: float
    rms: float
    parted: int
    lost: int


@frozen
class PrecisionLoss:
    """``blocks`` blocks of each grid ran, at most. ``note`` says why there is nothing, where there is nothing."""

    blocks: int
    outputs: tuple[OutputErrors, ...]
    lines: tuple[LineErrors, ...]
    note: str = ""

    @property
    def growing(self) -> tuple[LineErrors, ...]:
        """Lines on which precision is lost, the worst first."""
        return tuple(sorted((line for line in self.lines if line.grows), key=lambda line: -line.reaching))


def precision_loss(
    program: Program, built: Build, workload: Workload, setting: Setting, kernel: Kernel, sizes: Sizes, seconds: float
) -> PrecisionLoss | None:
    """The kernel at ``sizes`` with its shadow; None where it computes with no floats."""
    try:
        bound = bound_at(workload, program, sizes)
    except WorkloadError as error:
        return PrecisionLoss(0, (), (), str(error))
    reason = ""
    for most in BLOCKS:
        answer = _run(bound, built, workload, setting, seconds, most)
        if answer.status == "ok":
            return _found(answer, bound, kernel, most)
        reason = answer.message or (answer.faults[0].message if answer.faults else answer.status)
        if answer.status != "timeout":
            break
    return PrecisionLoss(0, (), (), reason)


def _run(bound: Bound, built: Build, workload: Workload, setting: Setting, seconds: float, most: int) -> Answer:
    chosen = runs.case(bound.sizes, families(workload)[0], 1, lazy=True)
    fills = tuple(step for step in bound.steps if isinstance(step, BoundFill))[:MOST_LAUNCHES]
    launches = tuple(kind.launch for kind in kinds_of(bound))[:MOST_LAUNCHES]
    before = runs.contents(evolve(bound, steps=(*fills, *launches)), chosen)
    blocks = partial(interior, most=most)
    return runs.run(setting, built, before, blocks=blocks, seconds=seconds, checks=frozenset(), shadow=True)


def _found(answer: Answer, bound: Bound, kernel: Kernel, most: int) -> PrecisionLoss | None:
    assert answer.shadows is not None
    mine = [line for line in answer.shadows.lines if bare(line.kernel) == kernel.name and line.line > 0]
    outputs = [_output(answer, buffer) for buffer in bound.buffers if _written(buffer)]
    if not mine:
        return None
    return PrecisionLoss(most, tuple(one for one in outputs if one is not None), _lines(mine))


def _written(buffer: BoundBuffer) -> bool:
    return not buffer.scratch and buffer.access is not Access.IN


def _lines(found: Sequence[ShadowLine]) -> tuple[LineErrors, ...]:
    """By number, where instances of a template, or launches, share lines."""
    by_number: dict[int, list[ShadowLine]] = {}
    for one in found:
        by_number.setdefault(one.line, []).append(one)
    return tuple(_line(number, parts) for number, parts in sorted(by_number.items()))


def _line(number: int, parts: Sequence[ShadowLine]) -> LineErrors:
    results = sum(part.results for part in parts)
    squares = sum(part.rms**2 * part.results for part in parts)
    return LineErrors(
        number=number,
        results=results,
        largest=max(part.largest for part in parts),
        rms=(squares / max(1, results)) ** 0.5,
        brought=max(part.brought for part in parts),
        parted=sum(part.parted for part in parts),
        reaching=max(part.reaching for part in parts),
    )


def _output(answer: Answer, buffer: BoundBuffer) -> OutputErrors | None:
    assert answer.written is not None
    at = np.flatnonzero(lane_mask(answer.written[buffer.name], buffer.dtype))
    wide = wide_of(answer, buffer.name, buffer.dtype, at)
    if wide is None or not len(at):
        return None
    own = own_of(answer, buffer.name, buffer.dtype, at)
    lanes = wide.known & np.isfinite(own) & np.isfinite(wide.value)
    kind = base(buffer.dtype)[0]
    errors = np.abs(own - wide.value)[lanes]
    unit = _unit(float(np.abs(wide.value[lanes]).max(initial=0.0)), kind)
    flags = wide.flags
    return OutputErrors(
        name=buffer.name,
        dtype=buffer.dtype,
        compared=int(lanes.sum()),
        largest=float(errors.max(initial=0.0)) / unit,
        rms=float(np.sqrt(np.square(errors).mean())) / unit if len(errors) else 0.0,
        parted=int(((flags & 1) != 0).sum()),
        lost=int((flags == 2).sum()),
    )


def _unit(scale: float, kind: str) -> float:
    """One unit in the last place of ``scale``."""
    return max(EPSILON[kind] * 2.0 ** floor(log2(scale)), SMALLEST[kind]) if scale else SMALLEST[kind]
