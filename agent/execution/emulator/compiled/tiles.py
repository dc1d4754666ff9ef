"""``ldmatrix`` and ``mma`` as compiled code.

Of a tile's rows each is read by the lane that gives its address, before the lanes meet; then each picks what it is to
hold. Of a product each lane hands in its elements of A and B as numbers, and adds up the products of its own elements
of the result, in the order that ``semantics.matrices`` has.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from llvmlite import ir

from agent.execution.emulator.compiled.exchange import handed, turn_of
from agent.execution.emulator.compiled.instructions import fetched, writes
from agent.execution.emulator.compiled.loops import I16, I32, I64, NotLowered
from agent.execution.emulator.compiled.spaces import Access, pointer
from agent.execution.emulator.compiled.symbolic import Lane
from agent.execution.emulator.compiled.threads import Thread
from agent.execution.emulator.compiled.warps import HANDING, Group
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.semantics.formats import load64, rounded
from agent.execution.emulator.semantics.fragments import Fragment, Shape, fragment
from agent.execution.emulator.steps.matrix import matrix_of
from agent.execution.emulator.steps.tiles import address_of, form_of
from agent.execution.emulator.steps.warp import EVERYBODY
from agent.execution.emulator.values import Lowering

_KINDS = ("f16", "bf16", "tf32")
_ROWS, _SPAN = 8, 16
_F64 = ir.DoubleType()


# Tiles --------------------------------------------------------------------------------------------------------------


def hand_in_row(thread: Thread, lowering: Lowering) -> None:
    """The lanes that give addresses read their rows."""
    builder, (count, _) = thread.builder, form_of(lowering)
    base, shift = address_of(lowering, lowering.instruction.sources[0])
    value, turn = thread.get(base), turn_of(thread)
    address = builder.add(value if value.type == I64 else builder.zext(value, I64), I64(shift))
    access = Access(lowering.site.index, 8, 2, reads=True)

    def row() -> None:
        for slot, word in enumerate(fetched(thread, "shared", address, access)):
            thread.builder.store(word, handed(thread, turn, thread.thread, slot))

    lane = builder.and_(thread.thread, I64(WARP - 1))
    thread.when(builder.icmp_unsigned("<", lane, I64(count * _ROWS)), row)


@writes("ldmatrix")
def load_tiles(thread: Thread, lowering: Lowering) -> None:
    (count, turned), builder = form_of(lowering), thread.builder
    group = Group(thread, lowering, EVERYBODY)
    _whole(thread, lowering, group)
    lane = builder.zext(group.lane, I64)
    row, column = builder.lshr(lane, I64(2)), builder.and_(lane, I64(3))
    for tile, out in enumerate(flatten(lowering.instruction.destinations)):
        assert out is not None and tile < count
        first = builder.add(group.first, I64(tile * _ROWS))
        if turned:
            word = _transposed(thread, group, first, row, column)
        else:
            start = builder.ptrtoint(handed(thread, group.turn, builder.add(first, row)), I64)
            word = builder.load(pointer(builder, builder.add(start, builder.shl(column, I64(2))), 4))
        thread.set(lowering.destination(out), word)


def _transposed(thread: Thread, group: Group, first: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
    """Two neighbours of one column: element ``row`` of the rows ``2 * column`` and the next."""
    builder, word = thread.builder, I32(0)
    for half in range(2):
        source = builder.add(first, builder.add(builder.shl(column, I64(1)), I64(half)))
        start = builder.ptrtoint(handed(thread, group.turn, source), I64)
        found = builder.load(pointer(builder, builder.add(start, builder.shl(row, I64(1))), 2))
        word = builder.or_(word, builder.shl(builder.zext(found, I32), I32(16 * half)))
    return word


def _whole(thread: Thread, lowering: Lowering, group: Group) -> None:
    """All lanes of the warp are there, or the other back end has something to say."""
    thread.suspect_unless(thread.builder.icmp_unsigned("==", group.active, I32(-1)), lowering.site.index)


# Products -----------------------------------------------------------------------------------------------------------


def _forms(lowering: Lowering) -> tuple[Shape, tuple[str, ...]]:
    """Shape and types of a product that has a compiled form."""
    try:
        shape, types = matrix_of(lowering)
    except Refused as error:
        raise NotLowered(str(error)) from None
    if len(types) != 4 or types[1] not in _KINDS or types[1] != types[2] or (types[0], types[3]) != ("f32", "f32"):
        raise NotLowered(f"the product {lowering.instruction.opcode}")
    return shape, types


def hand_in_elements(thread: Thread, lowering: Lowering) -> None:
    """A lane's elements of A and B, as numbers."""
    shape, types = _forms(lowering)
    turn, slot = turn_of(thread), 0
    for role, kind, operand in zip("ab", types[1:3], lowering.instruction.sources, strict=False):
        form = fragment(role, shape, kind)
        for part in flatten((operand,))[: form.registers]:
            for element in _elements(thread, kind, thread.get(lowering.source(part, "b32"))):
                place = handed(thread, turn, thread.thread, slot)
                thread.builder.store(thread.builder.bitcast(element, I64), place)
                slot += 1


