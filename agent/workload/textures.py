"""Texture and surface objects: what a launch passes for ``cudaTextureObject_t`` and ``cudaSurfaceObject_t``.

Both are views of a buffer, so that its contents are generated, hashed and compared as ever. What the words mean is told
by the CUDA C++ Programming Guide, "Texture and Surface Memory" and "Texture Fetching".
"""

from collections.abc import Mapping

from attrs import field, frozen

from agent.workload import dtypes
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError

TEXTURE, SURFACE = "cudaTextureObject_t", "cudaSurfaceObject_t"
FILTERS = ("nearest", "linear")
ADDRESSES = ("clamp", "wrap", "mirror", "border")
ARRAY, LINEAR, PITCHED = "array", "linear", "pitched"
_CHANNELS = frozenset(("u8", "i8", "u16", "i16", "u32", "i32", "f16", "f32"))

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the largest of any.
_MOST: Mapping[tuple[str, int, bool], tuple[int, ...]] = {
    (LINEAR, 1, False): (1 << 28,),
    (PITCHED, 2, False): (131072, 65000),
    (ARRAY, 1, False): (131072,),
    (ARRAY, 2, False): (131072, 65536),
    (ARRAY, 3, False): (16384, 16384, 16384),
    (ARRAY, 2, True): (32768, 2048),
    (ARRAY, 3, True): (32768, 32768, 2048),
}


@frozen
class Texture:
    """``name`` stands for the object in a launch. ``extents`` are width, height and depth in texels, as many as there
    are; the last is the number of layers where ``layered``. ``dtype`` is the texel's type where it is not the buffer's.

    ``memory``: ``array`` (the rows of the buffer, packed, are what is copied to a CUDA array), ``linear`` (the buffer
    itself, for ``tex1Dfetch``) or ``pitched`` (the buffer itself, its rows ``pitch`` bytes apart). A ``surface`` has
    none of the rest: filter, address mode of each axis, whether coordinates are normalised, and whether integers are
    read as floats of [0, 1] or [-1, 1].
    """

    name: str
    buffer: str
    extents: tuple[Expression, ...]
    surface: bool = False
    dtype: str = ""
    memory: str = ARRAY
    pitch: Expression | None = None
    layered: bool = False
    filter: str = "nearest"
    address: tuple[str, ...] = ("clamp",)
    normalized: bool = False
    as_float: bool = False
    line: int | None = field(default=None, eq=False)


@frozen
class View:
    """A texture or surface at concrete sizes: all numbers known. ``pitch`` is the bytes from row to row, ``address``
    has a mode for each extent, and ``dtype`` is always told."""

    name: str
    buffer: str
    dtype: str
    extents: tuple[int, ...]
    pitch: int
    surface: bool = False
    memory: str = ARRAY
    layered: bool = False
    filter: str = "nearest"
    address: tuple[str, ...] = ("clamp",)
    normalized: bool = False
    as_float: bool = False

    @property
    def texel(self) -> int:
        """Bytes."""
        return dtypes.size_of(self.dtype)

    @property
    def nbytes(self) -> int:
        """Of the buffer, up to the last texel."""
        rows = 1
        for extent in self.extents[1:]:
            rows *= extent
        return (rows - 1) * self.pitch + self.extents[0] * self.texel


def view(texture: Texture, dtype: str, nbytes: int, names: Mapping[str, int | float]) -> View:
    """``texture`` at the sizes ``names``, over a buffer of ``nbytes`` bytes of ``dtype``. Raises WorkloadError where it
    does not fit the buffer, or where CUDA has no such texture."""
    what = f"{'surface' if texture.surface else 'texture'} `{texture.name}`"
    kind = texture.dtype or dtype
    extents = tuple(_whole(extent, names, what) for extent in texture.extents)
    scalar, lanes = dtypes.base(kind)
    if scalar not in _CHANNELS or lanes not in (1, 2, 4) or dtypes.is_raw(kind):
        raise WorkloadError(
            f"{what}: CUDA has no texels of type {kind}; say `type=` one, two or four of {', '.join(sorted(_CHANNELS))}"
            " (as in u8x4), whatever the buffer's own",
            texture.line,
        )
    most = _MOST.get((texture.memory, len(extents), texture.layered))
    if most is None:
        raise WorkloadError(f"{what}: CUDA has none of {_told(texture)} with {len(extents)} extents", texture.line)
    if any(not 1 <= extent <= limit for extent, limit in zip(extents, most, strict=True)):
        raise WorkloadError(f"{what}: {_times(extents)} texels; CUDA allows 1 to {_times(most)}", texture.line)
    pitch = extents[0] * dtypes.size_of(kind)
    if texture.pitch is not None:
        told, pitch = pitch, _whole(texture.pitch, names, what)
        if pitch < told or pitch % 32:
            raise WorkloadError(
                f"{what}: a pitch of {pitch} bytes; it has to be a multiple of 32 and at least a row, {told}",
                texture.line,
            )
    _check_reading(texture, scalar, what)
    address = texture.address * len(extents) if len(texture.address) == 1 else texture.address
    found = View(
        texture.name, texture.buffer, kind, extents, pitch, texture.surface, texture.memory, texture.layered,
        texture.filter, address, texture.normalized, texture.as_float,
    )  # fmt: skip
    if len(address) != len(extents):
        raise WorkloadError(f"{what}: {len(address)} address modes for {len(extents)} extents", texture.line)
    if found.nbytes > nbytes:
        raise WorkloadError(
            f"{what}: {_times(extents)} texels of {kind} need {found.nbytes} bytes, `{texture.buffer}` has {nbytes}",
            texture.line,
        )
    return found


def _check_reading(texture: Texture, scalar: str, what: str) -> None:
    floats = scalar in ("f16", "f32")
    if texture.as_float and (floats or scalar in ("u32", "i32")):
        raise WorkloadError(f"{what}: only integers of 8 and 16 bits can be read as floats (read=float)", texture.line)
    if texture.filter == "linear" and not (floats or texture.as_float):
        raise WorkloadError(f"{what}: CUDA interpolates floats only (filter=linear of {scalar})", texture.line)
    if texture.memory == LINEAR and (texture.filter == "linear" or texture.normalized):
        raise WorkloadError(f"{what}: linear memory is neither filtered nor read by normalised places", texture.line)


def _told(texture: Texture) -> str:
    return f"{texture.memory} memory{', layered,' if texture.layered else ''}"


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _whole(expression: Expression, names: Mapping[str, int | float], what: str) -> int:
    try:
        return int(expression.integer(names))
    except ExpressionError as error:
        raise WorkloadError(f"{what}: {error}") from None
