"""Who touched a cell of memory last: kept by compiled code for all that can be shared, whether races are asked for or
not. As long as no two threads meet in a cell with nothing to order them, the order in which threads run makes no
difference, and running them one by one gives what running them in step gives. Where they do meet, the code stops, and
the other back end runs the launch and says what there is to say.

Only barriers of the block order here: whatever else may order accesses counts as nothing, so that the code stops more
often than it had to, never less.
"""

from llvmlite import ir
from llvmlite.ir import IRBuilder as Builder

from agent.execution.emulator.compiled.layout import (
    ALL_ATOMIC,
    ANYBODY,
    ATOMICS,
    BLOCK_SHIFT,
    SEVERAL,
)
from agent.execution.emulator.compiled.loops import I64


def met_in_block(builder: Builder, record: ir.Value, stamp: ir.Value) -> ir.Value:
    """Whether another thread of the block left ``record`` since the last barrier. What other blocks left in shared
    memory was theirs."""
    apart = builder.xor(record, stamp)
    return builder.icmp_unsigned("<", builder.sub(apart, I64(1)), I64(SEVERAL))


def met(builder: Builder, record: ir.Value, stamp: ir.Value) -> ir.Value:
    """Whether anybody else left ``record`` in global memory: another block at any time, or a thread of this one since
    the last barrier."""
    nobody = builder.icmp_unsigned("==", record, I64(0))
    foreign = builder.icmp_unsigned("!=", builder.lshr(builder.xor(record, stamp), I64(BLOCK_SHIFT)), I64(0))
    return builder.or_(builder.and_(builder.not_(nobody), foreign), met_in_block(builder, record, stamp))


def read_in_block(builder: Builder, record: ir.Value, stamp: ir.Value) -> ir.Value:
    """The record of reads of shared memory after one more."""
    return builder.select(met_in_block(builder, record, stamp), builder.or_(stamp, I64(SEVERAL)), stamp)


def read_anywhere(builder: Builder, record: ir.Value, stamp: ir.Value) -> ir.Value:
    """The same of global memory."""
    nobody = builder.icmp_unsigned("==", record, I64(0))
    foreign = builder.icmp_unsigned("!=", builder.lshr(builder.xor(record, stamp), I64(BLOCK_SHIFT)), I64(0))
    known = builder.and_(builder.not_(nobody), foreign)
    return builder.select(known, I64(ANYBODY), read_in_block(builder, record, stamp))


def atomic_stamp(builder: Builder, stamp: ir.Value) -> ir.Value:
    """The stamp that all atomics of a block leave in shared memory between two barriers."""
    return builder.or_(builder.and_(stamp, I64(~SEVERAL)), I64(ATOMICS))


def atomic_everywhere() -> ir.Value:
    """The stamp that atomics leave in global memory."""
    return I64(ALL_ATOMIC)
