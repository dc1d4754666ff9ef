"""Surfaces: ``suld`` and ``sust``, by bytes along the first axis (``.b``), and ``sust.p`` by texels of 32 bits."""

from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED, Buffer
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.ptx.instruction import Operand, Register, Vector
from agent.execution.emulator.sites import Site
from agent.execution.emulator.texture_objects import GEOMETRIES, by_object, operands_of, spread
from agent.execution.emulator.values import FILE_TYPES, WIDE_FILE, Lowering, Step, Values, file_of, lowers, width_of
from agent.workload import dtypes
from agent.workload.textures import View

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_MODES = ("trap", "clamp", "zero")


@frozen
class _Form:
    """How an instruction accesses a surface: ``lanes`` values of ``width`` bytes; ``texels``: x counts these."""

    count: int
    layered: bool
    lanes: int
    width: int
    mode: str
    texels: bool

    @property
    def span(self) -> int:
        return self.lanes * self.width


def _form(lowering: Lowering) -> _Form:
    instruction = lowering.instruction
    words = [word for word in instruction.modifiers if word not in ("ca", "cg", "cs", "cv", "wb", "wt")]
    lanes = next((int(word[1:]) for word in words if word in ("v2", "v4")), 1)
    words = [word for word in words if word not in ("v2", "v4")]
    formatted = words[:1] == ["p"] and instruction.base == "sust"
    if len(words) != 3 or not (words[0] == "b" or formatted) or words[1] not in GEOMETRIES or words[2] not in _MODES:
        raise lowering.refuse()
    if len(instruction.types) != 1:
        raise lowering.refuse()
    count, layered = GEOMETRIES[words[1]]
    return _Form(count, layered, lanes, width_of(instruction.types[0]), words[2], formatted)


@lowers("suld")
def load(lowering: Lowering) -> Step:
    form, site = _form(lowering), lowering.site
    handle, given = operands_of(lowering, lowering.instruction.sources[0])
    places = [lowering.source(one, "b32") for one in given[: form.count]]
    parts = _parts(lowering.instruction.destinations[0])
    if len(parts) != form.lanes:
        raise lowering.refuse("vector length")
    outs = [None if one is None else lowering.destination(one) for one in parts]
    files = [one.file if isinstance(one, Register) else WIDE_FILE[form.width] for one in parts]

    def run(values: Values, batch: "Batch") -> None:
        whole = batch.lanes
        results = [np.zeros(whole.shape, UNSIGNED[form.width]) for _ in range(form.lanes)]
        for buffer, view, seen in by_object(batch, site, values[handle], True):
            addresses, inside = _where(batch, site, buffer, view, form, [seen(values[entry]) for entry in places])
            words = memory.load(batch, site, addresses, 0, form.width, form.lanes)
            if inside is not None:
                words = [np.where(inside, word, UNSIGNED[form.width](0)) for word in words]
            spread(batch, whole, results, words)
        for out, value, file in zip(outs, results, files, strict=True):
            if out is not None:
                values[out] = value.astype(FILE_TYPES[file])

    return Step(run, (handle, *places), tuple(out for out in outs if out is not None))


@lowers("sust")
def store(lowering: Lowering) -> Step:
    form, site = _form(lowering), lowering.site
    target, source = lowering.instruction.sources[:2]
    handle, given = operands_of(lowering, target)
    places = [lowering.source(one, "b32") for one in given[: form.count]]
    parts = _parts(source)
    if len(parts) != form.lanes:
        raise lowering.refuse("vector length")
    entries = [lowering.source(one, file_of(lowering.instruction.types[0])) for one in parts]
    dtype = UNSIGNED[form.width]

    def run(values: Values, batch: "Batch") -> None:
        for buffer, view, seen in by_object(batch, site, values[handle], True):
            addresses, inside = _where(batch, site, buffer, view, form, [seen(values[entry]) for entry in places])
            stored = [seen(values[entry]).astype(dtype) for entry in entries]
            _stored(batch, site, addresses, inside, form.width, stored)

    return Step(run, (handle, *places, *entries), ())


def _parts(operand: Operand) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _stored(
    batch: "Batch", site: Site, addresses: Array, inside: Array | None, width: int, stored: list[Array]
) -> None:
    """Lanes outside write nothing."""
    if inside is None:
        memory.store(batch, site, addresses, 0, width, stored)
        return
    lanes = batch.lanes
    places = np.flatnonzero(np.broadcast_to(inside, lanes.shape))
    if not len(places):
        return
    flat = [np.broadcast_to(one, lanes.shape).reshape(-1)[places][None, :] for one in (addresses, *stored)]
    try:
        batch.lanes = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[places])
        memory.store(batch, site, flat[0], 0, width, flat[1:])
    finally:
        batch.lanes = lanes


@frozen(eq=False)
class _Reached:
    """Where lanes come to: addresses, all of them sound; whether they are inside, and whether at no multiple of what
    they access; the coordinates, in bytes along x."""

    addresses: Array
    inside: Array
    crooked: Array
    places: list[Array]


