"""Loads whose value is only passed on: copying a struct copies its padding, which nobody ever wrote, and setting the
first bit field of a word reads the word."""

from collections.abc import Iterator

from agent.execution.emulator.flow import Item
from agent.execution.emulator.instruction import Address, Operand, Register, Vector
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.sites import Site

_DEPTH = 6
_PASSES_ON = frozenset(("mov", "and", "or", "bfi", "cvt"))  # setting a bit field keeps what is beside it
Key = tuple[int, str, int]


def only_copied(kernel: Kernel, site: Site) -> bool:
    """Whether what the load at ``site`` gives goes only to the thread's own memory (with a bit field set, perhaps)."""
    item = kernel.code.items[site.index]
    return all(_stored(kernel, key, _DEPTH) for key in _registers(item, item.instruction.destinations))


def _stored(kernel: Kernel, key: Key, depth: int) -> bool:
    for item in kernel.code.items:
        base, sources = item.instruction.base, item.instruction.sources
        if key not in set(_registers(item, sources)) and not _guards(item, key):
            continue
        if _keeps_private(item) and not _guards(item, key) and key not in set(_registers(item, sources[:1])):
            continue
        if base not in _PASSES_ON or depth == 0:
            return False
        if not all(_stored(kernel, target, depth - 1) for target in _registers(item, item.instruction.destinations)):
            return False
    return True


def _keeps_private(item: Item) -> bool:
    """A store that may be to the thread's own memory; what goes to global or shared memory is used for good."""
    return item.instruction.base == "st" and not {"global", "shared", "shared::cta"} & set(item.instruction.modifiers)


def _guards(item: Item, key: Key) -> bool:
    guard = item.guard or item.instruction.guard
    return guard is not None and _key(item, guard.register) == key


def _registers(item: Item, operands: tuple[Operand | None, ...]) -> Iterator[Key]:
    for operand in operands:
        if isinstance(operand, Register):
            yield _key(item, operand)
        elif isinstance(operand, Vector):
            yield from _registers(item, operand.elements)
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            yield _key(item, operand.base)


def _key(item: Item, register: Register) -> Key:
    return item.frame.number, register.file, register.slot
