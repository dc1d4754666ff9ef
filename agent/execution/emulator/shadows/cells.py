"""What registers hold in the float64 shadow: for each 16 bits of a register, which part of which number they are.

A *cell* stands for 16 bits. A half has one cell, a float two, a double four; they name the float64 that the number
would be without rounding. So packing, unpacking and shuffling move cells, and a number is whole again where its cells
are.
Whole numbers and predicates have a cell only where the computation without rounding has another value than the program.

Marks say where the shadow cannot follow: PARTED, a branch went another way, or an address would have been another one;
LOST, bits of a number that are no number by themselves were computed with.
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.semantics.formats import FORMATS, load64

PARTED, LOST = 1, 2
UNITS = {"f16": 1, "bf16": 1, "f32": 2, "f64": 4}
DIGITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
SMALLEST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}  # that is normal
#: The NaN that says "as the program has it"; arithmetic never gives it.
ABSENT = np.uint64(0x7FF8_5AD0_5EED_0001)
NOTHING = np.array([ABSENT], np.uint64).view(np.float64)[0]
_NOTHING = np.full((1, 1), NOTHING)

Flags = Array | None


@frozen(eq=False)
class Cell:
    """``kind``: a float format (``index``: which 16 bits of it; ``value``: float64, ABSENT where it is the program's
    own), ``bits`` of a whole number (``value``: those that differ from the program's register) or ``pred`` (where it
    differs). ``flags`` are marks. All arrays broadcast to the lanes at hand."""

    kind: str
    index: int
    value: Array
    flags: Flags = None


Cells = tuple[Cell | None, ...]
Float = tuple[Array, Flags]


def joined(*flags: Flags) -> Flags:
    """All marks together."""
    found: Flags = None
    for one in flags:
        if one is not None:
            found = one if found is None else found | one
    return found


def marked(where: Array, mark: int) -> Flags:
    """The mark where the condition holds; None where it holds nowhere."""
    return where.astype(np.uint8) * np.uint8(mark) if where.any() else None


def flags_of(cells: Cells | None) -> Flags:
    return joined(*(cell.flags for cell in cells or () if cell is not None))


def absent(value: Array) -> Array:
    return np.asarray(value.view(np.uint64) == ABSENT)


def given(value: Array, own: Array) -> Array:
    """The shadow, the program's own value where it is absent."""
    missing = absent(value)
    return np.where(missing, own, value) if missing.any() else value


def decoded(bits: Array, kind: str, offset: int = 0) -> Array:
    """The number of ``kind`` that begins ``offset`` cells into a register, as float64."""
    size = 2 * UNITS[kind]
    if bits.dtype.itemsize != size:
        bits = (bits >> bits.dtype.type(16 * offset)).astype(f"u{size}")
    value: Array = load64(np.ascontiguousarray(bits), kind)
    return value


def encoded(value: Array, kind: str) -> Array:
    """The nearest bits."""
    bits: Array = FORMATS[kind].store(value)
    return bits


def number(kind: str, value: Array, flags: Flags = None) -> Cells:
    """The cells of one number."""
    return tuple(Cell(kind, index, value, flags) for index in range(UNITS[kind]))


def whole_at(cells: Cells, offset: int) -> str:
    """The format of the number whose first cell is there and whose others follow; empty where there is none."""
    first = cells[offset]
    if first is None or first.kind not in UNITS or first.index:
        return ""
    group = cells[offset : offset + UNITS[first.kind]]
    fits = len(group) == UNITS[first.kind] and all(
        cell is not None and cell.kind == first.kind and cell.index == index for index, cell in enumerate(group)
    )
    return first.kind if fits else ""


def read(cells: Cells | None, kind: str, bits: Array, offset: int = 0) -> Float:
    """The number that begins ``offset`` cells into a register which holds ``bits``, and its marks."""
    own = decoded(bits, kind, offset)
    if cells is None:
        return own, None
    group = cells[offset : offset + UNITS[kind]]
    flags = flags_of(group)
    if whole_at(cells, offset) == kind:
        return _together(group, own, flags)
    if kind == "f32" and group[0] is None and group[-1] is not None and group[-1].kind == "bf16":
        # the upper half of a float is a bf16
        exact = (bits >> bits.dtype.type(16 * offset)).astype(np.uint16) == 0
        return np.where(exact, given(group[-1].value, own), own), flags
    first = group[0]
    if first is not None and first.kind == "bits":
        return decoded(bits ^ first.value, kind, offset), flags
    if any(cell is not None and cell.kind in UNITS for cell in group):
        flags = joined(flags, np.full((1, 1), LOST, np.uint8))
    return own, flags


def _together(group: Cells, own: Array, flags: Flags) -> Float:
    parts = [cell.value for cell in group if cell is not None]
    found = given(parts[0], own)
    for other in parts[1:]:
        if other is not parts[0]:
            same = parts[0].view(np.uint64) == other.view(np.uint64)
            found, flags = np.where(same, found, own), joined(flags, marked(~same, LOST))
    return found, flags