def _reached(buffer: Buffer, view: View, form: _Form, coordinates: list[Array]) -> _Reached:
    ordered = [*coordinates[1:], coordinates[0]] if form.layered else coordinates
    places = [one.view(np.int32).astype(np.int64) for one in ordered]
    if form.texels:
        places[0] = places[0] * view.texel
    limits = [view.extents[0] * view.texel - form.span, *(extent - 1 for extent in view.extents[1:])]
    inside: Array = np.ones((1, 1), bool)
    for one, limit in zip(places, limits, strict=True):
        inside = inside & (one >= 0) & (one <= limit)
    crooked = inside & (places[0] % form.span != 0)
    sound = [np.clip(one, 0, limit) for one, limit in zip(places, limits, strict=True)]
    offset = sound[0] - sound[0] % form.span
    strides = (view.pitch, view.pitch * view.extents[1]) if len(sound) > 1 else ()
    for one, stride in zip(sound[1:], strides, strict=False):
        offset = offset + one * stride
    return _Reached((offset + buffer.address).astype(np.uint64), inside & ~crooked, crooked, places)


def _where(
    batch: "Batch", site: Site, buffer: Buffer, view: View, form: _Form, coordinates: list[Array]
) -> tuple[Array, Array | None]:
    """Addresses, and which lanes go on (None: all). The others are told by the boundary mode: a trap is a fault,
    clamping goes to the nearest place, zero reads 0 and writes nothing."""
    _suits(site, view, form)
    found = _reached(buffer, view, form, coordinates)
    if found.crooked.any():
        batch.fault(
            "misaligned access", batch.lanes, site, found.crooked,
            lambda lane: f"accesses {form.span} bytes of the surface '{view.name}' at a place that is no multiple",
        )  # fmt: skip
    if form.mode == "trap" and not found.inside.all():
        _trapped(batch, site, view, form, found.places, ~found.inside & ~found.crooked)
    clamped = form.mode == "clamp" and not found.crooked.any()
    return found.addresses, None if clamped or found.inside.all() else found.inside


@frozen(eq=False)
class Accessed:
    """A surface access for who follows it: the entries of its handle and its coordinates, bytes of each value."""

    handle: int
    places: list[int]
    width: int
    span: int
    form: _Form

    def addresses(self, values: Values, batch: "Batch") -> Array:
        """Of each lane, 0 where nothing is accessed."""
        handles = np.broadcast_to(values[self.handle], batch.lanes.shape)
        found = np.zeros(batch.lanes.shape, np.uint64)
        for handle in np.unique(handles).tolist():
            if handle in batch.memory.views:
                buffer, view = batch.memory.views[handle]
                if (len(view.extents), view.layered) == (self.form.count, self.form.layered):
                    here = _reached(buffer, view, self.form, [values[entry] for entry in self.places])
                    goes = (here.inside | (self.form.mode == "clamp")) & ~here.crooked
                    found = np.where((handles == handle) & goes, here.addresses, found)
        return found


def accessed(lowering: Lowering) -> Accessed:
    form = _form(lowering)
    handle, given = operands_of(lowering, lowering.instruction.sources[0])
    places = [lowering.source(one, "b32") for one in given[: form.count]]
    return Accessed(handle, places, form.width, form.span, form)


def _trapped(batch: "Batch", site: Site, view: View, form: _Form, places: list[Array], bad: Array) -> None:
    writes = site.instruction.base == "sust"
    wide = [np.broadcast_to(one, batch.lanes.shape).reshape(-1) for one in places]
    rows = " x ".join(map(str, (view.extents[0] * view.texel, *view.extents[1:])))

    def message(lane: int) -> str:
        at = ", ".join(str(int(one[lane])) for one in wide)
        verb = "writes" if writes else "reads"
        return f"{verb} {form.span} bytes at ({at}) of the surface '{view.name}', which has {rows} (bytes along x)"

    batch.fault("out-of-bounds write" if writes else "out-of-bounds read", batch.lanes, site, bad, message)


def _suits(site: Site, view: View, form: _Form) -> None:
    """Raises Refused where the object is none that the instruction can access."""
    place = f"line {site.line} of {site.kernel}"
    if (len(view.extents), view.layered) != (form.count, form.layered):
        raise Refused(f"{place} uses the surface '{view.name}' with other dimensions than it has")
    if form.span > view.extents[0] * view.texel or (view.pitch % form.span and len(view.extents) > 1):
        raise Refused(
            f"{place} accesses {form.span} bytes of the surface '{view.name}', whose rows have {view.pitch} bytes"
        )
    scalar, lanes = dtypes.base(view.dtype)
    if form.texels and (dtypes.size_of(scalar) != 4 or form.width != 4 or form.lanes != lanes):
        raise Refused(f"{place} stores to the surface '{view.name}' of {view.dtype} with a conversion")
