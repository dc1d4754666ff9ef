"""From a kernel alone to what can be found out about it by running it."""

import time
from collections.abc import Callable, Mapping

from attrs import field, frozen

from agent.execution.compiler.result import Options
from agent.execution.process import never
from agent.inference.probing.findings import Findings, find
from agent.inference.probing.known import Known, known
from agent.inference.probing.launching import Launcher, choose_block, contents_for
from agent.inference.probing.outcome import Probed, Stopped
from agent.inference.probing.sampling import Design, Variable, kind_of
from agent.inference.probing.subject import Subject, is_whole_number, open_subject
from agent.inference.probing.trial import MOST_POINTERS, Lab
from agent.inference.probing.writing import Result, probed
from agent.source.document import Document
from agent.source.kernel import Kernel

_HALF = 0.5  # of floats that nobody stated
_MOST_FIXED = 64  # a number in the launch that is larger is a size, and what it is there is kept as what it is declared
_MOST_SCALARS = 32
_PATIENCE = 10.0  # seconds of one run


@frozen
class Limits:
    """``seconds`` for everything but the compiler; ``cancelled`` is asked all the time."""

    seconds: float = 60.0
    cancelled: Callable[[], bool] = field(default=never, repr=False)


def probe(document: Document, kernel: Kernel, options: Options | None = None, limits: Limits | None = None) -> Probed:
    """Run ``kernel`` until its extents, launch and roles are known, or it is known why not.

    What the host code says (the block, scalars that are numbers, template arguments) is kept. Raises Stopped where
    nothing at all can be said: it does not compile, does not end, or takes what cannot be passed.
    """
    limits = limits or Limits()
    started = time.monotonic()
    if kernel.damage:
        raise Stopped(f"it cannot be read: {kernel.damage}", kernel.line)
    told = known(document, kernel)
    subject = open_subject(document, kernel, told, options or Options(), limits.cancelled)
    if len(subject.pointers) > MOST_POINTERS or len(subject.scalars) > _MOST_SCALARS:
        most = f"{MOST_POINTERS} pointers and {_MOST_SCALARS} numbers are the most that are tried"
        raise Stopped(
            f"it takes {len(subject.pointers)} pointers and {len(subject.scalars)} numbers; {most}", kernel.line
        )
    lab = Lab(subject, time.monotonic() + limits.seconds, limits.cancelled, min(_PATIENCE, limits.seconds / 4))
    variables = _variables(subject, told)
    values = _values(subject, told, variables)
    block = choose_block(lab, {**values, **_roomy(variables)}, told.block)
    found = _find(lab, block, variables, values)
    # what is not varied is as it was in the runs that count
    start = found.design.base()
    values = {name: start.get(name, value) for name, value in values.items()}
    return probed(Result(subject, told, found, values, lab.runs, time.monotonic() - started))


def _find(
    lab: Lab, block: tuple[int, int, int], variables: tuple[Variable, ...], values: Mapping[str, int | float]
) -> Findings:
    """At any sizes; where that leaves something open, at multiples of the block, which many kernels are written for.
    These tell nothing where a pointer is not even touched that was before."""
    found = find(Launcher(lab, block, {}, contents_for(lab.subject)), variables, values, 1)
    side = max(block)
    if not any(stop.again for stop in found.stops) or side == 1:
        return found
    again = find(Launcher(lab, block, {}, contents_for(lab.subject)), variables, values, side)
    return again if len(again.stops) < len(found.stops) and again.untouched <= found.untouched else found


def _variables(subject: Subject, told: Known) -> tuple[Variable, ...]:
    """Whole numbers that the launch does not write out."""
    names = [scalar.name for scalar in subject.scalars if is_whole_number(scalar.dtype)]
    return tuple(Variable(name, kind_of(name)) for name in names if not _is_fixed(name, told))


def _is_fixed(name: str, told: Known) -> bool:
    return name in told.written and abs(told.arguments[name]) <= _MOST_FIXED


def _values(subject: Subject, told: Known, variables: tuple[Variable, ...]) -> dict[str, int | float]:
    """What each scalar is where it is not varied."""
    start = Design(variables, 1).base()
    return {
        scalar.name: start.get(scalar.name, told.arguments.get(scalar.name, _usual(scalar.dtype)))
        for scalar in subject.scalars
    }


def _usual(dtype: str) -> int | float:
    return 1 if dtype == "bool" or is_whole_number(dtype) else _HALF


def _roomy(variables: tuple[Variable, ...]) -> dict[str, int]:
    """Sizes that fill blocks, to see which block fits."""
    sizes = [variable.name for variable in variables if variable.kind == "size"]
    return dict.fromkeys(sizes, {0: 1, 1: 2048, 2: 64}.get(len(sizes), 32))
