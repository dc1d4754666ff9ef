"""``mma.sync``, and ``wmma`` with its loads and stores: matrices whose elements are spread over the lanes of a warp.

What each lane holds is in ``semantics.fragments``, what is computed in ``semantics.matrices``. Loads and stores go
through the same doors as those of single lanes, so that every check and counter sees them.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.memory import read, write
from agent.execution.emulator.ptx.instruction import Operand
from agent.execution.emulator.semantics import flatten
from agent.execution.emulator.semantics.fragments import BITS, Fragment, Shape, fragment
from agent.execution.emulator.semantics.matrices import PARTNERS, SHAPES, SUMS, matrices, product, registers
from agent.execution.emulator.values import Lowering, Step, Values, lowers
from agent.execution.emulator.whole_warps import whole_warps

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_KNOWN = frozenset("sync aligned row col satfinite xor and popc rn mma load store a b c d global shared".split())  # noqa: SIM905
_ALIGNMENT = 16  # of a matrix in memory: the least that rows of any shape have


@lowers("mma", "wmma")
def matrix(lowering: Lowering) -> Step:
    words, shape = _words_and_shape(lowering)
    if lowering.instruction.base == "wmma" and words[0] in ("load", "store"):
        return _transfer(lowering)
    return _multiply(lowering, words, shape)


def _words_and_shape(lowering: Lowering) -> tuple[list[str], Shape]:
    words = [word.removesuffix("::cta") for word in lowering.instruction.modifiers]
    unknown = [word for word in words if word not in _KNOWN and not _SHAPE.fullmatch(word)]
    shapes = [match for word in words if (match := _SHAPE.fullmatch(word))]
    if unknown or len(shapes) != 1:
        raise lowering.refuse(f".{unknown[0]}" if unknown else "")
    m, n, k = (int(part) for part in shapes[0].groups())
    return words, (m, n, k)


def matrix_of(lowering: Lowering) -> tuple[Shape, tuple[str, ...]]:
    """Shape of a product, and the types of the result, of A, B and C."""
    types = lowering.instruction.types
    if len(types) == 2:
        types = (types[0], "f16", "f16", types[1])
    return _words_and_shape(lowering)[1], types


def _multiply(lowering: Lowering, words: list[str], shape: Shape) -> Step:
    instruction, (_, types) = lowering.instruction, matrix_of(lowering)
    if len(types) != 4 or len(instruction.sources) != 3:
        raise lowering.refuse("types")
    to, left, right, plus = types
    fits = shape in SHAPES[instruction.base].get(left, ()) and {to, plus} <= set(SUMS[left])
    if not fits or right not in PARTNERS.get(left, (left,)):
        raise lowering.refuse("shape and types")
    if instruction.base == "mma" and tuple(word for word in words if word in ("row", "col")) != ("row", "col"):
        raise lowering.refuse("layout")
    forms = [fragment(role, shape, kind) for role, kind in (("a", left), ("b", right), ("c", plus))]
    into = fragment("c", shape, to)
    groups = [_entries(lowering, operand, form) for operand, form in zip(instruction.sources, forms, strict=True)]
    outs = [lowering.destination(part) for part in flatten(instruction.destinations) if part is not None]
    if len(outs) != into.registers:
        raise lowering.refuse("registers")
    site, reads = lowering.site, [entry for group in groups for entry in group]

    def run(values: Values, batch: "Batch") -> None:
        whole = whole_warps(batch, site)
        tables = iter(whole.tables([values[entry] for entry in reads]))
        a, b, c = (matrices(form, [next(tables) for _ in group]) for form, group in zip(forms, groups, strict=True))
        for out, table in zip(outs, registers(into, product((left, plus, to), a, b, c, tuple(words))), strict=True):
            values[out] = whole.back(table)

    return Step(run, tuple(reads), tuple(outs))


def _entries(lowering: Lowering, operand: Operand, form: Fragment) -> list[int]:
    parts = flatten((operand,))
    if len(parts) < form.registers or len(parts) % form.registers:
        raise lowering.refuse("registers")
    return [lowering.source(part, form.file) for part in parts]


@frozen(eq=False)
class Transfer:
    """``wmma.load`` or ``wmma.store``: the entries ``held`` in turn, and how many bytes of each, from where, go to or
    come from memory in ``space`` (``moves``, see there). ``leading``: the rows' distance where ``stride`` is None."""

    loads: bool
    form: Fragment
    space: str
    held: tuple[int, ...]
    base: int
    shift: int
    stride: int | None
    leading: int
    moves: "list[tuple[int, list[_Place]]]"

    def ways(self, values: Values, batch: "Batch") -> list[tuple[int, list[Array]]]:
        """For each register the bytes of one access and the lanes' addresses of each of its accesses."""
        step = np.array([[self.leading]], np.int64) if self.stride is None else values[self.stride].astype(np.int64)
        first, lane = self.first(values), batch.lanes.thread % WARP
        return [
            (width, [first + _offset(place, lane, step, self.form.kind) for place in places])
            for width, places in self.moves
        ]

    def first(self, values: Values) -> Array:
        """Where the matrix begins."""
        return np.asarray(values[self.base].astype(np.uint64) + np.uint64(self.shift & 0xFFFF_FFFF_FFFF_FFFF))


