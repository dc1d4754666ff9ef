"""Which instructions use what an instruction gives, in a kernel as laid out; registers are told apart by frame.

Flow counts for nothing here: a register that is written twice has the uses of both. PTX gives nearly every value a
register of its own, so little is lost.
"""

from collections.abc import Iterator

from agent.execution.emulator.flow import Item
from agent.execution.emulator.ptx.instruction import Address, Operand, Register, Vector

Key = tuple[int, str, int]
Users = dict[Key, list[int]]


def registers(item: Item, operands: tuple[Operand | None, ...]) -> Iterator[Key]:
    """Every register among ``operands``, also in vectors and addresses."""
    for operand in operands:
        if isinstance(operand, Register):
            yield key_of(item, operand)
        elif isinstance(operand, Vector):
            yield from registers(item, operand.elements)
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            yield key_of(item, operand.base)


def key_of(item: Item, register: Register) -> Key:
    return item.frame.number, register.file, register.slot


def guard_key(item: Item) -> Key | None:
    guard = item.guard or item.instruction.guard
    return None if guard is None else key_of(item, guard.register)


def users(items: list[Item]) -> Users:
    """The items that read each register, guards included."""
    found: Users = {}
    for index, item in enumerate(items):
        keys = set(registers(item, item.instruction.sources))
        guard = guard_key(item)
        for key in keys if guard is None else {*keys, guard}:
            found.setdefault(key, []).append(index)
    return found
