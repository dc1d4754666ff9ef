"""Texture fetches: ``tex``, ``tld4`` (gather), and the questions ``txq`` and ``suq``."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from agent.execution.emulator import memory
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED, Buffer
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.ptx.instruction import Vector
from agent.execution.emulator.sites import Site
from agent.execution.emulator.texture_objects import GEOMETRIES, by_object, operands_of, spread
from agent.execution.emulator.texture_sampling import Axis, axis, layer, outside
from agent.execution.emulator.values import Lowering, Step, Values, lowers
from agent.workload import dtypes
from agent.workload.textures import ARRAY, LINEAR, View

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32}
_WITH_LEVELS = {"level": "levels of detail (mipmaps)", "grad": "gradients (mipmaps)", "base": "mipmaps"}
_COMPONENTS = "rgba"


@frozen(eq=False)
class Fetch:
    """A ``tex``: entries of handle and coordinates (of a layer first), what it reads, by what, into which entries."""

    handle: int
    places: list[int]
    count: int
    layered: bool
    kind: str
    by: str
    outs: list[int | None]


def fetch_of(lowering: Lowering) -> Fetch:
    """Raises Refused for a form that is not known."""
    instruction = lowering.instruction
    words = instruction.modifiers
    if words and words[0] in _WITH_LEVELS:
        raise lowering.refuse(_WITH_LEVELS[words[0]])
    if len(words) != 2 or words[0] not in GEOMETRIES or words[1] != "v4" or len(instruction.sources) != 1:
        raise lowering.refuse()
    kind, by = instruction.types
    if kind not in ("f32", "s32", "u32") or by not in ("f32", "s32"):
        raise lowering.refuse()
    handle, given = operands_of(lowering, instruction.sources[0])
    count, layered = GEOMETRIES[words[0]]
    places = [lowering.source(one, "b32") for one in given[:count]]
    return Fetch(handle, places, count, layered, kind, by, _outs(lowering))


@lowers("tex")
def fetch(lowering: Lowering) -> Step:
    """``tex.GEOMETRY.v4.DTYPE.CTYPE``: a texel, or a filtered value. Channels that the texture has not are 0."""
    form, site = fetch_of(lowering), lowering.site

    def run(values: Values, batch: "Batch") -> None:
        whole, results = batch.lanes, [np.zeros(batch.lanes.shape, np.uint32) for _ in range(4)]
        for buffer, view, seen in by_object(batch, site, values[form.handle], False):
            _suits(site, view, form.count, form.layered, form.kind)
            coordinates = [seen(values[entry]) for entry in form.places]
            if form.by == "s32":
                axes = _whole_places(site, view, coordinates)
            else:
                axes = axes_of(site, view, coordinates, view.filter == "linear")
            spread(batch, whole, results, _sampled(batch, site, buffer, view, axes))
        for out, value in zip(form.outs, results, strict=True):
            if out is not None:
                values[out] = value

    return Step(run, (form.handle, *form.places), tuple(out for out in form.outs if out is not None))


@lowers("tld4")
def gather(lowering: Lowering) -> Step:
    """``tld4.COMPONENT.2d.v4.DTYPE.f32``: one channel of the four texels that a filter would read, counter-clockwise
    from (i, j + 1). Which ones these are goes by places of 8 bits of fraction, as the guide warns."""
    instruction, site = lowering.instruction, lowering.site
    words = instruction.modifiers
    plain = len(words) == 3 and words[0] in _COMPONENTS and words[1:] == ("2d", "v4")
    if not plain or len(instruction.sources) != 1 or instruction.types[1:] != ("f32",):
        raise lowering.refuse()
    kind, channel = instruction.types[0], _COMPONENTS.index(words[0])
    handle, given = operands_of(lowering, instruction.sources[0])
    places = [lowering.source(one, "b32") for one in given[:2]]
    outs = _outs(lowering)

    def run(values: Values, batch: "Batch") -> None:
        whole, results = batch.lanes, [np.zeros(batch.lanes.shape, np.uint32) for _ in range(4)]
        for buffer, view, seen in by_object(batch, site, values[handle], False):
            _suits(site, view, 2, False, kind)
            if view.memory != ARRAY:
                raise Refused(f"{_at(site)} gathers from '{view.name}', which is no array: CUDA cannot")
            x, y = axes_of(site, view, [seen(values[entry]) for entry in places], True)
            quad: list[Array] = []
            for right, down in ((0, 1), (1, 1), (1, 0), (0, 0)):
                one = [Axis((x.at[right],), (x.inside[right],)), Axis((y.at[down],), (y.inside[down],))]
                quad.append(_raw(batch, site, buffer, view, one, counted=not quad)[channel])
            spread(batch, whole, results, quad)
        for out, value in zip(outs, results, strict=True):
            if out is not None:
                values[out] = value

    return Step(run, (handle, *places), tuple(out for out in outs if out is not None))


def _outs(lowering: Lowering) -> list[int | None]:
    instruction = lowering.instruction
    target = instruction.destinations[0]
    if len(instruction.destinations) != 1 or not isinstance(target, Vector) or len(target.elements) != 4:
        raise lowering.refuse("whether texels are resident")
    return [None if one is None else lowering.destination(one) for one in target.elements]


def _at(site: Site) -> str:
    return f"line {site.line} of {site.kernel}"


def _suits(site: Site, view: View, count: int, layered: bool, kind: str) -> None:
    """Raises Refused where the object is none that the instruction can read: what a card does then is not told."""
    if (len(view.extents), view.layered) != (count, layered):
        shape = f"{count - layered} dimension{'s' if count - layered > 1 else ''}{' and layers' if layered else ''}"
        raise Refused(f"{_at(site)} reads the texture '{view.name}' as one of {shape}, which it is not")
    floats = view.as_float or dtypes.is_float(view.dtype)
    if floats != (kind == "f32"):
        raise Refused(
            f"{_at(site)} reads texels of {view.dtype} of the texture '{view.name}' as "
            f"{'floats (say read=float, or another type=)' if kind == 'f32' else 'integers'}"
        )


def _whole_places(site: Site, view: View, coordinates: list[Array]) -> list[Axis]:
    """``tex1Dfetch``: beyond linear memory there are zeros, whatever the address mode."""
    if view.memory != LINEAR:
        raise Refused(f"{_at(site)} fetches by index from '{view.name}', which is not linear memory (say `linear`)")
    at, inside = outside(coordinates[0].view(np.int32).astype(np.int64), view.extents[0])
    return [Axis((at,), (inside,))]


def axes_of(site: Site, view: View, coordinates: list[Array], filtered: bool, exact: bool = False) -> list[Axis]:
    """The texels of a place, with the layer last. ``exact``: coordinates are float64, and weights are not rounded."""
    if view.memory == LINEAR:
        raise Refused(f"{_at(site)} reads '{view.name}' by a float, which is linear memory: CUDA needs tex1Dfetch")
    # the layer comes first in the instruction
    floats = coordinates[1:] if view.layered else coordinates
    told = floats if exact else [one.view(np.float32) for one in floats]
    axes = [axis(view, number, one, filtered, exact) for number, one in enumerate(told)]
    return [*axes, layer(view, coordinates[0])] if view.layered else axes


def _sampled(batch: "Batch", site: Site, buffer: Buffer, view: View, axes: list[Axis]) -> list[Array]:
    """Four channels as registers hold them."""
    if all(one.weight is None for one in axes):
        return _raw(batch, site, buffer, view, axes, counted=True)
    sums = weighted(batch, site, buffer, view, axes)
    return [np.ascontiguousarray(one.astype(np.float32)).view(np.uint32) for one in sums]


def weighted(batch: "Batch", site: Site, buffer: Buffer, view: View, axes: list[Axis]) -> list[Array]:
    """Four channels of floats in float64: the texels of a place times their weights."""
    sums = [np.zeros((1, 1), np.float64) for _ in range(4)]
    for corner in product(*(range(len(one.at)) for one in axes)):
        weight: Array = np.ones((1, 1), np.float64)
        for one, side in zip(axes, corner, strict=True):
            if one.weight is not None:
                weight = weight * (one.weight if side else 1 - one.weight)
        at = [Axis((one.at[side],), (one.inside[side],)) for one, side in zip(axes, corner, strict=True)]
        texels = _raw(batch, site, buffer, view, at, counted=not any(corner))
        for k, value in enumerate(texels):
            # what has no weight adds nothing, infinite or not
            sums[k] = sums[k] + np.where(weight == 0, 0, value.view(np.float32).astype(np.float64) * weight)
    return sums


def _raw(batch: "Batch", site: Site, buffer: Buffer, view: View, axes: list[Axis], counted: bool) -> list[Array]:
    """The four channels of one texel for each lane, 0 where there is none. Only the first of the texels that a fetch
    reads is ``counted`` as an access to memory."""
    strides = (view.texel, view.pitch, view.pitch * (view.extents[1] if len(view.extents) > 1 else 1))
    offset: Array = np.zeros((1, 1), np.int64)
    inside: Array | None = None
    for one, stride in zip(axes, strides, strict=False):
        offset = offset + one.at[0] * stride
        if one.inside[0] is not None:
            inside = one.inside[0] if inside is None else inside & one.inside[0]
    scalar, lanes = dtypes.base(view.dtype)
    width = dtypes.size_of(scalar)
    watch = batch.watch
    try:
        batch.watch = watch if counted else None
        words = memory.load(batch, site, (offset + buffer.address).astype(np.uint64), 0, width, lanes)
    finally:
        batch.watch = watch
    found = [_register(word, scalar, view.as_float) for word in words]
    if inside is not None:
        found = [np.where(inside, value, np.uint32(0)) for value in found]
    return found + [np.zeros((1, 1), np.uint32)] * (4 - lanes)


def _register(word: Array, scalar: str, as_float: bool) -> Array:
    """A channel as a register of 32 bits holds it."""
    if scalar == "f16":
        return np.ascontiguousarray(word.view(np.float16).astype(np.float32)).view(np.uint32)
    if scalar in ("f32", "u32", "i32"):
        return word
    width = word.dtype.itemsize
    number = word.view(_SIGNED[width]) if scalar[0] == "i" else word
    if not as_float:
        return np.ascontiguousarray(number.astype(np.int64).astype(np.int32)).view(np.uint32)
    most = (1 << (8 * width - (scalar[0] == "i"))) - 1
    share = np.maximum(number.astype(np.float64) / most, -1.0)
    return np.ascontiguousarray(share.astype(np.float32)).view(np.uint32)


_ANSWERS = {"width": 0, "height": 1, "depth": 2}


@lowers("txq", "suq")
def query(lowering: Lowering) -> Step:
    """Width, height, depth in texels, the number of layers, whether coordinates are normalised."""
    instruction, site = lowering.instruction, lowering.site
    words, surface = instruction.modifiers, instruction.base == "suq"
    known = (*_ANSWERS, "array_size", *(() if surface else ("normalized_coords",)))
    if len(words) != 1 or words[0] not in known or instruction.types != ("b32",):
        raise lowering.refuse()
    operand = instruction.sources[0]
    handle, _, space = lowering.address(operand)
    if space:
        raise lowering.refuse("a texture or surface reference, which CUDA 12 has removed: pass an object")
    out = lowering.destination(instruction.destinations[0])

    def run(values: Values, batch: "Batch") -> None:
        whole, results = batch.lanes, [np.zeros(batch.lanes.shape, np.uint32)]
        for _, view, _ in by_object(batch, site, values[handle], surface):
            spread(batch, whole, results, [np.full((1, 1), UNSIGNED[4](_answer(view, words[0])))])
        values[out] = results[0]

    return Step(run, (handle,), (out,))


def _answer(view: View, word: str) -> int:
    plain = view.extents[:-1] if view.layered else view.extents
    if word == "normalized_coords":
        return int(view.normalized)
    if word == "array_size":
        return view.extents[-1] if view.layered else 0
    return plain[_ANSWERS[word]] if _ANSWERS[word] < len(plain) else 0