def _elements(thread: Thread, kind: str, register: ir.Value) -> list[ir.Value]:
    builder = thread.builder
    if kind == "tf32":
        lane = Lane(builder, np.uint32, builder.and_(register, I32(0xFFFFE000)))
        return [load64(lane, "f32").value]  # type: ignore[arg-type]
    parts = [builder.trunc(builder.lshr(register, I32(shift)), I16) for shift in (0, 16)]
    return [load64(Lane(builder, np.uint16, part), kind).value for part in parts]  # type: ignore[arg-type]


@writes("mma")
def multiply(thread: Thread, lowering: Lowering) -> None:
    (shape, types), builder = _forms(lowering), thread.builder
    group = Group(thread, lowering, EVERYBODY)
    _whole(thread, lowering, group)
    numbers = builder.ptrtoint(handed(thread, group.turn, group.first), I64)
    plus, outs = flatten((lowering.instruction.sources[2],)), flatten(lowering.instruction.destinations)
    given = [thread.get(lowering.source(part, "b32")) for part in plus]
    found = builder.call(_product(thread, shape, types[1]), [numbers, builder.zext(group.lane, I64), *given])
    for index, out in enumerate(outs):
        if out is not None:
            thread.set(lowering.destination(out), builder.extract_value(found, index))


def _product(thread: Thread, shape: Shape, kind: str) -> ir.Function:
    """A function of where the warp's numbers are, of the lane, and of its elements of the accumulator, that gives those
    of the result: written once, for it is long."""
    name = "product_" + "_".join((*map(str, shape), kind))
    found = thread.builder.module.globals.get(name)
    if found is not None:
        return found
    a, b, c = (fragment(role, shape, of) for role, of in zip("abc", (kind, kind, "f32"), strict=True))
    registers = [I32] * c.registers
    result = ir.LiteralStructType(registers)
    function = ir.Function(thread.builder.module, ir.FunctionType(result, [I64, I64, *registers]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    number = _numbers(builder, function.args[0], function.args[1], thread.room)
    whole: ir.Value = ir.Constant(result, ir.Undefined)
    for index, own in enumerate(function.args[2:]):
        ways = zip(_owners(a, c, index, "row"), _owners(b, c, index, "column"), strict=True)
        total: ir.Value = _F64(0.0)
        for (left, left_slot), (right, right_slot) in ways:
            product = builder.fmul(number(left, left_slot), number(right, right_slot + int(a.rows.shape[1])))
            total = builder.fadd(total, product)
        plus = load64(Lane(builder, np.uint32, own), "f32").value  # type: ignore[arg-type]
        bits = rounded(Lane(builder, np.float64, builder.fadd(total, plus)), "f32").value  # type: ignore[arg-type]
        whole = builder.insert_value(whole, bits, index)
    builder.ret(whole)
    return function


def _numbers(
    builder: ir.IRBuilder, start: ir.Value, lane: ir.Value, room: int
) -> Callable[[tuple[int, int, int], int], ir.Value]:
    """What lanes handed in, from ``start`` on: the lane ``(lane & mask) * step + constant``, and the place among its
    words."""
    known: dict[tuple[tuple[int, int, int], int], ir.Value] = {}
    starts: dict[tuple[int, int], ir.Value] = {}

    def number(who: tuple[int, int, int], slot: int) -> ir.Value:
        mask, step, constant = who
        if (who, slot) not in known:
            if (mask, step) not in starts:
                first = builder.mul(builder.and_(lane, I64(mask)), I64(8 * step * room))
                starts[mask, step] = builder.add(start, first)
            place = builder.add(starts[mask, step], I64(8 * (constant * room + slot)))
            known[who, slot] = builder.load(builder.inttoptr(place, _F64.as_pointer()))
        return known[who, slot]

    return number


@lru_cache(maxsize=256)
def _owners(form: Fragment, of: Fragment, index: int, axis: str) -> list[tuple[tuple[int, int, int], int]]:
    """Along K, who holds the elements that element ``index`` of the result is made of: for each lane the lane
    ``(lane & mask) * step + constant``, and which of its elements. ``axis``: whether they are a row of A or a column of
    B."""
    held = np.zeros((*form.size, 2), np.int64)
    lanes = np.arange(WARP)
    for element in range(form.rows.shape[1]):
        held[form.rows[:, element], form.columns[:, element]] = np.stack((lanes, np.full(WARP, element)), axis=1)
    lines = held[of.rows[:, index]] if axis == "row" else held[:, of.columns[:, index]].swapaxes(0, 1)
    found: list[tuple[tuple[int, int, int], int]] = []
    for k in range(lines.shape[1]):
        owners, elements = lines[:, k, 0], lines[:, k, 1]
        mask, step = (WARP - 4, 1) if axis == "row" else (3, 8)
        constant = int(owners[0])
        if (owners != (lanes & mask) * step + constant).any() or (elements != elements[0]).any():
            raise NotLowered("a product of that shape")
        found.append(((mask, step, constant), int(elements[0])))
    return found


HANDING.update({"ldmatrix": hand_in_row, "mma": hand_in_elements})
