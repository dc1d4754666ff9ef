"""Extents that a run of the kernel told (``probed``): what was seen to be touched, not what a program allocates.

An original that goes beyond one is not at fault, the extent is: nothing can be judged until the user states it.
"""

import re

from agent.evaluation.sizes import Sizes, describe
from agent.execution.device import Answer, Fault
from agent.workload.workload import Workload

_NAMED = re.compile(r"buffer '([^']+)'")


class ShortExtent(Exception):
    """The original goes beyond a probed extent. The message says where, and what to state. No WorkloadError: gates take
    these for what one size or one rewrite comes to, and this ends a verdict and a search as a whole."""


def probed(workload: Workload) -> tuple[str, ...]:
    """The buffers whose extent is what a run of the kernel touched: that it keeps within them proves nothing."""
    return tuple(buffer.name for buffer in workload.buffers if buffer.probed)


def hold(workload: Workload, answer: Answer, sizes: Sizes) -> None:
    """Of a run of the original: raises ShortExtent where it went beyond a probed extent, at sizes that the workload
    allows (a form that was found for multiples need not hold between them)."""
    if all(sizes[size.name] % size.multiple == 0 for size in workload.sizes if size.name in sizes):
        for fault in answer.faults:
            refuse_short(workload, fault, sizes)


def refuse_short(workload: Workload, fault: Fault, sizes: Sizes) -> None:
    """Raises ShortExtent where ``fault`` is an access beyond a probed extent."""
    named = _NAMED.search(fault.message)
    if named is None or not fault.kind.startswith("out-of-bounds"):
        return
    for buffer in workload.buffers:
        if buffer.probed and buffer.name == named[1]:
            line = f"line {fault.where.line}, " if fault.where.line else ""
            raise ShortExtent(
                f"the probed extent of `{buffer.name}` is too small at {describe(sizes)} ({line}{fault.kernel} "
                f"{fault.message}): state it in a directive above the kernel "
                f"(buffer {buffer.name}: {buffer.dtype}[...] {buffer.access.value})"
            )
