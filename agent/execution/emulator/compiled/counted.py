"""A loop that counts, as LLVM instructions."""

from collections.abc import Callable

from llvmlite import ir

from agent.execution.emulator.compiled.loops import I64


def counted(
    builder: ir.IRBuilder, slot: ir.Value, first: ir.Value, last: ir.Value, body: Callable[[ir.Value], object]
) -> None:
    """``body(index)`` for ``first <= index < last``, signed numbers of 64 bits. ``slot``: memory for one of them."""
    test, inside, after = (builder.function.append_basic_block() for _ in range(3))
    builder.store(first, slot)
    builder.branch(test)
    builder.position_at_end(test)
    index = builder.load(slot)
    builder.cbranch(builder.icmp_signed("<", index, last), inside, after)
    builder.position_at_end(inside)
    body(index)
    builder.store(builder.add(index, I64(1)), slot)
    builder.branch(test)
    builder.position_at_end(after)
