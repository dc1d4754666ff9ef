"""Instructions as compiled code: whatever the table of semantics has, by its own rules; moves, addresses, accesses."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from agent.execution.emulator.addresses import LOCAL, PARAM, SHARED, TAG_BITS
from agent.execution.emulator.addresses import WINDOWS as BASES
from agent.execution.emulator.compiled.loops import I64, NotLowered, cast, type_of
from agent.execution.emulator.compiled.spaces import (
    WINDOWS,
    Access,
    Place,
    in_buffer,
    note_buffer,
    read,
    tag_at,
    write,
)
from agent.execution.emulator.compiled.symbolic import Lane
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.ptx.instruction import Address, Immediate, Register, Special, Symbol, Vector
from agent.execution.emulator.semantics import Unsupported, constant, flatten, lower
from agent.execution.emulator.steps.memory import access as words_of
from agent.execution.emulator.values import FILE_TYPES, WIDE_FILE, Lowering, file_of, width_of

Writer = Callable[[Thread, Lowering], None]
Note = Callable[[Thread, Place, Access], None]
WRITERS: dict[str, Writer] = {}
_CARRY = "carry"
_CHIP = {"shared": SHARED, "local": LOCAL, "param": PARAM}


def writes(*bases: str) -> Callable[[Writer], Writer]:
    """Register what the base opcodes become."""

    def register(writer: Writer) -> Writer:
        for base in bases:
            WRITERS[base] = writer
        return writer

    return register


def instruction(thread: Thread, lowering: Lowering) -> None:
    """Write down one instruction. Raises NotLowered."""
    item = lowering.item
    writer = WRITERS.get(item.instruction.base, pure)
    if item.guard is None or writer is pure:
        writer(thread, lowering)
        return
    # a guarded step has no side effects: what it would have changed is put back
    targets = [lowering.destination(one) for one in flatten(item.instruction.destinations) if one is not None]
    before = [thread.get(target) for target in targets]
    writer(thread, lowering)
    holds = _guard(thread, lowering)
    for target, old in zip(targets, before, strict=True):
        thread.set(target, thread.builder.select(holds, thread.get(target), old))


def _guard(thread: Thread, lowering: Lowering) -> ir.Value:
    guard = lowering.item.guard
    assert guard is not None
    holds = thread.get(lowering.entries.register(lowering.frame, guard.register))
    return thread.builder.not_(holds) if guard.negated else holds


def pure(thread: Thread, lowering: Lowering) -> None:
    """The rule of the table, run on lanes."""
    found = lowering.instruction
    try:
        operation = lower(found)
    except Unsupported as error:
        raise NotLowered(str(error)) from None
    sources: list[Any] = [
        constant(operand, kind)
        if isinstance(operand, Immediate)
        else thread.lane(lowering.source(operand, file_of(kind)))
        for operand, kind in zip(flatten(found.sources), operation.sources, strict=True)
    ]
    targets = [None if operand is None else lowering.destination(operand) for operand in flatten(found.destinations)]
    carry = lowering.entries.scratch_named(_CARRY, lowering.frame.number, "pred")
    if operation.reads_carry:
        sources.append(thread.lane(carry))
    if operation.writes_carry:
        targets.append(carry)
    results = operation.apply(sources)
    holds = None if lowering.item.guard is None else _guard(thread, lowering)
    for target, result in zip(targets, results, strict=True):
        if target is None:
            continue
        value = _fitting(thread, target, result)
        thread.set(target, value if holds is None else thread.builder.select(holds, value, thread.get(target)))


def _fitting(thread: Thread, target: int, result: Any) -> ir.Value:
    dtype = thread.dtype(target)
    if not isinstance(result, Lane):
        return type_of(dtype)(np.asarray(result).astype(dtype).item())
    if result.dtype != dtype:
        raise NotLowered(f"a result of type {result.dtype} in a register of {dtype}")
    return result.value


@writes("mov")
def move(thread: Thread, lowering: Lowering) -> None:
    found = lowering.instruction
    (target,), (source,) = found.destinations, found.sources
    if isinstance(source, Vector) or (isinstance(target, Vector) and target.elements != (None,)):
        pure(thread, lowering)
        return
    if isinstance(source, Special) and source.name.startswith(("clock", "globaltimer")):
        raise NotLowered("a clock")
    if isinstance(target, Vector):
        return
    file = target.file if isinstance(target, Register) else file_of(found.types[0])
    _copy(thread, lowering.destination(target), lowering.source(source, file))


def _copy(thread: Thread, target: int, source: int) -> None:
    if thread.dtype(target) != thread.dtype(source):
        raise NotLowered("a move between registers of different size")
    thread.set(target, thread.get(source))


@writes("cvta")
def convert_address(thread: Thread, lowering: Lowering) -> None:
    found = lowering.instruction
    base = I64(BASES.get(found.modifiers[-1].split("::")[0], 0))
    (source,), (target,) = found.sources, found.destinations
    if file_of(found.types[-1]) != "b64":
        raise NotLowered("a generic address of 32 bits")
    value = thread.get(lowering.source(source, "b64"))
    back = "to" in found.modifiers
    thread.set(lowering.destination(target), (thread.builder.sub if back else thread.builder.add)(value, base))


@writes("membar", "fence", "prefetch", "prefetchu", "nanosleep", "applypriority", "pmevent", "setmaxnreg")
def nothing(thread: Thread, lowering: Lowering) -> None:
    """No effect on values. What a fence orders counts as unordered here: where it matters, the code stops."""


@writes("call")
def call(thread: Thread, lowering: Lowering) -> None:
    if lowering.item.deep or getattr(lowering.instruction.sources[0], "name", "") != "vprintf":
        raise NotLowered("a call that is not laid out")


# Accesses -----------------------------------------------------------------------------------------------------------


def _parts(operand: Any, count: int) -> tuple[Any, ...]:
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(parts) != count:
        raise NotLowered("vector length")
    return parts


def address_of(thread: Thread, lowering: Lowering, operand: Any) -> tuple[ir.Value, str]:
    """The address with its offset, as 64 bits, and the space of the symbol it starts from."""
    base, shift, owner = lowering.address(operand)
    value = thread.get(base)
    builder = thread.builder
    wide = value if value.type == I64 else builder.zext(value, I64)
    return (builder.add(wide, I64(shift)) if shift else wide), owner


@writes("ld", "ldu")
def load(thread: Thread, lowering: Lowering) -> None:
    space, kind, count = words_of(lowering)
    width, signed = width_of(kind), kind[0] == "s"
    found = lowering.instruction
    parts = _parts(found.destinations[0], count)
    files = [part.file if isinstance(part, Register) else WIDE_FILE[width] for part in parts]
    source = found.sources[0]
    owner = lowering.address(source)[2]
    if space == "param" and owner == "param":
        values = _parameters(thread, lowering, files, width, signed)
    else:
        address, _ = address_of(thread, lowering, source)
        space = "local" if space == "param" and owner == "local" else space
        loaded = fetched(thread, space, address, Access(lowering.site.index, width, count, reads=True))
        values = [_widened(thread, value, width, signed, file) for value, file in zip(loaded, files, strict=True)]
    for part, value in zip(parts, values, strict=True):
        if part is not None:
            thread.set(lowering.destination(part), value)


def _parameters(thread: Thread, lowering: Lowering, files: list[str], width: int, signed: bool) -> list[ir.Value]:
    operand = lowering.instruction.sources[0]
    symbol = operand.base if isinstance(operand, Address) else operand
    assert isinstance(symbol, Symbol)
    offset = lowering.place(symbol)[1] + getattr(operand, "offset", 0)
    return [
        thread.get(lowering.entries.parameter(offset + k * width, width, signed, file)) for k, file in enumerate(files)
    ]


def _widened(thread: Thread, value: ir.Value, width: int, signed: bool, file: str) -> ir.Value:
    held, loaded = np.dtype(FILE_TYPES[file]), np.dtype(f"{'i' if signed else 'u'}{width}")
    return cast(thread.builder, value, loaded, held)


@writes("st")
def store(thread: Thread, lowering: Lowering) -> None:
    space, kind, count = words_of(lowering)
    width = width_of(kind)
    target, source = lowering.instruction.sources[:2]
    file, builder = file_of(kind), thread.builder
    of, values = ir.IntType(8 * width), []
    for part in _parts(source, count):
        value = thread.get(lowering.source(part, file))
        if value.type != of:
            value = (builder.trunc if value.type.width > of.width else builder.zext)(value, of)
        values.append(value)
    address, owner = address_of(thread, lowering, target)
    space = owner or "local" if space == "param" else space
    deliver(thread, space, address, Access(lowering.site.index, width, count, writes=True), values)


def fetched(thread: Thread, space: str, address: ir.Value, access: Access) -> list[ir.Value]:
    of = ir.IntType(8 * access.width)
    slots = [thread.head.alloca(of) for _ in range(access.count)]

    def fetch(place: Place) -> None:
        for slot, value in zip(slots, read(thread, place, access), strict=True):
            thread.builder.store(value, slot)

    reach(thread, space, address, access, fetch)
    return [thread.builder.load(slot) for slot in slots]


def deliver(thread: Thread, space: str, address: ir.Value, access: Access, values: list[ir.Value]) -> None:
    reach(thread, space, address, access, lambda place: write(thread, place, access, values))


def reach(
    thread: Thread,
    space: str,
    address: ir.Value,
    access: Access,
    act: Callable[[Place], None],
    note: Note | None = None,
) -> None:
    """Check an access, note it, and ``act`` on its place; a generic address is looked at to see where it leads.
    ``note`` is how it is noted, where that is not how plain accesses are; then it may go to no memory of a thread's
    own."""
    if space == "param" and access.writes:
        raise NotLowered("a store to the parameters")
    if space in _CHIP:
        _on_chip(thread, _CHIP[space], address, access, act, note)
        return
    if space != "generic":
        _in_memory(thread, address, access, act, note)
        return
    builder, function = thread.builder, thread.function
    tag = tag_at(thread, address)
    after, elsewhere = function.append_basic_block(), function.append_basic_block()
    windows = (SHARED,) if note is not None else (SHARED, LOCAL, PARAM) if access.reads else (SHARED, LOCAL)
    ways = {window: function.append_basic_block() for window in windows}
    switch = builder.switch(tag, elsewhere)
    for window, way in ways.items():
        switch.add_case(I64(window), way)
        builder.position_at_end(way)
        _on_chip(thread, window, builder.sub(address, I64(window << TAG_BITS)), access, act, note)
        builder.branch(after)
    builder.position_at_end(elsewhere)
    _in_memory(thread, address, access, act, note)
    builder.branch(after)
    builder.position_at_end(after)


def _on_chip(
    thread: Thread, window: int, offset: ir.Value, access: Access, act: Callable[[Place], None], note: Note | None
) -> None:
    find, usual = WINDOWS[window]
    place = find(thread, offset, access)
    note = note or usual
    if note is not None:
        note(thread, place, access)
    act(place)


def _in_memory(
    thread: Thread, address: ir.Value, access: Access, act: Callable[[Place], None], note: Note | None
) -> None:
    place = in_buffer(thread, address, access)
    (note or note_buffer)(thread, place, access)
    act(place)
