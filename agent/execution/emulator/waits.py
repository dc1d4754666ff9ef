"""Where a warp has to wait for loads from memory: found in the code once, counted by how often the code runs.

A warp issues in order and stops at the first use of a value that is not there yet. Compilers move the loads of a
stretch of straight code together, ahead of their uses; so those wait together, once. Two things keep loads apart: an
address that was itself loaded, and a store of something loaded, which later loads must not overtake as long as they
might read what it wrote. ``ld.global.nc``, of memory that nobody writes, may, and so may a load through the same
pointer at another offset.
"""

from collections.abc import Iterator, Sequence

from agent.execution.emulator.memory_use import loads, may_be_global
from agent.execution.emulator.ptx.instruction import Address, Instruction, Operand, Register, Vector
from agent.execution.emulator.sites import Site

_ELSEWHERE = frozenset("shared shared::cta local param const param::entry param::func".split())  # noqa: SIM905


def waits(sites: Sequence[Site]) -> tuple[int, ...]:
    """The source line of each wait for loads of global memory in one basic block: that of the first load of a group."""
    found: list[int] = []
    loaded: set[Register] = set()
    stored: list[Operand] = []
    for site in sites:
        instruction = site.instruction
        late = not loaded.isdisjoint(_registers(instruction.sources))
        if _is_load(instruction):
            if not found or late or _held_back(instruction, stored):
                found.append(site.line)
                loaded, stored = set(), []
            loaded.update(_registers(instruction.destinations))
        elif instruction.base in ("st", "atom", "red", "call"):
            if late and not _ELSEWHERE & set(instruction.modifiers):
                stored.append(instruction.sources[0])
        elif late:
            loaded.update(_registers(instruction.destinations))
        else:
            loaded.difference_update(_registers(instruction.destinations))
    return tuple(found)


def _held_back(load: Instruction, stored: Sequence[Operand]) -> bool:
    """Whether the load might read what one of the stores wrote."""
    if "nc" in load.modifiers:
        return False
    return not all(_apart(load.sources[0], place) for place in stored)


def _apart(one: Operand, other: Operand) -> bool:
    if not (isinstance(one, Address) and isinstance(other, Address)) or one.base is None:
        return False
    return one.base == other.base and one.offset != other.offset


def _is_load(instruction: Instruction) -> bool:
    return loads(instruction) and may_be_global(instruction) and "const" not in instruction.modifiers


def _registers(operands: Sequence[Operand | None]) -> Iterator[Register]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                yield operand.base
        elif isinstance(operand, Vector):
            yield from _registers(operand.elements)
