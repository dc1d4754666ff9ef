"""Texture and surface objects of a run: what a handle means.

A handle is an address far outside its buffer, so that flow analysis sees which buffer it leads to and a program that
uses one as a pointer is told of. A texture sees what the buffer holds now; a card has copied an array before the launch
and is free to keep what it read of linear memory, which differs only where a launch writes what it reads as a texture:
such reads show as races.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import HALF, Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.memory import Memory
from agent.execution.emulator.ptx.instruction import Operand, Register, Vector
from agent.execution.emulator.sites import Site
from agent.execution.emulator.values import Lowering
from agent.workload.textures import View

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

_OUTSIDE, _STEP = HALF >> 1, 1 << 8

#: Words of an opcode for a shape, and the number of extents and whether the last one counts layers.
GEOMETRIES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (2, True), "a2d": (3, True)}


def handle_of(memory: Memory, buffers: Mapping[str, Buffer], view: View) -> int:
    """The handle that a launch passes for ``view``. Raises Refused for a buffer that the run has not."""
    if view.buffer not in buffers:
        raise Refused(f"the texture '{view.name}' shows the buffer '{view.buffer}', which has no contents")
    buffer = buffers[view.buffer]
    if view.nbytes > buffer.nbytes:
        raise Refused(f"the texture '{view.name}' needs {view.nbytes} bytes, '{view.buffer}' has {buffer.nbytes}")
    for handle, known in memory.views.items():
        if known == (buffer, view):
            return handle
    handle = buffer.base + _OUTSIDE + _STEP * (1 + len(memory.views))
    memory.views[handle] = (buffer, view)
    return handle


def operands_of(lowering: Lowering, operand: Operand) -> tuple[int, tuple[Operand | None, ...]]:
    """The entry of the handle and the coordinates of ``[handle, {x, y}]``. Raises Refused for other forms."""
    if not isinstance(operand, Vector) or len(operand.elements) != 2:
        raise lowering.refuse("a sampler of its own")
    handle, place = operand.elements
    if not isinstance(handle, Register):
        raise lowering.refuse("a texture or surface reference, which CUDA 12 has removed: pass an object")
    return lowering.source(handle, "b64"), place.elements if isinstance(place, Vector) else (place,)


def by_object(
    batch: "Batch", site: Site, handles: Array, surface: bool
) -> Iterator[tuple[Buffer, View, Callable[[Array], Array]]]:
    """Each object that lanes use; ``batch.lanes`` are those lanes until the next one, and the function gives a value of
    all lanes as they see it. Lanes whose handle is none are recorded as faults."""
    lanes = batch.lanes
    if handles.size == 1 and (known := batch.memory.views.get(int(handles[0, 0]))) and known[1].surface == surface:
        yield *known, lambda value: value
        return
    what = "surface" if surface else "texture"
    flat = np.broadcast_to(handles, lanes.shape).reshape(-1)
    try:
        for handle in np.unique(flat).tolist():
            here = flat == handle
            found = batch.memory.views.get(handle)
            if found is None or found[1].surface != surface:
                batch.fault(
                    "illegal address", lanes, site, here, lambda lane: f"{int(flat[lane]):#x} is no {what} object"
                )
                continue
            places = np.flatnonzero(here)
            batch.lanes = Lanes(lanes.blocks, lanes.threads, ragged=lanes.flat[places])
            yield *found, lambda value: np.broadcast_to(value, lanes.shape).reshape(-1)[places][None, :]  # noqa: B023
    finally:
        batch.lanes = lanes


def spread(batch: "Batch", whole: Lanes, results: list[Array], part: list[Array]) -> None:
    """Put the results of ``batch.lanes`` in their places among those of ``whole``."""
    if batch.lanes is whole:
        for k, value in enumerate(part):
            results[k] = value
        return
    places = np.searchsorted(whole.flat, batch.lanes.flat)
    for result, value in zip(results, part, strict=True):
        result.reshape(-1)[places] = np.broadcast_to(value, batch.lanes.shape).reshape(-1)
