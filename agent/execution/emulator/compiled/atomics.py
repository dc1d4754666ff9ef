"""Atomics whose order makes no difference: of whole numbers, one operation throughout the kernel, and nobody looks at
what was there before."""

from llvmlite import ir

from agent.execution.emulator.compiled.instructions import address_of, reach, writes
from agent.execution.emulator.compiled.layout import PHASE_SHIFT, Row, Word
from agent.execution.emulator.compiled.loops import I64, NotLowered
from agent.execution.emulator.compiled.records import atomic_everywhere, atomic_stamp
from agent.execution.emulator.compiled.spaces import Access, Place, at, column, mark, marked, pointer, shared_grain
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.steps.atomic import words_of
from agent.execution.emulator.uses import registers
from agent.execution.emulator.values import Lowering, file_of, width_of

_ATOMICS = ("atom", "red")
_BITWISE = ("add", "and", "or", "xor")
_KINDS = ("u32", "s32", "b32", "u64", "s64", "b64")


@writes(*_ATOMICS)
def atomic(thread: Thread, lowering: Lowering) -> None:
    item, found = lowering.item, lowering.instruction
    space, name, count = words_of(lowering)
    kind = found.types[0]
    operation = name if name in _BITWISE else _extreme(name, kind)
    if not operation or kind not in _KINDS or count > 1:
        raise NotLowered(f"the atomic {found.opcode}")
    if any(thread.kernel.users.get(key) for key in registers(item, found.destinations)):
        raise NotLowered("an atomic that gives what was there before")
    if any(_differs(one.instruction, name, kind) for one in thread.kernel.sites):
        raise NotLowered("atomics of different kinds")
    address, owner = address_of(thread, lowering, found.sources[0])
    if owner and space == "generic":
        space = "shared" if owner == "shared" else "global"
    if space != "shared" and "cta" in found.modifiers:
        raise NotLowered("an atomic for one block")
    value = thread.get(lowering.source(found.sources[1], file_of(kind)))
    access = Access(lowering.site.index, width_of(kind), writes=True)
    reach(thread, space, address, access, lambda place: _change(thread, place, access, operation, value), _note)


def _extreme(name: str, kind: str) -> str:
    if name not in ("min", "max"):
        return ""
    return name if kind[0] == "s" else f"u{name}"


def _differs(other: object, name: str, kind: str) -> bool:
    words = (getattr(other, "modifiers", ()), getattr(other, "types", ()))
    return getattr(other, "base", "") in _ATOMICS and (name not in words[0] or words[1] != (kind,))


def _change(thread: Thread, place: Place, access: Access, operation: str, value: ir.Value) -> None:
    thread.builder.atomic_rmw(operation, pointer(thread.builder, place.host, access.width), value, "monotonic")


def _note(thread: Thread, place: Place, access: Access) -> None:
    if place.row is None:
        _note_shared(thread, place, access)
    else:
        _note_buffer(thread, place, place.row, access)


def _note_shared(thread: Thread, place: Place, access: Access) -> None:
    """Atomics of any threads may meet; nothing else may have happened to the cell since the last barrier."""
    builder, grain = thread.builder, shared_grain(thread)
    stamp = atomic_stamp(builder, thread.stamp)
    for k in range(access.span // grain):
        cell = builder.add(builder.udiv(place.offset, I64(grain)), I64(k))
        written, seen = (at(builder, thread.word(word), cell) for word in (Word.SHARED_WRITTEN, Word.SHARED_READ))
        before = builder.load(written)
        plain = builder.and_(_now(builder, before, stamp), builder.icmp_unsigned("!=", before, stamp))
        thread.suspect_unless(builder.not_(builder.or_(plain, _now(builder, builder.load(seen), stamp))), access.site)
        builder.store(stamp, written)


def _now(builder: ir.IRBuilder, record: ir.Value, stamp: ir.Value) -> ir.Value:
    """Whether the record is of this block and since the last barrier."""
    return builder.icmp_unsigned("==", builder.lshr(builder.xor(record, stamp), I64(PHASE_SHIFT)), I64(0))


def _note_buffer(thread: Thread, place: Place, row: ir.Value, access: Access) -> None:
    builder, grain, stamp = thread.builder, thread.kernel.facts.grain, atomic_everywhere()
    records = [column(thread, row, which) for which in (Row.WRITTEN, Row.READ)]
    # every buffer that a launch may write to has records
    thread.suspect_unless(builder.icmp_unsigned("!=", records[0], I64(0)), access.site)
    for k in range(access.span // grain):
        cell = builder.add(builder.udiv(place.offset, I64(grain)), I64(k))
        written, seen = (at(builder, record, cell) for record in records)
        before = builder.load(written)
        fresh = builder.or_(builder.icmp_unsigned("==", before, I64(0)), builder.icmp_unsigned("==", before, stamp))
        unread = builder.icmp_unsigned("==", builder.load(seen), I64(0))
        thread.suspect_unless(builder.and_(fresh, unread), access.site)
        builder.store(stamp, written)
    marks = column(thread, row, Row.MARKS)
    if thread.tracked:
        checked = builder.icmp_unsigned("!=", column(thread, row, Row.CHECKED), I64(0))
        thread.when(checked, lambda: marked(thread, marks, place, access))
    thread.when(builder.icmp_unsigned("!=", marks, I64(0)), lambda: mark(thread, marks, place, access))
