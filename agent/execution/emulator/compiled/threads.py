"""A kernel as the code of one thread: its registers, its instructions, its branches.

Threads of a block run one after the other, each up to where it waits for others (a *stop*: a barrier), and go on from
there when all have come. What they still need is kept in a frame meanwhile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field
from llvmlite import ir

from agent.execution.emulator.compiled.layout import SUSPECT, Word
from agent.execution.emulator.compiled.loops import BIT, I32, I64, NotLowered, type_of
from agent.execution.emulator.compiled.symbolic import Lane
from agent.execution.emulator.kernel import Block, Kernel
from agent.execution.emulator.values import Entries, Initial, Lowering

# what a thread does next: begin, nothing any more, or go on from a block of code (its number, plus one), where it waits
# for the threads of its block or, with the bit set, for the lanes of its warp
STARTING, ENDED, OF_WARP = 0, -1, 1 << 30
# entries by what their value hangs on
_OF_THREAD = frozenset(
    ["tid", "laneid", "warpid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"]
)
_OF_BLOCK = frozenset(["ctaid", "clusterid"])


def reach_of(initial: Initial) -> str:
    """``thread``, ``block`` or ``launch``: what the first value of an entry hangs on."""
    name = initial.name.partition(".")[0]
    return "thread" if name in _OF_THREAD else "block" if name in _OF_BLOCK else "launch"


@define(eq=False)
class Thread:
    """What the instructions of one thread are written with. ``stamp`` marks what it does to memory; ``room``: words
    that each lane may hand the others of its warp."""

    kernel: Kernel
    tracked: bool
    entries: Entries
    builder: ir.IRBuilder
    function: ir.Function
    context: ir.Value
    thread: ir.Value
    block: ir.Value
    stamp: ir.Value
    stop: ir.Block
    first: ir.IRBuilder
    room: int = 1
    code: ir.Value = field(init=False)
    registers: dict[int, ir.Value] = field(factory=dict)
    fixed: dict[int, ir.Value] = field(factory=dict)
    shared: dict[object, ir.Value] = field(factory=dict)

    @property
    def head(self) -> ir.IRBuilder:
        """Writes what is done once, before everything else."""
        self.first.position_at_end(self.function.entry_basic_block)
        return self.first

    # Values ---------------------------------------------------------------------------------------------------------

    def word(self, which: Word) -> ir.Value:
        """A word of the context, read once: nothing changes it while the code runs."""
        return self.once(which, lambda head: head.load(head.gep(self.context, [I32(which)])))

    def once(self, key: object, write: Callable[[ir.IRBuilder], ir.Value]) -> ir.Value:
        """A value that is the same wherever it is asked for, by ``key``: ``write`` writes it down before all else."""
        if key not in self.shared:
            self.shared[key] = write(self.head)
        return self.shared[key]

    def initial(self, entry: int) -> Initial:
        return self.entries.initial[entry]

    def dtype(self, entry: int) -> np.dtype[Any]:
        initial = self.initial(entry)
        return np.dtype(initial.literal.dtype if initial.literal is not None else initial.dtype)

    def get(self, entry: int) -> ir.Value:
        initial = self.initial(entry)
        if initial.literal is not None:
            return type_of(self.dtype(entry))(initial.literal.item())
        if initial.kind == "zero":
            return self.builder.load(self.register(entry))
        if entry not in self.fixed:
            self.fixed[entry] = self._filled(entry, initial)
        return self.fixed[entry]

    def _filled(self, entry: int, initial: Initial) -> ir.Value:
        """A value that the launch gives: the same for all, or one for each thread or block."""
        head, of = self.head, type_of(self.dtype(entry))
        address = head.load(head.gep(head.inttoptr(self.word(Word.ENTRIES), I64.as_pointer()), [I32(entry)]))
        index = {"thread": self.thread, "block": self.block, "launch": I64(0)}[reach_of(initial)]
        value = head.load(head.gep(head.inttoptr(address, I64.as_pointer()), [index]))
        return value if of == I64 else head.trunc(value, of)

    def register(self, entry: int) -> ir.Value:
        found = self.registers.get(entry)
        if found is None:
            of = type_of(self.dtype(entry))
            found = self.registers[entry] = self.head.alloca(of)
            self.head.store(of(0), found)
        return found

    def set(self, entry: int, value: ir.Value) -> None:
        self.builder.store(value, self.register(entry))

    def lane(self, entry: int) -> Lane:
        return Lane(self.builder, self.dtype(entry), self.get(entry))

    def lowering(self, block: Block, index: int) -> Lowering:
        number = block.first + index
        return Lowering(self.entries, self.kernel.sites[number], self.kernel.code.items[number])

    # Control --------------------------------------------------------------------------------------------------------

    def suspect_unless(self, holds: ir.Value, site: int) -> None:
        """Stop all that is compiled where ``holds`` does not."""
        good, bad = self.function.append_basic_block(), self.function.append_basic_block()
        branch = self.builder.cbranch(holds, good, bad)
        branch.set_weights([1 << 20, 1])
        self.builder.position_at_end(bad)
        self.leave(SUSPECT, site)
        self.builder.position_at_end(good)

    def leave(self, code: int, site: int) -> None:
        self.builder.store(I64(site), self.builder.gep(self.context, [I32(Word.SITE)]))
        self.builder.store(I32(code), self.code)
        self.builder.branch(self.stop)

    def when(self, holds: ir.Value, do: Callable[[], None]) -> None:
        """``do`` only where ``holds``."""
        inside, after = self.function.append_basic_block(), self.function.append_basic_block()
        self.builder.cbranch(holds, inside, after)
        self.builder.position_at_end(inside)
        do()
        self.builder.branch(after)
        self.builder.position_at_end(after)


__all__ = ["BIT", "ENDED", "STARTING", "NotLowered", "Thread", "reach_of"]
