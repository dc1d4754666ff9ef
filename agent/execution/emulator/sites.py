"""A place in the code that can fault or is counted: one PTX instruction of one kernel, with its source line."""

from collections.abc import Iterator, Sequence

from attrs import define

from agent.execution.emulator.addresses import FIRST_BUFFER
from agent.execution.emulator.flow import Item
from agent.execution.emulator.ptx.instruction import Instruction, Module


@define(eq=False)
class Site:
    """``tag`` remembers which buffer the last access went to (only a guess, always checked)."""

    index: int
    instruction: Instruction
    kernel: str
    file: str
    line: int
    tag: int = FIRST_BUFFER


def source_places(module: Module, items: Sequence[Item]) -> list[tuple[str, int]]:
    """File and line of each item, in the kernel's own file where it can be: code from a header counts where it was
    called, or, where the compiler does not say, with the line before it. So does code that belongs to no line."""
    named = ((module.files.get(item.instruction.file, ""), item.instruction.line) for item in items)
    own = next((file for file, line in named if line > 0), "")
    places: list[tuple[str, int]] = []
    for item in items:
        known = [(module.files.get(file, ""), line) for file, line in _locations(item) if line > 0]
        before = places[-1:] if places and places[-1][0] == own else []
        places.append(next((one for one in known if one[0] == own), (*before, *known, (own, 0))[0]))
    return places


def _locations(item: Item) -> Iterator[tuple[int, int]]:
    """Where the item is, then where that was inlined into, then where the function was called from."""
    at: Item | None = item
    while at is not None:
        yield at.instruction.file, at.instruction.line
        yield from at.instruction.inlined
        at = at.frame.caller