def in_parts(cells: Cells | None) -> bool:
    """Whether a register holds parts of numbers."""
    offset = 0
    while cells is not None and offset < len(cells):
        kind, cell = whole_at(cells, offset), cells[offset]
        if not kind and cell is not None and cell.kind in UNITS:
            return True
        offset += UNITS.get(kind, 1)
    return False


def alternate(cells: Cells | None, bits: Array) -> tuple[Array, bool]:
    """The register's bits without rounding until there, each number then rounded once; and whether numbers of floats,
    or parts of them (which stay as they are), are among them."""
    if cells is None:
        return bits, False
    first = cells[0]
    if first is not None and first.kind in ("bits", "pred"):
        # cells that only carry marks are as wide as any register
        return bits ^ first.value.astype(bits.dtype, copy=False), False
    found, floats = bits, in_parts(cells)
    for offset in range(len(cells)):
        kind = whole_at(cells, offset)
        if kind:
            cell = cells[offset]
            assert cell is not None
            own = decoded(bits, kind, offset)
            shadow = given(cell.value, own)
            shadow = np.where(np.isnan(shadow), own, shadow)  # one NaN is like another
            change = encoded(shadow, kind) ^ encoded(own, kind)
            found = found ^ (change.astype(bits.dtype) << bits.dtype.type(16 * offset))
            floats = True
    return found, floats


def different(value: Array, other: Array, flags: Flags, units: int) -> Cells | None:
    """The cells of a whole number or predicate that is ``other`` without rounding; None where it is the same."""
    change = value ^ other
    differs = change != 0
    if not differs.any():
        return None
    marks = None if flags is None else np.where(differs, flags, np.uint8(0))
    kind = "pred" if value.dtype == np.bool_ else "bits"
    return tuple(Cell(kind, index, change, marks) for index in range(units))


def marks_only(flags: Flags, units: int, kind: str = "bits") -> Cells | None:
    """Cells that only carry marks."""
    if flags is None or not flags.any():
        return None
    none: Array = np.zeros((1, 1), np.bool_ if kind == "pred" else np.uint64)
    return tuple(Cell(kind, index, none, flags) for index in range(units))


def gathered(lanes: Lanes, cells: Cells | None) -> Cells | None:
    """The cells of the whole batch as these lanes see them."""
    if cells is None or lanes.whole:
        return cells
    return tuple(cell and _gathered(lanes, cell) for cell in cells)


def _gathered(lanes: Lanes, cell: Cell) -> Cell:
    flags = None if cell.flags is None else lanes.gather(cell.flags)
    return Cell(cell.kind, cell.index, lanes.gather(cell.value), flags)


def scattered(lanes: Lanes, old: Cells | None, new: Cells | None) -> Cells | None:
    """The cells of the whole batch after these lanes got new ones."""
    if lanes.whole or (old is None and new is None):
        return new
    count = max(len(old or ()), len(new or ()))
    pairs = zip(_padded(old, count), _padded(new, count), strict=True)
    return tuple(_scattered(lanes, before, after) for before, after in pairs)


def _padded(cells: Cells | None, count: int) -> Sequence[Cell | None]:
    return [*(cells or ()), *[None] * (count - len(cells or ()))]


def _scattered(lanes: Lanes, old: Cell | None, new: Cell | None) -> Cell | None:
    if old is None and new is None:
        return None
    leads = new or old
    assert leads is not None
    whole, part = _value(old, leads), _value(new, leads)
    marks = [np.zeros((1, 1), np.uint8) if cell is None or cell.flags is None else cell.flags for cell in (old, new)]
    if old is not None and (old.kind, old.index) != (leads.kind, leads.index):
        marks[0] = marks[0] | np.uint8(LOST)
    flags = lanes.scatter(marks[0], marks[1]) if marks[0].any() or marks[1].any() else None
    return Cell(leads.kind, leads.index, lanes.scatter(whole, part), flags)


def _value(cell: Cell | None, like: Cell) -> Array:
    if cell is not None and (cell.kind, cell.index) == (like.kind, like.index):
        wide: Array = cell.value if cell.value.dtype == like.value.dtype else cell.value.astype(like.value.dtype)
        return wide
    return _NOTHING if like.kind in UNITS else np.zeros((1, 1), like.value.dtype)


def chosen(holds: Array, yes: Cells | None, no: Cells | None) -> Cells | None:
    """Lane by lane the one or the other; cells of another kind than the first are lost."""
    if yes is None and no is None:
        return None
    count = max(len(yes or ()), len(no or ()))
    found: list[Cell | None] = []
    for one, other in zip(_padded(yes, count), _padded(no, count), strict=True):
        leads = one or other
        if leads is None:
            found.append(None)
            continue
        flags = joined(_where(holds, one, leads), _where(~holds, other, leads))
        found.append(Cell(leads.kind, leads.index, np.where(holds, _value(one, leads), _value(other, leads)), flags))
    return tuple(found)


def _where(holds: Array, cell: Cell | None, like: Cell) -> Flags:
    if cell is None:
        return None
    flags = cell.flags
    if (cell.kind, cell.index) != (like.kind, like.index):
        flags = joined(flags, np.full((1, 1), LOST, np.uint8))
    return None if flags is None else np.where(holds, flags, np.uint8(0))
