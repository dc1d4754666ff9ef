"""Texture and surface objects as host code makes them: channel formats, arrays, descriptors filled member by member."""

import re

from attrs import evolve
from tree_sitter import Node

from agent.source.nodes import field as child
from agent.workload import dtypes
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.static import evaluate as ev
from agent.workload.static import parts
from agent.workload.static.dividing import divided
from agent.workload.static.enumerators import KINDS, MODES
from agent.workload.static.state import Facts, State, plain_name
from agent.workload.static.values import (
    ZERO,
    Channels,
    Content,
    Dim3,
    Laid,
    Memory,
    Pointer,
    Ref,
    Scalar,
    Shown,
    Text,
    Unknown,
    Value,
)
from agent.workload.textures import LINEAR, PITCHED, Texture

_LAYERED, _OTHERS = "cudaArrayLayered", ("cudaArrayCubemap",)
DESCRIPTORS = ("cudaResourceDesc", "cudaTextureDesc", "cudaChannelFormatDesc", "cudaMemcpy3DParms")


def channels(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaCreateChannelDesc<float4>()``, or the bits of each channel and their kind."""
    told = re.search(r"<(.*)>", facts.bound(facts.node_text(child(node, "function") or node)), re.S)
    if told:
        dtype = facts.dtype(told[1].strip())
        return Channels(dtype) if dtype else Unknown(f"the size of `{told[1]}` is not known", facts.line(node))
    return _format(values[:4], values[4] if len(values) > 4 else ZERO, facts, facts.line(node))


def _format(bits: list[Value], kind: Value, facts: Facts, line: int) -> Value:
    told = [_known(one, facts) for one in bits]
    letter = KINDS.get(kind.text) if isinstance(kind, Text) else None
    used = [one for one in told if one]
    if None in told or letter is None or not used or len(set(used)) > 1 or used[0] not in (8, 16, 32):
        return Unknown("its channels are not known", line)
    scalar = f"{letter}{used[0]}"
    return Channels(scalar if len(used) == 1 else f"{scalar}x{len(used)}")


def extent(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``make_cudaExtent``."""
    x, y, z = [*(ev.as_scalar(value) for value in values), ZERO, ZERO, ZERO][:3]
    return Dim3(x, y, z)


def pitched_pointer(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``make_cudaPitchedPtr``: the memory."""
    return values[0] if values else ZERO


def malloc_array(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaMallocArray(&array, &channels, width, height, flags)``."""
    width, height = [*values[2:4], ZERO, ZERO][:2]
    _array(values, [width, height], values[4] if len(values) > 4 else ZERO, "cudaMallocArray", node, facts, state)
    return ZERO


def malloc_3d_array(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaMalloc3DArray(&array, &channels, extent, flags)``."""
    whole = values[2] if len(values) > 2 else ZERO
    told: list[Value] = [whole.x, whole.y, whole.z] if isinstance(whole, Dim3) else [Unknown("its extent is not known")]
    _array(values, told, values[3] if len(values) > 3 else ZERO, "cudaMalloc3DArray", node, facts, state)
    return ZERO


def _array(
    values: list[Value], extents: list[Value], flags: Value, how: str, node: Node, facts: Facts, state: State
) -> None:
    line = facts.line(node)
    cell, words = _target(values, facts) if len(values) >= 2 else None, facts.node_text(node)
    if cell is None:
        return
    kind = _channels_of(values[1], facts, state, line)
    told = [one.expression for one in extents if isinstance(one, Scalar)]
    why = next((one for one in (kind, *extents) if isinstance(one, Unknown)), None)
    if any(word in words for word in _OTHERS):
        why = Unknown("cube maps have no words in a workload", line)
    if why is not None or not isinstance(kind, Channels) or len(told) < len(extents):
        state.cells[cell] = Unknown((why.reason if why else "its extents are no numbers"), line)
        return
    told = [one for one in told if one != number(0)]
    size: Expression = number(dtypes.size_of(kind.dtype))
    for one in reversed(told):
        size = build("*", (one, size)) if size != number(1) else one
    laid = Laid(kind.dtype, tuple(told), _LAYERED in words)
    memory = Memory(plain_name(facts.names[cell]), "device", size, "", line, how, laid)
    state.cells[cell] = Pointer(facts.allocate(memory, Content("fresh"), state), number(0), "")


def _channels_of(value: Value, facts: Facts, state: State, line: int) -> Value:
    """The format that a descriptor says: one made by a call, or filled member by member."""
    if not isinstance(value, Ref):
        return value if isinstance(value, Channels) else Unknown("its channels are not known", line)
    held = state.cells.get(value.cell)
    if isinstance(held, Channels):
        return held
    bits = [_member(value.cell, (name,), facts, state) for name in "xyzw"]
    return _format(bits, _member(value.cell, ("f",), facts, state), facts, line)


def _known(value: Value, facts: Facts) -> int | float | None:
    """The number that the program has there, whatever other sizes are tried."""
    try:
        return value.expression.evaluate(facts.values()) if isinstance(value, Scalar) else None
    except ExpressionError:
        return None


def _member(cell: int, path: tuple[str, ...], facts: Facts, state: State) -> Value:
    """What a descriptor's member holds; what nothing sets is zero, as descriptors are zeroed first."""
    for name in path:
        inner = facts.parts.get(cell, {}).get(name)
        if inner is None:
            return ZERO
        cell = inner
    held = state.cells.get(cell, ZERO)
    return ZERO if isinstance(held, Unknown) and held.reason.startswith("nothing that is followed") else held


def clear(cell: int, facts: Facts, state: State) -> None:
    """``memset(&descriptor, 0, ...)``: every member is zero."""
    if facts.types.get(cell, "").replace("struct", "").strip() in DESCRIPTORS:
        for part in parts.all_of(cell, facts):
            state.cells.pop(part, None)


def store_in_array(target: Node, index: Value, value: Value, facts: Facts, state: State) -> None:
    """``descriptor.addressMode[0] = value``."""
    base = child(target, "argument")
    place = index.expression.constant if isinstance(index, Scalar) else None
    if base is None or base.type != "field_expression" or "addressMode" not in facts.node_text(base):
        return
    owner = ev.cell_of(base, facts, state)
    if owner is not None and isinstance(place, int):
        state.cells[parts.member(owner, str(place), f"{facts.names[owner]}[{place}]", facts)] = value


def copy_3d(values: list[Value], node: Node, facts: Facts, state: State) -> list[Value] | None:
    """Target and source of ``cudaMemcpy3D(&parameters)``; None where they are not known."""
    if not values or not isinstance(values[0], Ref):
        return None
    cell = values[0].cell
    into, out_of = (
        next((one for name in names if isinstance(one := _member(cell, (name,), facts, state), Pointer)), None)
        for names in (("dstArray", "dstPtr"), ("srcArray", "srcPtr"))
    )
    return [into, out_of] if into is not None and out_of is not None else None


# Objects ------------------------------------------------------------------------------------------------------------


def create_texture(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaCreateTextureObject(&object, &resource, &reading, view)``."""
    cell = _target(values, facts) if len(values) >= 3 else None
    if cell is not None:
        state.cells[cell] = _object(values[1], values[2], facts, state, facts.line(node))
    return ZERO


def create_surface(values: list[Value], node: Node, facts: Facts, state: State) -> Value:
    """``cudaCreateSurfaceObject(&object, &resource)``."""
    cell = _target(values, facts) if len(values) >= 2 else None
    if cell is not None:
        state.cells[cell] = _object(values[1], None, facts, state, facts.line(node))
    return ZERO


def _target(values: list[Value], facts: Facts) -> int | None:
    """The variable, or the element of an array, that an object is put into."""
    target = values[0]
    if isinstance(target, Pointer):
        return parts.element(target, ZERO, facts, make=True)
    return target.cell if isinstance(target, Ref) else None


def _object(resource: Value, reading: Value | None, facts: Facts, state: State, line: int) -> Value:
    if not isinstance(resource, Ref):
        return Unknown("its resource descriptor is not followed", line)
    found = _resource(resource.cell, reading is None, facts, state, line)
    if isinstance(found, Unknown) or reading is None:
        return found
    if not isinstance(reading, Ref):
        return Unknown("its texture descriptor is not followed", line)
    return _read(found, reading.cell, facts, state, line)


def _resource(cell: int, surface: bool, facts: Facts, state: State, line: int) -> Shown | Unknown:
    kind = _member(cell, ("resType",), facts, state)
    word = kind.text.removeprefix("cudaResourceType") if isinstance(kind, Text) else "Array"
    if word == "Array":
        held = _member(cell, ("res", "array", "array"), facts, state)
        laid = facts.memories[held.memory].laid if isinstance(held, Pointer) else None
        if laid is None or not isinstance(held, Pointer):
            return Unknown(_why(held, "its array is not followed"), line)
        return Shown(held.memory, Texture("", "", laid.extents, surface, laid.dtype, layered=laid.layered))
    if word not in ("Linear", "Pitch2D") or surface:
        return Unknown("mipmapped arrays have no words in a workload", line)
    place = ("res", "linear" if word == "Linear" else "pitch2D")
    held = _member(cell, (*place, "devPtr"), facts, state)
    if not isinstance(held, Pointer) or held.offset != number(0):
        return Unknown(_why(held, "its memory is not followed, or it begins behind the start of one"), line)
    owner = facts.parts.get(facts.parts.get(facts.parts[cell]["res"], {})[place[1]], {}).get("desc")
    kinds = _channels_of(Ref(owner), facts, state, line) if owner is not None else Unknown("its channels are not known")
    told = ("sizeInBytes",) if word == "Linear" else ("width", "height", "pitchInBytes")
    numbers = [_member(cell, (*place, name), facts, state) for name in told]
    if not isinstance(kinds, Channels):
        return Unknown(_why(kinds, "its channels are not known"), line)
    sizes = [one.expression for one in numbers if isinstance(one, Scalar)]
    if len(sizes) < len(numbers):
        return Unknown(_why(next(one for one in numbers if not isinstance(one, Scalar)), "its size is not known"), line)
    if word == "Linear":
        count = divided(sizes[0], dtypes.size_of(kinds.dtype))
        return Shown(held.memory, Texture("", "", (count,), False, kinds.dtype, LINEAR))
    return Shown(held.memory, Texture("", "", (sizes[0], sizes[1]), False, kinds.dtype, PITCHED, sizes[2]))


def _why(value: Value, otherwise: str) -> str:
    return value.reason if isinstance(value, Unknown) else otherwise


def _read(shown: Shown, cell: int, facts: Facts, state: State, line: int) -> Shown | Unknown:
    """The object with what its texture descriptor says."""
    texture, told = shown.texture, {}
    for name in ("filterMode", "readMode", "normalizedCoords"):
        told[name] = _member(cell, (name,), facts, state)
    axes = len(texture.extents) - texture.layered
    modes = [_member(cell, ("addressMode", str(axis)), facts, state) for axis in range(axes)]
    unknown = next((one for one in (*told.values(), *modes) if isinstance(one, Unknown)), None)
    if unknown is not None:
        return Unknown(f"how it is read is not known: {unknown.reason}", line)
    normalized = told["normalizedCoords"]
    yes = ev.truth(normalized, facts) if isinstance(normalized, Scalar) else None
    words = [MODES.get(_word(mode, "cudaAddressMode", "Wrap"), "") for mode in modes]
    if yes is None or "" in words:
        return Unknown("how it is read is not known", line)
    if not yes:
        words = ["clamp" if word in ("wrap", "mirror") else word for word in words]  # as CUDA has it
    if texture.memory == LINEAR:
        return evolve(shown, texture=evolve(texture, as_float=_is(told["readMode"], "cudaReadModeNormalizedFloat")))
    address = tuple(words if len(set(words)) > 1 else words[:1])
    return evolve(
        shown,
        texture=evolve(
            texture,
            filter="linear" if _is(told["filterMode"], "cudaFilterModeLinear") else "nearest",
            address=(*address, "clamp") if texture.layered and len(address) > 1 else address,
            normalized=yes,
            as_float=_is(told["readMode"], "cudaReadModeNormalizedFloat"),
        ),
    )


def _word(value: Value, prefix: str, otherwise: str) -> str:
    return value.text.removeprefix(prefix) if isinstance(value, Text) else otherwise


def _is(value: Value, name: str) -> bool:
    return isinstance(value, Text) and value.text == name
