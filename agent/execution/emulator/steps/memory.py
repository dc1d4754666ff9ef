"""Loads and stores in every state space."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import LOCAL, PARAM, SHARED, Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.lanes import by_block
from agent.execution.emulator.ptx.instruction import Address, Operand, Register, Symbol, Vector
from agent.execution.emulator.races.sites import is_fence, is_near
from agent.execution.emulator.sites import Site
from agent.execution.emulator.values import (
    FILE_TYPES,
    WIDE_FILE,
    Lowering,
    Step,
    Values,
    file_of,
    lowers,
    width_of,
)

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

Reader = Callable[[Values, "Batch"], list[Array]]
Change = Callable[[Array], Array]

_SPACES = ("global", "shared", "local", "const", "param")
# cache and ordering words that change nothing when every access is performed at once and in order
_IGNORED = frozenset(
    "ca cg cs lu cv wb wt nc weak relaxed acquire release volatile mmio cta gpu sys cluster unified".split()  # noqa: SIM905
)
_CHIP = {"shared": SHARED, "local": LOCAL, "param": PARAM}
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def access(lowering: Lowering) -> tuple[str, str, int]:
    """Space (``generic`` where none is named), type and vector length. Raises Refused for a word not known here."""
    instruction = lowering.instruction
    space, count = "generic", 1
    for word in instruction.modifiers:
        name, _, scope = word.partition("::")
        if name in _SPACES and scope in ("", "cta", "cluster", "entry", "func"):
            space = name
        elif word in ("v2", "v4", "v8"):
            count = int(word[1:])
        elif name not in _IGNORED and name not in ("L1", "L2"):
            raise lowering.refuse(f".{word}")
    if len(instruction.types) != 1 or (kind := instruction.types[0]) == "b128":
        raise lowering.refuse()
    return space, kind, count


def _parts(operand: Operand, count: int, lowering: Lowering) -> tuple[Operand | None, ...]:
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(parts) != count:
        raise lowering.refuse("vector length")
    return parts


@lowers("ld", "ldu")
def load(lowering: Lowering) -> Step:
    space, kind, count = access(lowering)
    width, signed = width_of(kind), kind[0] == "s"
    instruction, site = lowering.instruction, lowering.site
    parts = _parts(instruction.destinations[0], count, lowering)
    outs = [None if part is None else lowering.destination(part) for part in parts]
    files = [part.file if isinstance(part, Register) else WIDE_FILE[width] for part in parts]
    writes = tuple(out for out in outs if out is not None)
    base, shift, owner = lowering.address(instruction.sources[0])
    if space == "param" and owner == "param":
        return _load_parameter(lowering, outs, files, width, signed)
    space = "local" if space == "param" and owner == "local" else space
    convert = [_widen(width, signed, file) for file in files]
    get = _reader(space, site, base, shift, width, count)

    def run(values: Values, batch: "Batch") -> None:
        for out, value, change in zip(outs, get(values, batch), convert, strict=True):
            if out is not None:
                values[out] = change(value) if change else value

    def run_one(values: Values, batch: "Batch") -> None:
        values[single] = get(values, batch)[0]

    if count == 1 and outs[0] is not None and convert[0] is None:
        single = outs[0]
        return Step(run_one, (base,), writes)
    return Step(run, (base,), writes)


def _reader(space: str, site: Site, base: int, shift: int, width: int, count: int) -> Reader:
    tag = _CHIP.get(space, 0)
    if tag:

        def from_chip(values: Values, batch: "Batch") -> list[Array]:
            return batch.chip(tag).load(batch, batch.lanes, site, values[base], shift, width, count)

        return from_chip
    function = memory.load_generic if space == "generic" else memory.load

    def from_memory(values: Values, batch: "Batch") -> list[Array]:
        return function(batch, site, values[base], shift, width, count)

    return from_memory


def _widen(width: int, signed: bool, file: str) -> Change | None:
    dtype = FILE_TYPES[file]
    size = np.dtype(dtype).itemsize
    if size == width:
        return None
    if not signed or size < width:
        return lambda value: value.astype(dtype)
    narrow, wide = _SIGNED[width], _SIGNED[size]
    return lambda value: value.view(narrow).astype(wide).view(dtype)


def _load_parameter(lowering: Lowering, outs: list[int | None], files: list[str], width: int, signed: bool) -> Step:
    """Kernel parameters are the same for all lanes: entries of their own, set at launch."""
    operand = lowering.instruction.sources[0]
    symbol = operand.base if isinstance(operand, Address) else operand
    assert isinstance(symbol, Symbol)
    offset = lowering.place(symbol)[1] + getattr(operand, "offset", 0)
    pairs = [
        (out, lowering.entries.parameter(offset + k * width, width, signed, file))
        for k, (out, file) in enumerate(zip(outs, files, strict=True))
        if out is not None
    ]

    def run(values: Values, batch: "Batch") -> None:
        for out, entry in pairs:
            values[out] = values[entry]

    return Step(run, tuple(entry for _, entry in pairs), tuple(out for out, _ in pairs))


@lowers("st")
def store(lowering: Lowering) -> Step:
    space, kind, count = access(lowering)
    width, site = width_of(kind), lowering.site
    target, source = lowering.instruction.sources[:2]
    file = file_of(kind)
    entries = [lowering.source(part, file) for part in _parts(source, count, lowering)]
    base, shift, owner = lowering.address(target)
    space = owner or "local" if space == "param" else space
    tag = _CHIP.get(space, 0)
    function = memory.store_generic if space == "generic" else memory.store
    dtype = UNSIGNED[width]

    def run(values: Values, batch: "Batch") -> None:
        stored = []
        for entry in entries:
            value = values[entry]
            stored.append(value if value.dtype == dtype else value.astype(dtype))
        if tag:
            batch.chip(tag).store(batch, batch.lanes, site, values[base], shift, width, stored)
        else:
            function(batch, site, values[base], shift, width, stored)

    return Step(run, (base, *entries), ())


@lowers("membar", "fence")
def fence(lowering: Lowering) -> Step:
    """Accesses here are performed at once and in order: a fence matters only to what looks for races. Copies of the
    asynchronous proxy are too, so that a fence between proxies (``fence.proxy.async``) has nothing left to do."""
    near = is_near(lowering.instruction.modifiers)
    if not is_fence(lowering.instruction.modifiers):
        return Step(lambda values, batch: None, (), ())

    def run(values: Values, batch: "Batch") -> None:
        if batch.traffic is not None:
            batch.traffic.fence(batch.lanes, near)
        if batch.team is not None and batch.order is not None and not near:
            for row, threads in by_block(batch.lanes.flat, batch.lanes.threads):
                batch.order.phases.fence(batch.order, row, threads)

    return Step(run, (), ())


@lowers("createpolicy")
def policy(lowering: Lowering) -> Step:
    """How a cache is to treat a line: opaque, and of no effect on values."""
    out = lowering.destination(lowering.instruction.destinations[0])

    def run(values: Values, batch: "Batch") -> None:
        values[out] = np.zeros((1, 1), np.uint64)

    return Step(run, (), (out,))


@lowers("prefetch", "prefetchu", "nanosleep", "applypriority", "pmevent", "griddepcontrol", "setmaxnreg")
def nothing(lowering: Lowering) -> Step:
    """Instructions without an effect on values. Kernels run one after the other, each as a whole: what a kernel that
    depends on another (``griddepcontrol``) waits for has happened."""
    return Step(lambda values, batch: None, (), ())
