"""What no verdict of this kind checks, whatever the kernel: said beside each one, so that nobody has to guess."""

import re
from collections.abc import Sequence

from agent.evaluation.sizes import declared
from agent.workload.directive import three
from agent.workload.dtypes import is_float, is_raw
from agent.workload.plan import Launch
from agent.workload.workload import Access, Buffer, Workload

_NARROW = ("i8", "u8", "bool")


_HANDS_OVER = re.compile(r"^\s*(?:@\S+\s+)?(?:(?:membar|fence)\.|\S+\.(?:acquire|acq_rel)\.)", re.MULTILINE)


_NAMED = 3


def limits(
    workload: Workload, beyond: bool, races: bool = True, ptx: str = "", inexact: Sequence[str] = ()
) -> tuple[str, ...]:
    """In words; ``beyond`` says that larger sizes than the declared ones ran, ``races`` that races were looked for,
    ``inexact`` are opcodes whose results here are not a card's to the bit.

    Races are found on one interleaving, whatever the results: two accesses that nothing orders show in any. Only where
    ``ptx`` lets blocks hand data to one another, by fences and flags, may what a thread does hang on who came first.
    """
    found = [] if races else ["races within a launch"]
    if races and _HANDS_OVER.search(ptx):
        found.append("blocks that hand data to one another in another order than ran here")
    if declared(workload):
        found.append("sizes above the largest that ran" if beyond else "sizes above the declared ones")
    if inexact:
        found.append(f"the last bits of a card: PTX leaves those of {_few(inexact)} open, within an error")
    assumed = [buffer.name for buffer in workload.buffers if _assumed(buffer)]
    if assumed:
        found.append(f"whole numbers beyond -100 to 100 in {', '.join(assumed)}, whose range is not stated")
    probed = [buffer.name for buffer in workload.buffers if buffer.probed]
    if probed:
        found.append(f"that accesses keep in bounds: the extents of {', '.join(probed)} were probed")
        found.append(f"other launches than the probed one: {'; '.join(map(_launch, workload.plan.launches()))}")
    return tuple(found)


def _launch(launch: Launch) -> str:
    return f"{launch.kernel}<<<{three(launch.grid)}, {three(launch.block)}>>>"


def _few(opcodes: Sequence[str]) -> str:
    more = len(opcodes) - _NAMED
    return ", ".join((*opcodes[:_NAMED], *([f"{more} more"] if more > 0 else [])))


def _assumed(buffer: Buffer) -> bool:
    """Whether a buffer of whole numbers is filled from a range that nobody gave."""
    whole = not (is_float(buffer.dtype) or is_raw(buffer.dtype)) and buffer.dtype not in _NARROW
    return whole and buffer.access is not Access.OUT and not buffer.domain.given and buffer.domain.kind == "integers"
