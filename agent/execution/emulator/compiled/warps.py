"""Instructions by which the lanes of a warp talk. Each lane hands in a value and waits; when all that have not ended
are there, each goes on and looks at what the others handed in. Where they are not, or a mask says otherwise, the other
back end judges."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from agent.execution.emulator.compiled.exchange import handed, turn_of, warp_of
from agent.execution.emulator.compiled.instructions import writes
from agent.execution.emulator.compiled.layout import Word
from agent.execution.emulator.compiled.loops import BIT, I32, I64, NotLowered, math
from agent.execution.emulator.compiled.spaces import at
from agent.execution.emulator.compiled.symbolic import Lane
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.ptx.instruction import Operand, Vector
from agent.execution.emulator.steps.warp import source_lane
from agent.execution.emulator.values import Lowering, file_of

#: The files of the values that lanes hand in, by base opcode; those of ``match`` come in any size.
_HANDED = {"shfl": "b32", "vote": "pred", "redux": "b32", "match": ""}
_EMPTY = frozenset(("elect", "bar", "barrier"))
_MODES = ("up", "down", "bfly", "idx")


#: What is handed in by other means, by base opcode.
HANDING: dict[str, Callable[[Thread, Lowering], None]] = {}


def hand_in(thread: Thread, lowering: Lowering) -> None:
    """What a lane does before it waits. Raises NotLowered for instructions that need more than that."""
    builder, base = thread.builder, lowering.instruction.base
    if base not in _HANDED and base not in _EMPTY and base not in HANDING:
        raise NotLowered(f"the instruction {lowering.instruction.opcode}")
    turn = turn_of(thread)
    warp = warp_of(thread)
    lane = builder.and_(thread.thread, I64(WARP - 1))
    group = at(builder, thread.word(Word.GROUPS), builder.add(builder.mul(turn, thread.word(Word.WARPS)), warp))
    builder.store(builder.or_(builder.load(group), builder.shl(I64(1), lane)), group)
    if base in HANDING:
        HANDING[base](thread, lowering)
    elif base in _HANDED:
        file = _HANDED[base] or file_of(lowering.instruction.types[0])
        value = thread.get(lowering.source(lowering.instruction.sources[0], file))
        if base == "vote" and 0 in lowering.instruction.negated:
            value = builder.not_(value)
        wide = value if value.type == I64 else builder.zext(value, I64)
        builder.store(wide, handed(thread, turn, thread.thread))


class Group:
    """The lanes that met, as one of them sees them. All must be in its ``mask``, as far as there are such threads."""

    def __init__(self, thread: Thread, lowering: Lowering, mask: Operand | None) -> None:
        self.thread, builder = thread, thread.builder
        self.turn = builder.xor(turn_of(thread), I64(1))
        number = builder.add(builder.mul(self.turn, thread.word(Word.WARPS)), warp_of(thread))
        self.active = builder.trunc(builder.load(at(builder, thread.word(Word.GROUPS), number)), I32)
        self.first = builder.and_(thread.thread, I64(-WARP))
        self.lane = builder.trunc(builder.and_(thread.thread, I64(WARP - 1)), I32)
        left = builder.sub(thread.word(Word.THREADS), self.first)
        short = builder.icmp_signed("<", left, I64(WARP))
        some = builder.sub(builder.shl(I32(1), builder.trunc(left, I32)), I32(1))
        exist = builder.select(short, some, I32(-1))
        named = builder.and_(thread.get(lowering.source(mask, "b32")), exist)
        thread.suspect_unless(builder.icmp_unsigned("==", named, self.active), lowering.site.index)

    def value(self, lane: ir.Value, of: ir.Type) -> ir.Value:
        builder = self.thread.builder
        place = handed(self.thread, self.turn, builder.add(self.first, builder.zext(lane, I64)))
        found = builder.load(place)
        return found if of == I64 else builder.trunc(found, of)

    def has(self, lane: ir.Value) -> ir.Value:
        builder = self.thread.builder
        return builder.trunc(builder.lshr(self.active, lane), BIT)

    def fold(self, start: ir.Value, step: Callable[[ir.Value, ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """``step(result so far, lane, whether it is there)`` over all lanes."""
        builder, function = self.thread.builder, self.thread.function
        inside, after, before = function.append_basic_block(), function.append_basic_block(), builder.block
        builder.branch(inside)
        builder.position_at_end(inside)
        lane, result = builder.phi(I32), builder.phi(start.type)
        lane.add_incoming(I32(0), before)
        result.add_incoming(start, before)
        stepped = step(result, lane, self.has(lane))
        following = builder.add(lane, I32(1))
        lane.add_incoming(following, builder.block)
        result.add_incoming(stepped, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, I32(WARP)), inside, after)
        builder.position_at_end(after)
        return stepped

    def ballot(self) -> ir.Value:
        """The lanes that are there and handed in something else than zero."""
        builder = self.thread.builder

        def step(result: ir.Value, lane: ir.Value, there: ir.Value) -> ir.Value:
            yes = builder.and_(there, self.value(lane, BIT))
            return builder.or_(result, builder.shl(builder.zext(yes, I32), lane))

        return self.fold(I32(0), step)


def _put(thread: Thread, lowering: Lowering, number: int, value: ir.Value) -> None:
    targets = lowering.instruction.destinations[number : number + 1]
    for target in targets:
        if not isinstance(target, Vector):
            thread.set(lowering.destination(target), value)


@writes("shfl")
def shuffle(thread: Thread, lowering: Lowering) -> None:
    found, builder = lowering.instruction, thread.builder
    mode = next((word for word in found.modifiers if word in _MODES), "")
    if not mode or found.types != ("b32",) or len(found.sources) != 4:
        raise NotLowered(f"the instruction {found.opcode}")
    group = Group(thread, lowering, found.sources[3])
    wide = np.dtype(np.int64)
    place, clamp = (thread.lane(lowering.source(operand, "b32")).astype(wide) for operand in found.sources[1:3])
    own = Lane(builder, wide, builder.zext(group.lane, I64))
    source, inside = source_lane(mode, place, clamp, own)  # type: ignore[arg-type]
    number = builder.trunc(_value(source), I32)
    thread.suspect_unless(group.has(number), lowering.site.index)
    _put(thread, lowering, 0, group.value(number, I32))
    _put(thread, lowering, 1, _value(inside))


def _value(lane: Any) -> ir.Value:
    found: ir.Value = lane.value
    return found


@writes("vote")
def vote(thread: Thread, lowering: Lowering) -> None:
    found, builder = lowering.instruction, thread.builder
    mode = next((word for word in found.modifiers if word in ("all", "any", "uni", "ballot")), "")
    if not mode or len(found.sources) != 2:
        raise NotLowered(f"the instruction {found.opcode}")
    group = Group(thread, lowering, found.sources[1])
    yes = group.ballot()
    nobody = builder.icmp_unsigned("==", yes, I32(0))
    everybody = builder.icmp_unsigned("==", yes, group.active)
    result = {"ballot": yes, "any": builder.not_(nobody), "all": everybody, "uni": builder.or_(everybody, nobody)}
    _put(thread, lowering, 0, result[mode])


@writes("match")
def match(thread: Thread, lowering: Lowering) -> None:
    found, builder = lowering.instruction, thread.builder
    group = Group(thread, lowering, found.sources[1])
    mine = thread.get(lowering.source(found.sources[0], file_of(found.types[0])))

    def step(result: ir.Value, lane: ir.Value, there: ir.Value) -> ir.Value:
        same = builder.and_(there, builder.icmp_unsigned("==", group.value(lane, mine.type), mine))
        return builder.or_(result, builder.shl(builder.zext(same, I32), lane))

    bits = group.fold(I32(0), step)
    if "all" in found.modifiers:
        equal = builder.icmp_unsigned("==", bits, group.active)
        bits = builder.select(equal, bits, I32(0))
        _put(thread, lowering, 1, equal)
    _put(thread, lowering, 0, bits)


_FOLDS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@writes("redux")
def reduce(thread: Thread, lowering: Lowering) -> None:
    found, builder = lowering.instruction, thread.builder
    name = next((word for word in found.modifiers if word in _FOLDS), "")
    if not name or found.types not in (("s32",), ("u32",), ("b32",)) or len(found.modifiers) != 2:
        raise NotLowered(f"the instruction {found.opcode}")
    dtype = np.dtype(np.int32 if found.types == ("s32",) else np.uint32)
    group = Group(thread, lowering, found.sources[1])
    ones = {"and": 0xFFFF_FFFF, "min": np.iinfo(dtype).max, "max": np.iinfo(dtype).min}

    def step(result: ir.Value, lane: ir.Value, there: ir.Value) -> ir.Value:
        both = _FOLDS[name](Lane(builder, dtype, result), Lane(builder, dtype, group.value(lane, I32)))
        return builder.select(there, both.value, result)

    _put(thread, lowering, 0, group.fold(I32(ones.get(name, 0)), step))


@writes("elect")
def elect(thread: Thread, lowering: Lowering) -> None:
    group = Group(thread, lowering, lowering.instruction.sources[-1])
    builder = thread.builder
    reverse = math(builder, "bitreverse", group.active)
    leader = builder.sub(I32(31), _top(builder, reverse))
    _put(thread, lowering, 0, leader)
    _put(thread, lowering, 1, builder.icmp_unsigned("==", leader, group.lane))


def _top(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    from agent.execution.emulator.compiled.primitives import PRIMITIVES

    return PRIMITIVES["top_bit"](builder, [(np.dtype(np.uint32), value)])[1]


@writes("bar", "barrier")
def warp_barrier(thread: Thread, lowering: Lowering) -> None:
    """That it orders accesses counts for nothing here: where it matters, the code stops."""
    if "warp" not in lowering.instruction.modifiers:
        raise NotLowered(f"the instruction {lowering.instruction.opcode}")
    Group(thread, lowering, lowering.instruction.sources[0])
