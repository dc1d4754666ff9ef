"""What decides the addresses and branches of a kernel: loaded values, special registers.

A *source* is a number (the site of a load from global or constant memory, or of an atomic) or a name (``ctaid.x``).
Sources travel forward through registers and, in one piece each, through shared and local memory: nothing that reaches
an address is missed, and in memory more may be seen than there is. Where a branch hangs on sources, what is computed on
one side of it and used behind it, or in the next turn of the loop that it closes, hangs on them too: that is kept apart
(``through``), as it says how far a walk goes rather than where it leads.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field, frozen

from agent.execution.emulator.flow import Item
from agent.execution.emulator.kernel import Block, Kernel
from agent.execution.emulator.memory_use import may_be_shared, touches, writes_to
from agent.execution.emulator.ptx.instruction import Operand, Special, Symbol, Vector
from agent.execution.emulator.uses import Key, guard_key, registers

Source = int | str
Sources = frozenset[Source]
NONE: Sources = frozenset()
_ON_CHIP = ("shared", "local", "param")


@frozen
class Influence:
    """By site: what decides an address (``addresses``), what decides how far a walk to that address goes (``through``),
    what decides a branch."""

    addresses: Mapping[int, Sources]
    through: Mapping[int, Sources]
    branches: Mapping[int, Sources]


@define(eq=False)
class _Flow:
    kernel: Kernel
    values: dict[object, Sources] = field(factory=dict)
    carried: dict[object, Sources] = field(factory=dict)

    def spread(self, held: dict[object, Sources], target: object, more: Sources) -> bool:
        """Whether ``target`` now hangs on more than before."""
        before = held.get(target, NONE)
        held[target] = before | more
        return len(held[target]) > len(before)


def influence(kernel: Kernel) -> Influence:
    """Found by going over the code until nothing is added; a few rounds, as code is mostly in order."""
    flow = _Flow(kernel)
    regions = _Regions(kernel)
    items = kernel.code.items
    changed = True
    while changed:
        changed = sum(_step(flow, index, item) for index, item in enumerate(items)) > 0
        for number, block in enumerate(kernel.blocks):
            told = _branch(flow, items, block)
            if told:
                changed |= sum(flow.spread(flow.carried, key, told) for key in regions.carried(number)) > 0
    found = {index: _address_keys(item) for index, item in enumerate(items) if touches(item.instruction)}
    branches = ((block.sites[-1].index, _branch(flow, items, block)) for block in kernel.blocks if block.sites)
    return Influence(
        {index: _union(flow.values, keys) for index, keys in found.items()},
        {index: _union(flow.carried, keys) for index, keys in found.items()},
        {index: sources for index, sources in branches if sources},
    )


def _branch(flow: _Flow, items: Sequence[Item], block: Block) -> Sources:
    """What a block's end hangs on, where it may go on in several ways."""
    if block.end.kind not in ("branch", "table"):
        return NONE
    item = items[block.sites[-1].index]
    key = guard_key(item) if block.end.kind == "branch" else None
    keys = [key] if key is not None else list(registers(item, item.instruction.sources))
    return _union(flow.values, keys) | _union(flow.carried, keys)


def _step(flow: _Flow, index: int, item: Item) -> bool:
    instruction, changed = item.instruction, False
    for held in (flow.values, flow.carried):
        told = _union(held, _reads(item))
        if held is flow.values:
            told |= _specials(instruction.sources) | _loaded(index, item)
        targets: list[object] = list(registers(item, instruction.destinations))
        stored = writes_to(instruction)
        if stored is not None:
            targets += _cells(item)
        changed |= told != NONE and sum(flow.spread(held, target, told) for target in targets) > 0
    return changed


def _union(held: Mapping[object, Sources], keys: Sequence[object]) -> Sources:
    return NONE.union(*(held.get(key, NONE) for key in keys))


def _reads(item: Item) -> list[object]:
    """Keys of what an instruction's result is made of. What a load finds comes from memory; where it looked counts only
    in the thread's own and the block's memory, in which a value may be chosen so."""
    instruction = item.instruction
    if not touches(instruction):
        guard = guard_key(item) if item.kind == "step" else None
        return [*registers(item, instruction.sources), *([guard] if guard is not None else [])]
    keys: list[object] = []
    if instruction.base in ("ld", "ldu", "ldmatrix", "atom") or "load" in instruction.modifiers:
        keys += _cells(item)
        keys += _address_keys(item) if _cells(item) else []
    if writes_to(instruction) is not None:
        keys += registers(item, instruction.sources[1:])
    return keys


