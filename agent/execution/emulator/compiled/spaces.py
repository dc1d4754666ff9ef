"""Accesses to memory as compiled code makes them: each is checked before it is made, whatever was asked for. One that
is not sound, reads what nobody has written, or meets another thread's stops the code."""

from collections.abc import Sequence

from attrs import frozen
from llvmlite import ir

from agent.execution.emulator.addresses import HALF, LOCAL, PARAM, SHARED, TAG_BITS
from agent.execution.emulator.buffers import MARK
from agent.execution.emulator.compiled.layout import BLOCK_SHIFT, Row, Word
from agent.execution.emulator.compiled.loops import I32, I64, NotLowered
from agent.execution.emulator.compiled.records import met, met_in_block, read_anywhere, read_in_block
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.copying import only_copied

MOST_SPAN = 32


@frozen
class Access:
    """``count`` neighbouring values of ``width`` bytes at the instruction ``site``; ``reads``, ``writes`` or both."""

    site: int
    width: int
    count: int = 1
    reads: bool = False
    writes: bool = False

    @property
    def span(self) -> int:
        return self.width * self.count


@frozen(eq=False)
class Place:
    """Where a sound access goes: the address of its bytes here, and in a buffer its row and offset."""

    host: ir.Value
    offset: ir.Value
    row: ir.Value | None = None


def pointer(builder: ir.IRBuilder, address: ir.Value, width: int) -> ir.Value:
    return builder.inttoptr(address, ir.IntType(8 * width).as_pointer())


def at(builder: ir.IRBuilder, base: ir.Value, index: ir.Value) -> ir.Value:
    """The address of 64-bit word number ``index``."""
    return builder.inttoptr(builder.add(base, builder.shl(index, I64(3))), I64.as_pointer())


def read(thread: Thread, place: Place, access: Access) -> list[ir.Value]:
    builder = thread.builder
    found = []
    for k in range(access.count):
        value = builder.load(pointer(builder, builder.add(place.host, I64(k * access.width)), access.width))
        value.align = access.width
        found.append(value)
    return found


def write(thread: Thread, place: Place, access: Access, values: Sequence[ir.Value]) -> None:
    builder = thread.builder
    for k, value in enumerate(values):
        stored = builder.store(value, pointer(builder, builder.add(place.host, I64(k * access.width)), access.width))
        stored.align = access.width


# Where --------------------------------------------------------------------------------------------------------------


def tag_at(thread: Thread, address: ir.Value) -> ir.Value:
    builder = thread.builder
    return builder.lshr(builder.add(address, I64(HALF)), I64(TAG_BITS))


def in_buffer(thread: Thread, address: ir.Value, access: Access) -> Place:
    """The place of a global address."""
    builder, span = thread.builder, access.span
    if span > MOST_SPAN:
        raise NotLowered(f"an access of {span} bytes")
    tag = tag_at(thread, address)
    thread.suspect_unless(builder.icmp_unsigned("<", tag, thread.word(Word.TAGS)), access.site)
    row = builder.add(thread.word(Word.TABLE), builder.mul(tag, I64(8 * Row.COUNT)))
    offset = builder.sub(address, builder.shl(tag, I64(TAG_BITS)))
    begin = builder.sub(offset, column(thread, row, Row.START))
    fits = column(thread, row, Row.FITS + span.bit_length() - 1)
    sound = builder.icmp_unsigned("<", begin, fits)
    if span > 1:
        sound = builder.and_(sound, builder.icmp_unsigned("==", builder.and_(address, I64(span - 1)), I64(0)))
    if access.writes:
        sound = builder.and_(sound, builder.icmp_unsigned("!=", column(thread, row, Row.WRITABLE), I64(0)))
    thread.suspect_unless(sound, access.site)
    return Place(builder.add(column(thread, row, Row.DATA), offset), offset, row)


def column(thread: Thread, row: ir.Value, which: int) -> ir.Value:
    builder = thread.builder
    found = builder.load(at(builder, row, I64(which)))
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def _inside(thread: Thread, offset: ir.Value, size: ir.Value | int, access: Access) -> None:
    builder, span = thread.builder, access.span
    if isinstance(size, int):
        fits: ir.Value = I64(max(size - span + 1, 0))
    else:
        enough = thread.head.icmp_unsigned(">=", size, I64(span))
        fits = thread.head.select(enough, thread.head.sub(size, I64(span - 1)), I64(0))
    sound = builder.icmp_unsigned("<", offset, fits)
    if span > 1:
        if span & (span - 1):
            raise NotLowered(f"an access of {span} bytes")
        sound = builder.and_(sound, builder.icmp_unsigned("==", builder.and_(offset, I64(span - 1)), I64(0)))
    thread.suspect_unless(sound, access.site)


def in_shared(thread: Thread, offset: ir.Value, access: Access) -> Place:
    builder = thread.builder
    _inside(thread, offset, thread.word(Word.SHARED_SIZE), access)
    if not one_region(thread.kernel.code):
        ends = pointer(builder, builder.add(thread.word(Word.SHARED_ENDS), builder.shl(offset, I64(2))), 4)
        end = builder.zext(builder.load(ends), I64)
        thread.suspect_unless(builder.icmp_unsigned(">=", end, builder.add(offset, I64(access.span))), access.site)
    return Place(builder.add(thread.word(Word.SHARED), offset), offset)


