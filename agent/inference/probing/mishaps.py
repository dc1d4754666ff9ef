"""What went wrong in runs that were to see how far a kernel goes: accesses that were not made, and so not seen."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from agent.execution.device import Fault
from agent.inference.probing.launching import Settled
from agent.inference.probing.outcome import Stop
from agent.inference.probing.subject import Subject

_NAMED = re.compile(r"buffer '([^']+)'")
_UNMADE = ("out-of-bounds read", "out-of-bounds write", "misaligned access", "null pointer")


def mishaps(subject: Subject, settled: Sequence[Settled], closed: Set[str]) -> Iterator[Stop]:
    """One stop for each pointer or line with accesses that could not be made; pointers that are ``closed`` already, and
    lines that touch them, are left out. A size that is a multiple of something may help (``again``)."""
    told = set(closed)
    for one in settled:
        for seen in one.seen:
            for fault in seen.faults:
                what = _what(subject, fault, [(each.line, each.buffer) for each in seen.reached], closed)
                if what and what not in told:
                    told.add(what)
                    yield Stop(what, _words(fault), fault.where.line, again=True)


def _what(subject: Subject, fault: Fault, reached: Sequence[tuple[int, str]], closed: Set[str]) -> str:
    """The pointer to blame, or ``launch``; empty where the fault hides no access to memory outside the block."""
    if fault.kind == "trap":
        return "launch"
    if fault.kind not in _UNMADE or "shared" in fault.message:
        return ""
    pointers = {pointer.name for pointer in subject.pointers}
    named = _NAMED.search(fault.message)
    if named is not None:
        return named[1] if named[1] in pointers else ""
    at = [buffer for line, buffer in reached if line == fault.where.line and buffer in pointers]
    if any(buffer in closed for buffer in at):
        return ""
    return next(iter(at), "launch")


def _words(fault: Fault) -> str:
    if fault.kind == "trap":
        return "it traps at small sizes: does an assertion not hold?"
    if fault.kind == "misaligned access":
        return "accesses to it are misaligned at some sizes: of what are they multiples?"
    return f"it goes beyond what is tried, so that accesses were not seen: it {fault.message}"


def overruns(settled: Sequence[Settled], samples: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """That shared memory is overrun at some sizes, which says that sizes have a limit; the first only."""
    for values, one in zip(samples, settled, strict=True):
        for fault in (fault for seen in one.seen for fault in seen.faults):
            if fault.kind.startswith("out-of-bounds") and "shared" in fault.message:
                at = ", ".join(f"{name}={value}" for name, value in values.items())
                yield f"shared memory is overrun at {at} (line {fault.where.line}): sizes have a limit there"
                return
