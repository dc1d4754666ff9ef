"""The barrier of a whole grid (``cooperative_groups::this_grid().sync()``): the memory it is kept in.

A cooperative launch tells the kernel, in two special registers, where a word lies on which blocks count each other. The
count itself is code of the program. Where blocks of the launch are left out it would never be complete: to touch it is
refused then.
"""

from attrs import define

from agent.execution.emulator.addresses import GRID, TAG_BITS, Array
from agent.execution.emulator.buffers import Buffer, new_buffer
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.memory import Memory

#: The special registers that hold the address, and by how many bits it is shifted right in them.
ADDRESS = {"envreg1": 32, "envreg2": 0}
_BYTES = 64


@define(eq=False, slots=False)
class _Closed(Buffer):
    def ensure(self, offsets: Array) -> None:
        raise Refused("a barrier of the whole grid, where not all blocks are run")


def address_part(name: str) -> int:
    """What the special register holds."""
    return (GRID << TAG_BITS) >> ADDRESS[name] & 0xFFFF_FFFF


def open_grid(memory: Memory, kernel: Kernel, complete: bool) -> None:
    """Lay out the word for a launch of ``kernel`` that asks for it. ``complete``: all blocks run."""
    if any(initial.name in ADDRESS for initial in kernel.entries):
        buffer = new_buffer("(grid barrier)", GRID, _BYTES)
        if not complete:
            buffer = _Closed(buffer.name, GRID, 0, _BYTES, buffer.data, views=buffer.views)
        memory.buffers[GRID] = buffer