def one_region(code: object) -> bool:
    """Whether shared memory is one variable, from its first byte on."""
    sizes = [nbytes for _, nbytes in code.shared.values() if nbytes]  # type: ignore[attr-defined]
    return len(sizes) + bool(code.dynamic_names) <= 1  # type: ignore[attr-defined]


def in_local(thread: Thread, offset: ir.Value, access: Access) -> Place:
    size = thread.kernel.code.local_bytes
    _inside(thread, offset, size, access)
    head = thread.head
    begin = head.add(thread.word(Word.LOCAL), head.mul(thread.thread, I64(local_stride(size))))
    return Place(thread.builder.add(begin, offset), offset)


def local_stride(nbytes: int) -> int:
    """Bytes of local memory from one thread to the next."""
    return -(-nbytes // 64) * 64


def in_parameters(thread: Thread, offset: ir.Value, access: Access) -> Place:
    _inside(thread, offset, thread.word(Word.PARAMETERS_SIZE), access)
    return Place(thread.builder.add(thread.word(Word.PARAMETERS), offset), offset)


# What is noted ------------------------------------------------------------------------------------------------------


def note_shared(thread: Thread, place: Place, access: Access) -> None:
    """Meet the records of shared memory."""
    builder, grain = thread.builder, shared_grain(thread)
    for k in range(access.span // grain):
        cell = builder.add(builder.udiv(place.offset, I64(grain)), I64(k))
        written = at(builder, thread.word(Word.SHARED_WRITTEN), cell)
        if access.reads and thread.tracked:
            here = builder.lshr(builder.xor(builder.load(written), thread.stamp), I64(BLOCK_SHIFT))
            thread.suspect_unless(builder.icmp_unsigned("==", here, I64(0)), access.site)
        meet(thread, written, at(builder, thread.word(Word.SHARED_READ), cell), access, False)


def shared_grain(thread: Thread) -> int:
    return 1 if thread.kernel.narrow_shared else 4


def meet(thread: Thread, written: ir.Value, seen: ir.Value, access: Access, everywhere: bool) -> None:
    """A plain access to the cell with the records at ``written`` and ``seen``: of global memory if ``everywhere``."""
    builder, stamp = thread.builder, thread.stamp
    others, noted = (met, read_anywhere) if everywhere else (met_in_block, read_in_block)
    bad, before = others(builder, builder.load(written), stamp), builder.load(seen)
    if access.writes:
        bad = builder.or_(bad, others(builder, before, stamp))
    thread.suspect_unless(builder.not_(bad), access.site)
    if access.writes:
        builder.store(stamp, written)
    else:
        builder.store(noted(builder, before, stamp), seen)


def note_buffer(thread: Thread, place: Place, access: Access) -> None:
    """Meet the records of a buffer that the launch may write to, and the marks of what was written."""
    builder, row = thread.builder, place.row
    assert row is not None
    written, seen = column(thread, row, Row.WRITTEN), column(thread, row, Row.READ)
    grain = thread.kernel.facts.grain

    def records() -> None:
        for k in range(max(access.span // grain, 1)):
            cell = builder.add(builder.udiv(place.offset, I64(grain)), I64(k))
            meet(thread, at(builder, written, cell), at(builder, seen, cell), access, True)

    thread.when(builder.icmp_unsigned("!=", written, I64(0)), records)
    marks = column(thread, row, Row.MARKS)
    if access.writes:
        thread.when(builder.icmp_unsigned("!=", marks, I64(0)), lambda: mark(thread, marks, place, access))
    elif thread.tracked:
        checked = builder.icmp_unsigned("!=", column(thread, row, Row.CHECKED), I64(0))
        thread.when(checked, lambda: marked(thread, marks, place, access))


def mark(thread: Thread, marks: ir.Value, place: Place, access: Access) -> None:
    builder, of = thread.builder, ir.IntType(8 * access.width)
    for k in range(access.count):
        target = builder.add(builder.add(marks, place.offset), I64(k * access.width))
        builder.store(of(int(MARK[access.width])), pointer(builder, target, access.width))


def marked(thread: Thread, marks: ir.Value, place: Place, access: Access) -> None:
    builder, of = thread.builder, ir.IntType(8 * access.width)
    for k in range(access.count):
        target = builder.add(builder.add(marks, place.offset), I64(k * access.width))
        found = builder.load(pointer(builder, target, access.width))
        thread.suspect_unless(builder.icmp_unsigned("==", found, of(int(MARK[access.width]))), access.site)


def note_local(thread: Thread, place: Place, access: Access) -> None:
    """Reading local memory of which not one byte was written is a fault, unless the value is only passed on."""
    if not thread.tracked:
        return
    builder, of = thread.builder, ir.IntType(8 * access.width)
    apart = thread.head.sub(thread.word(Word.LOCAL_KNOWN), thread.word(Word.LOCAL))
    known: ir.Value = of(0)
    for k in range(access.count):
        target = pointer(builder, builder.add(builder.add(place.host, apart), I64(k * access.width)), access.width)
        if access.writes:
            builder.store(of((1 << 8 * access.width) - 1), target)
        else:
            known = builder.or_(known, builder.load(target))
    if access.reads and not only_copied(thread.kernel, thread.kernel.sites[access.site]):
        thread.suspect_unless(builder.icmp_unsigned("!=", known, of(0)), access.site)


WINDOWS = {SHARED: (in_shared, note_shared), LOCAL: (in_local, note_local), PARAM: (in_parameters, None)}
__all__ = ["I32", "WINDOWS", "Access", "Place", "in_buffer", "note_buffer", "read", "tag_at", "write"]
