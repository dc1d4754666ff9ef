"""Which texels a fetch reads and with what weights: CUDA C++ Programming Guide, "Texture Fetching".

Places are in texels: texel ``i`` is all of ``[i, i + 1)``. Linear filtering goes by ``x - 0.5``, rounded to 8 bits of
fraction (the guide's 9-bit fixed-point weights; that they are rounded to nearest is told by its "Texture Gather").
"""

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.workload.textures import View

_FRACTION = 256
_FAR = float(1 << 40)  # beyond every texture, and what remains is whole in float64


@frozen
class Axis:
    """Along one axis: texels ``at`` (one array, or the two that are filtered), which of them exist, and the weight of
    the second (None where there is one only)."""

    at: tuple[Array, ...]
    inside: tuple[Array | None, ...]
    weight: Array | None = None


def place(view: View, axis: int, coordinate: Array) -> Array:
    """A float coordinate as a place in texels, float64. What is no number is 0, and so is the fraction of what is
    infinite."""
    found = coordinate.astype(np.float64)
    if view.normalized:
        turns = {"wrap": 1.0, "mirror": 2.0}.get(view.address[axis])
        found = (found if turns is None else np.mod(found, turns)) * view.extents[axis]
    return np.clip(np.nan_to_num(found, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)


def axis(view: View, number: int, coordinate: Array, filtered: bool, exact: bool = False) -> Axis:
    """The texels of float coordinates along axis ``number``; ``exact``: with weights that are not rounded."""
    where = place(view, number, coordinate)
    if not filtered:
        at, inside = texel(view, number, np.floor(where).astype(np.int64))
        return Axis((at,), (inside,))
    fixed = where - 0.5 if exact else np.floor((where - 0.5) * _FRACTION + 0.5) / _FRACTION
    whole = np.floor(fixed)
    pairs = [texel(view, number, whole.astype(np.int64) + step) for step in (0, 1)]
    return Axis(tuple(at for at, _ in pairs), tuple(inside for _, inside in pairs), fixed - whole)


def texel(view: View, number: int, index: Array) -> tuple[Array, Array | None]:
    """The texel that an index means by the address mode, and where there is one (None: everywhere)."""
    count, mode = view.extents[number], view.address[number]
    if mode == "border":
        return outside(index, count)
    if mode == "wrap" and view.normalized:
        return index % count, None
    if mode == "mirror" and view.normalized:
        turn = index % (2 * count)
        return np.where(turn < count, turn, 2 * count - 1 - turn), None
    # the guide: without normalised coordinates, wrap and mirror become clamp
    return np.clip(index, 0, count - 1), None


def outside(index: Array, count: int) -> tuple[Array, Array | None]:
    """Indices made sound, and which of them were."""
    inside = (index >= 0) & (index < count)
    return np.clip(index, 0, count - 1), None if inside.all() else inside


def layer(view: View, index: Array) -> Axis:
    """The layer of an index, clamped as the guide has it."""
    return Axis((np.clip(index.astype(np.int64), 0, view.extents[-1] - 1),), (None,))