def transfer_of(lowering: Lowering) -> Transfer:
    """``wmma.load.a [p], stride`` and ``wmma.store.d [p], {...}, stride``. Raises Refused."""
    words, shape = _words_and_shape(lowering)
    instruction, loads = lowering.instruction, words[0] == "load"
    kind = instruction.types[0] if len(instruction.types) == 1 else ""
    role = "c" if words[1] == "d" else words[1]
    of = next((one for one in SHAPES["wmma"] if kind in ((one,) if role != "c" else SUMS[one])), "")
    if not of or not any(shape in SHAPES["wmma"][one] for one in _operands(kind, role)):
        raise lowering.refuse("shape and type")
    layout = next((word for word in words if word in ("row", "col")), "")
    if not layout:
        raise lowering.refuse("layout")
    form = fragment(role, shape, kind)
    sources = list(instruction.sources)
    base, shift, owner = lowering.address(sources.pop(0))
    space = next((word for word in words if word in ("global", "shared")), owner or "generic")
    parts = flatten(instruction.destinations if loads else (sources.pop(0),))
    held = tuple(lowering.destination(part) if loads and part else lowering.source(part, form.file) for part in parts)
    if len(held) < form.registers or len(held) % form.registers or len(sources) > 1:
        raise lowering.refuse("registers")
    stride = lowering.source(sources[0], "b32") if sources else None
    leading = form.size[1] if layout == "row" else form.size[0]
    return Transfer(loads, form, space, held, base, shift, stride, leading, _moves(form, layout))


def _transfer(lowering: Lowering) -> Step:
    given, site = transfer_of(lowering), lowering.site
    held = given.held

    def run(values: Values, batch: "Batch") -> None:
        whole_warps(batch, site)
        _check_alignment(batch, lowering, given.first(values))
        loaded: list[Array] = []
        for register, (width, ways) in enumerate(given.ways(values, batch)):
            if given.loads:
                found = [read(batch, given.space, site, way, width) for way in ways]
                loaded.append(_joined(found, width, given.form.file))
            else:
                word = values[held[register]]
                for index, way in enumerate(ways):
                    part = word >> word.dtype.type(8 * width * index)
                    write(batch, given.space, site, way, width, part.astype(f"u{width}"))
        if given.loads:
            for index, entry in enumerate(held):
                values[entry] = loaded[index % len(loaded)]

    used = (given.base,) if given.stride is None else (given.base, given.stride)
    return Step(run, used, held) if given.loads else Step(run, (*used, *held), ())


def _operands(kind: str, role: str) -> Sequence[str]:
    """The types of A that ``kind`` may stand with."""
    return [kind] if role != "c" else [one for one in SHAPES["wmma"] if kind in SUMS[one]]


_Place = tuple[Array, Array]


def _moves(form: Fragment, layout: str) -> list[tuple[int, list[_Place]]]:
    """For each register the bytes of one access, and for each access the (outer, inner) indices of its first element by
    lane: neighbours in memory that share a register go together."""
    outer, inner = (form.rows, form.columns) if layout == "row" else (form.columns, form.rows)
    found = []
    for first in range(0, outer.shape[1], form.packed):
        together = form.packed == 1 or bool((inner[:, first + 1] == inner[:, first] + 1).all())
        count = 1 if together else form.packed
        width = BITS[form.kind] * (form.packed // count) // 8
        found.append((width, [(outer[:, first + index], inner[:, first + index]) for index in range(count)]))
    return found


def _offset(place: _Place, lane: Array, step: Array, kind: str) -> Array:
    outer, inner = place
    elements = outer[lane] * step + inner[lane]
    offset: Array = (elements * BITS[kind] // 8).astype(np.uint64)
    return offset


def _joined(found: list[Array], width: int, file: str) -> Array:
    """The values of one register's accesses, the first lowest."""
    if len(found) == 1:
        return found[0]
    whole = found[0].astype(np.uint32)
    for index, part in enumerate(found[1:], 1):
        whole = whole | part.astype(np.uint32) << np.uint32(8 * width * index)
    return whole


def _check_alignment(batch: "Batch", lowering: Lowering, first: Array) -> None:
    bad = first & np.uint64(_ALIGNMENT - 1) != 0
    if bad.any():
        batch.fault(
            "misaligned access",
            batch.lanes,
            lowering.site,
            bad,
            lambda lane: f"a matrix in memory must begin at a multiple of {_ALIGNMENT} bytes",
        )
