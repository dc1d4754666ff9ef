"""What no verdict of this kind checks, whatever the kernel: said beside each one, so that nobody has to guess."""

from agent.evaluation.sizes import declared
from agent.workload.dtypes import is_float, is_raw
from agent.workload.workload import Access, Buffer, Workload

_NARROW = ("i8", "u8", "bool")


def limits(workload: Workload, beyond: bool) -> tuple[str, ...]:
    """In words; ``beyond`` says that larger sizes than the declared ones ran.

    Races on global memory show only where the order of blocks matters to a result: threads of one block that meet there
    are not told apart.
    """
    found = ["races on global memory within a launch"]
    if declared(workload) and not beyond:
        found.append("sizes above the declared ones")
    assumed = [buffer.name for buffer in workload.buffers if _assumed(buffer)]
    if assumed:
        found.append(f"whole numbers beyond -100 to 100 in {', '.join(assumed)}, whose range is not stated")
    return tuple(found)


def _assumed(buffer: Buffer) -> bool:
    """Whether a buffer of whole numbers is filled from a range that nobody gave."""
    whole = not (is_float(buffer.dtype) or is_raw(buffer.dtype)) and buffer.dtype not in _NARROW
    return whole and buffer.access is not Access.OUT and not buffer.domain.given and buffer.domain.kind == "integers"
