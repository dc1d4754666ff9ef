"""``cp.async`` as compiled code: read when issued, kept in a list of the thread, written when the thread waits.

A copy in the list: where to, how many bytes and after how many groups, and the bytes themselves. A list that is full
leaves the launch to the other back end.
"""

from collections.abc import Callable

from llvmlite import ir

from agent.execution.emulator.compiled.counted import counted
from agent.execution.emulator.compiled.instructions import deliver, fetched, writes
from agent.execution.emulator.compiled.layout import COPY_HEAD, COPY_WORDS, MOST_COPIES, Word
from agent.execution.emulator.compiled.loops import BIT, I32, I64, NotLowered
from agent.execution.emulator.compiled.spaces import Access, at
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.ptx.instruction import Immediate, Register
from agent.execution.emulator.values import Lowering

_SIZES = (4, 8, 16)
_SHIFT = 8  # bits of the size in the word that it shares with the group


def uses_copies(kernel: Kernel) -> bool:
    return any(site.instruction.base == "cp" for site in kernel.sites)


@writes("cp")
def copy(thread: Thread, lowering: Lowering) -> None:
    words = [word for word in lowering.instruction.modifiers if not word.startswith("L2")]
    if words == ["async", "commit_group"]:
        committed = _head(thread, 1)
        thread.builder.store(thread.builder.add(thread.builder.load(committed), I64(1)), committed)
    elif words == ["async", "wait_all"]:
        _wait(thread, lowering, None)
    elif words == ["async", "wait_group"] and isinstance(lowering.instruction.sources[0], Immediate):
        _wait(thread, lowering, lowering.instruction.sources[0].bits)
    elif words[:1] == ["async"] and words[1:2] in (["ca"], ["cg"]) and words[2:] in (
        ["shared", "global"], ["shared::cta", "global"],
    ):  # fmt: skip
        _issue(thread, lowering)
    else:
        raise NotLowered(f"the instruction {lowering.instruction.opcode}")


def _head(thread: Thread, which: int) -> ir.Value:
    """Of the thread: 0 how many copies are in its list, 1 how many groups it has committed."""
    index = thread.once("copy head", lambda head: head.mul(thread.thread, I64(COPY_HEAD)))
    return at(thread.builder, thread.word(Word.COPY_HEADS), thread.builder.add(index, I64(which)))


def _entry(thread: Thread, number: ir.Value, word: int) -> ir.Value:
    first = thread.once("copies", lambda head: head.mul(thread.thread, I64(MOST_COPIES * COPY_WORDS)))
    builder = thread.builder
    index = builder.add(first, builder.add(builder.mul(number, I64(COPY_WORDS)), I64(word)))
    return at(builder, thread.word(Word.COPIES), index)


def _issue(thread: Thread, lowering: Lowering) -> None:
    operands, builder, site = list(lowering.instruction.sources), thread.builder, lowering.site.index
    if "L2::cache_hint" in lowering.instruction.modifiers:
        operands.pop()
    size = operands[2] if len(operands) in (3, 4) else None
    if not isinstance(size, Immediate) or size.bits not in _SIZES:
        raise NotLowered(f"the instruction {lowering.instruction.opcode}")
    nbytes, width = size.bits, min(size.bits, 8)
    target, source = (_address(thread, lowering, index) for index in (0, 1))
    access = Access(site, width, nbytes // width, reads=True)
    slots = [thread.head.alloca(I64) for _ in range(2)]
    for slot in slots:
        builder.store(I64(0), slot)

    def read() -> None:
        for slot, value in zip(slots, fetched(thread, "global", source, access), strict=False):
            builder.store(value if value.type == I64 else builder.zext(value, I64), slot)

    thread.when(_reads(thread, lowering, operands[3] if len(operands) == 4 else None, nbytes), read)
    count = builder.load(_head(thread, 0))
    thread.suspect_unless(builder.icmp_unsigned("<", count, I64(MOST_COPIES)), site)
    group = builder.load(_head(thread, 1))
    what = builder.or_(I64(nbytes), builder.shl(group, I64(_SHIFT)))
    values = (target, what, *(builder.load(slot) for slot in slots))
    for word, value in enumerate(values):
        builder.store(value, _entry(thread, count, word))
    builder.store(builder.add(count, I64(1)), _head(thread, 0))


def _address(thread: Thread, lowering: Lowering, index: int) -> ir.Value:
    base, shift, _ = lowering.address(lowering.instruction.sources[index])
    value = thread.get(base)
    wide = value if value.type == I64 else thread.builder.zext(value, I64)
    return thread.builder.add(wide, I64(shift))


def _reads(thread: Thread, lowering: Lowering, given: object, nbytes: int) -> ir.Value:
    """Whether the source is read: all of it or nothing; a part of it is left to the other back end."""
    builder = thread.builder
    if given is None:
        return BIT(1)
    if isinstance(given, Register) and given.file == "pred":
        ignored = thread.get(lowering.source(given, "pred"))
        return ignored if 3 in lowering.instruction.negated else builder.not_(ignored)
    size = thread.get(lowering.source(given, "b32"))  # type: ignore[arg-type]
    none, whole = builder.icmp_unsigned("==", size, I32(0)), builder.icmp_unsigned(">=", size, I32(nbytes))
    thread.suspect_unless(builder.or_(none, whole), lowering.site.index)
    return whole


def _wait(thread: Thread, lowering: Lowering, left: int | None) -> None:
    """Write what is due, in the order in which it was asked for; what is not moves up in the list."""
    builder = thread.builder
    count, committed = builder.load(_head(thread, 0)), builder.load(_head(thread, 1))
    kept = thread.head.alloca(I64)
    builder.store(I64(0), kept)

    def each(index: ir.Value) -> None:
        values = [builder.load(_entry(thread, index, word)) for word in range(COPY_WORDS)]
        group = builder.lshr(values[1], I64(_SHIFT))
        due: ir.Value = BIT(1)
        if left is not None:
            due = builder.icmp_unsigned("<", builder.add(group, I64(left)), committed)
        thread.when(due, lambda: _write(thread, lowering, values))
        thread.when(builder.not_(due), lambda: _keep(thread, kept, values))

    counted(thread.builder, thread.head.alloca(I64), I64(0), count, each)
    builder.store(builder.load(kept), _head(thread, 0))


def _keep(thread: Thread, kept: ir.Value, values: list[ir.Value]) -> None:
    builder, number = thread.builder, thread.builder.load(kept)
    for word, value in enumerate(values):
        builder.store(value, _entry(thread, number, word))
    builder.store(builder.add(number, I64(1)), kept)


def _write(thread: Thread, lowering: Lowering, values: list[ir.Value]) -> None:
    builder = thread.builder
    size = builder.and_(values[1], I64((1 << _SHIFT) - 1))
    for nbytes in _SIZES:
        width = min(nbytes, 8)
        access = Access(lowering.site.index, width, nbytes // width, writes=True)
        parts = [value if width == 8 else builder.trunc(value, I32) for value in values[2 : 2 + nbytes // width]]
        thread.when(builder.icmp_unsigned("==", size, I64(nbytes)), _writer(thread, values[0], access, parts))


def _writer(thread: Thread, target: ir.Value, access: Access, parts: list[ir.Value]) -> Callable[[], None]:
    return lambda: deliver(thread, "shared", target, access, parts)
