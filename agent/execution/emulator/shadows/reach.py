"""Which errors reach memory: a result that is far from float64 and that everything made of it makes up for is none.

So with compensated sums: the term that holds what rounding lost is all error, by design, and is subtracted before
anything is stored. From each store it is followed back through registers, as long as results are in error themselves.
Memory is the end: what is stored there with an error counts as lost, whoever loads it.
"""

from collections.abc import Sequence

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.definitions import Definitions
from agent.execution.emulator.flow import Item
from agent.execution.emulator.sites import Site
from agent.execution.emulator.uses import Users, registers

NOTICED = 4.0
"""Units in the last place: a few operations cost as much."""


_MEASURED = frozenset(
    ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
)
_NARROW = frozenset(("f32", "f16", "bf16", "f16x2", "bf16x2", "f32x2"))
"""Of results of these the error is noted where they leave their line: one of which nothing is noted did not run."""


def reaching(sites: Sequence[Site], items: list[Item], users: Users, seen: Array, most: Array) -> Array:
    """By item: whether what it gives goes on to memory, through results alone whose largest error (``most``) is
    noticed. What is not measured (``seen`` no result of it: moves, shuffles, steps within a line) passes errors on."""
    idle = [not count and _leaves(*one, sites, users) for count, one in zip(seen, enumerate(items), strict=True)]
    passes = ((seen == 0) & ~np.array(idle, bool)) | (most >= NOTICED)
    definitions = Definitions(items)
    found = np.zeros(len(items), bool)
    waiting = [index for index, item in enumerate(items) if _stores(item)]
    while waiting:
        at = waiting.pop()
        for key in registers(items[at], items[at].instruction.sources):
            for index in definitions.of(at, key):
                if passes[index] and not found[index]:
                    found[index] = True
                    waiting.append(index)
    return found


def _leaves(index: int, item: Item, sites: Sequence[Site], users: Users) -> bool:
    """Whether an error of what it gives would have been noted."""
    instruction = item.instruction
    if instruction.base not in _MEASURED or not _NARROW.intersection(instruction.types[:1]):
        return False
    readers = (sites[at] for key in registers(item, instruction.destinations) for at in users.get(key, ()))
    return any((one.file, one.line) != (sites[index].file, sites[index].line) for one in readers)


def _stores(item: Item) -> bool:
    return item.kind == "step" and (not item.instruction.destinations or item.instruction.base == "atom")
