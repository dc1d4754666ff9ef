"""What lanes of a warp hand each other: each has room for some words, in two sets that are used by turns, so that a
lane that goes on at once does not spoil what others have still to read."""

from llvmlite import ir

from agent.execution.emulator.compiled.layout import Word
from agent.execution.emulator.compiled.loops import I64
from agent.execution.emulator.compiled.spaces import at
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.fragments import fragment, shape_of

ROW = 2  # words of a row of a tile


def words_of(instruction: Instruction) -> int:
    """How many words each lane hands in."""
    if instruction.base == "ldmatrix":
        return ROW
    if instruction.base == "mma" and (shape := shape_of(instruction.modifiers)) is not None:
        # a number for each element of A and B, of which halves have the most
        return sum(int(fragment(role, shape, "f16").rows.shape[1]) for role in "ab")
    return 1


def room(kernel: Kernel) -> int:
    """Words of each lane, for all that the kernel does."""
    return max((words_of(block.sites[0].instruction) for block in kernel.blocks if block.mask is not None), default=1)


def turn_of(thread: Thread) -> ir.Value:
    """0 or 1, by turns."""
    return thread.builder.load(at(thread.builder, thread.word(Word.TURNS), warp_of(thread)))


def warp_of(thread: Thread) -> ir.Value:
    return thread.builder.lshr(thread.thread, I64(5))


def handed(thread: Thread, turn: ir.Value, number: ir.Value, slot: int = 0) -> ir.Value:
    """Where a word of thread ``number`` is."""
    builder = thread.builder
    row = builder.mul(turn, builder.shl(thread.word(Word.WARPS), I64(5)))
    index = builder.mul(builder.add(row, number), I64(thread.room))
    return at(builder, thread.word(Word.EXCHANGE), builder.add(index, I64(slot)))
