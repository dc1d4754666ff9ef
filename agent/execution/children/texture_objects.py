"""Texture and surface objects on a card, over buffers that the runner has laid out, with CuPy's classes for them."""

from typing import Any

import numpy as np
from attrs import define, field

from agent.workload import dtypes
from agent.workload.textures import ARRAY, LINEAR, View

_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}  # cudaTextureAddressMode
_KINDS = {"i": 0, "u": 1, "f": 2}  # cudaChannelFormatKind
_LAYERED, _WRITABLE, _GATHERED = 1, 2, 8  # flags of cudaMalloc3DArray
_MOST_GATHERED = 32768
"""Texels along an axis of an array that can be gathered from."""


@define(eq=False)
class Shown:
    """One object. An array is a copy: ``fill`` takes the buffer's contents in, ``give`` hands a surface's back. Both
    are queued on the stream that kernels run on."""

    view: View
    address: int
    handle: int
    array: Any
    buffer: Any
    held: tuple[Any, ...] = field(repr=False)

    def fill(self) -> None:
        if self.array is not None:
            self.array.copy_from(self.buffer)

    def give(self) -> None:
        if self.array is not None and self.view.surface:
            self.array.copy_to(self.buffer)


def show(view: View, address: int) -> Shown:
    """The object for ``view`` over the memory at ``address``. Raises what CUDA raises, and ValueError for what CuPy has
    no words for."""
    import cupy
    from cupy.cuda import runtime, texture

    scalar, lanes = dtypes.base(view.dtype)
    bits = [8 * dtypes.size_of(scalar) * (lane < lanes) for lane in range(4)]
    channels = texture.ChannelFormatDescriptor(*bits, _KINDS[scalar[0]])
    held = cupy.cuda.UnownedMemory(address, view.nbytes, None)
    pointer = cupy.cuda.MemoryPointer(held, 0)
    if view.memory == ARRAY:
        shape = (*view.extents[:0:-1], view.extents[0] * lanes)
        buffer = cupy.ndarray(shape, np.dtype(dtypes.numpy_dtype(scalar)), pointer)
        array = texture.CUDAarray(channels, *_extents(view), flags=_flags(view))
        resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    else:
        buffer, array = cupy.ndarray((view.nbytes,), np.uint8, pointer), None
        resource = _linear(texture, runtime, view, buffer, channels)
    made = texture.SurfaceObject(resource) if view.surface else texture.TextureObject(resource, _reading(texture, view))
    return Shown(view, address, int(made.ptr), array, buffer, (made, resource, channels, held))


def _extents(view: View) -> tuple[int, ...]:
    if view.layered and len(view.extents) == 2:
        raise ValueError(f"the texture '{view.name}' has layers of one dimension, which CuPy cannot allocate")
    return view.extents


def _flags(view: View) -> int:
    gathered = len(view.extents) == 2 and not view.surface and max(view.extents) <= _MOST_GATHERED
    return _LAYERED * view.layered + _WRITABLE * view.surface + _GATHERED * gathered


def _linear(texture: Any, runtime: Any, view: View, buffer: Any, channels: Any) -> Any:
    if view.memory == LINEAR:
        return texture.ResourceDescriptor(
            runtime.cudaResourceTypeLinear, arr=buffer, chDesc=channels, sizeInBytes=view.nbytes
        )
    width, height = view.extents
    return texture.ResourceDescriptor(
        runtime.cudaResourceTypePitch2D, arr=buffer, chDesc=channels, width=width, height=height,
        pitchInBytes=view.pitch,
    )  # fmt: skip


def _reading(texture: Any, view: View) -> Any:
    """The descriptor of how it is read; filter and read mode as numbers of cudaTextureFilterMode, cudaTextureReadMode.
    The border is zeros."""
    modes = [_MODES[mode] for mode in view.address[: len(view.extents) - view.layered]]
    return texture.TextureDescriptor(
        modes + [_MODES["clamp"]] * (3 - len(modes)), int(view.filter == "linear"), int(view.as_float),
        normalizedCoords=int(view.normalized),
    )  # fmt: skip
