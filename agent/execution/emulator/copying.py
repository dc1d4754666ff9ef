"""Loads whose value is only passed on: copying a struct copies its padding, which nobody ever wrote, and setting the
first bit field of a word reads the word."""

from agent.execution.emulator.flow import Item
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.sites import Site
from agent.execution.emulator.uses import Key, guard_key, registers

_DEPTH = 6
_PASSES_ON = frozenset(("mov", "and", "or", "bfi", "cvt"))  # setting a bit field keeps what is beside it


def only_copied(kernel: Kernel, site: Site) -> bool:
    """Whether what the load at ``site`` gives goes only to the thread's own memory (with a bit field set, perhaps)."""
    item = kernel.code.items[site.index]
    return all(_stored(kernel, key, _DEPTH) for key in registers(item, item.instruction.destinations))


def _stored(kernel: Kernel, key: Key, depth: int) -> bool:
    for index in kernel.users.get(key, ()):
        item = kernel.code.items[index]
        base, sources = item.instruction.base, item.instruction.sources
        guards = guard_key(item) == key
        if _keeps_private(item) and not guards and key not in set(registers(item, sources[:1])):
            continue
        if base not in _PASSES_ON or depth == 0:
            return False
        if not all(_stored(kernel, target, depth - 1) for target in registers(item, item.instruction.destinations)):
            return False
    return True


def _keeps_private(item: Item) -> bool:
    """A store that may be to the thread's own memory; what goes to global or shared memory is used for good."""
    return item.instruction.base == "st" and not {"global", "shared", "shared::cta"} & set(item.instruction.modifiers)