def _cells(item: Item) -> list[object]:
    """The memories on the chip that an access may go to, each as one cell."""
    words = {word.partition("::")[0] for word in item.instruction.modifiers}
    named = [space for space in ("global", "const", *_ON_CHIP) if space in words]
    if item.instruction.base == "cp":
        return ["shared"] if "shared" in words else []
    if not named:
        return ["shared", "local"] if may_be_shared(item.instruction) else ["local"]
    return ["local" if space == "param" else space for space in named if space in _ON_CHIP]


def _loaded(index: int, item: Item) -> Sources:
    """The load itself, where it may be one from memory that the host or another launch fills."""
    instruction = item.instruction
    words = {word.partition("::")[0] for word in instruction.modifiers}
    if instruction.base == "cp":
        return frozenset((index,)) if "global" in words else NONE
    if instruction.base in ("st", "stmatrix", "red", "mbarrier") or not touches(instruction):
        return NONE
    return NONE if words & set(_ON_CHIP) else frozenset((index,))


def _specials(operands: tuple[Operand | None, ...]) -> Sources:
    found: set[Source] = set()
    for operand in operands:
        if isinstance(operand, Special):
            found.add(operand.name)
        elif isinstance(operand, Vector):
            found |= _specials(operand.elements)
    return frozenset(found)


def _address_keys(item: Item) -> list[object]:
    """The registers of the addresses that an instruction goes to (both of a copy's)."""
    operands = item.instruction.sources[: 2 if item.instruction.base == "cp" else 1]
    return [key for operand in operands for key in _bases(item, operand)]


def _bases(item: Item, operand: Operand | None) -> Iterator[Key]:
    if operand is not None and not isinstance(getattr(operand, "base", operand), Symbol):
        yield from registers(item, (operand,))


# What a branch decides ----------------------------------------------------------------------------------------------


class _Regions:
    """For each block that ends in a branch: the registers through which what it decides is carried on."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.next = [_onward(block, len(kernel.blocks)) for block in kernel.blocks]
        self.after = _postdominators(self.next)
        self.known: dict[int, tuple[object, ...]] = {}

    def carried(self, number: int) -> tuple[object, ...]:
        if number not in self.known:
            self.known[number] = tuple(self._carried(self._region(number)))
        return self.known[number]

    def _region(self, number: int) -> set[int]:
        """Blocks that run or not as the branch goes: up to where all of its ways meet again."""
        meeting, region = self.after[number] - {number}, set[int]()
        todo = list(self.next[number])
        while todo:
            block = todo.pop()
            if block in region or block in meeting:
                continue
            region.add(block)
            todo += self.next[block]
        return region

    def _carried(self, region: set[int]) -> Iterator[object]:
        """Registers written in the region that are read outside, or, by a later turn, before they are written."""
        items = self.kernel.code.items
        for number in region:
            for site in self.kernel.blocks[number].sites:
                item = items[site.index]
                for key in registers(item, item.instruction.destinations):
                    users = self.kernel.users.get(key, ())
                    if any(self._block_of(user) not in region or user <= site.index for user in users):
                        yield key

    def _block_of(self, index: int) -> int:
        low, high = 0, len(self.kernel.blocks) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.kernel.blocks[middle].first <= index else (low, middle - 1)
        return low


def _onward(block: Block, count: int) -> tuple[int, ...]:
    if block.end.kind in ("exit", "trap"):
        return ()
    return tuple(dict.fromkeys(target for target in block.end.targets if target < count))


def _postdominators(following: Sequence[tuple[int, ...]]) -> list[set[int]]:
    """For each block those that every way to an exit passes, itself included. Aho, Lam, Sethi and Ullman, 9.6.1."""
    everything = set(range(len(following)))
    found = [set(everything) if onward else {number} for number, onward in enumerate(following)]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(following))):
            if following[number]:
                now = set.intersection(*(found[target] for target in following[number])) | {number}
                if now != found[number]:
                    found[number], changed = now, True
    return found
