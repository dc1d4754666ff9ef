"""Contents that are aimed at something: numbers that a rewrite compares its data with, or one value everywhere."""

import numpy as np
import numpy.typing as npt

from agent.evaluation.values import from_floats, to_floats
from agent.execution.device import Bytes
from agent.workload import integers, random
from agent.workload.binding import BoundBuffer
from agent.workload.dtypes import base, integer_range, is_float, is_raw, numpy_dtype

LARGEST = 1e18
"""Beyond that a float's square is no float: sums of such values differ by the order of their terms alone."""

_FREE = ("normal", "uniform", "integers", "index", "image", "bytes")
"""Domains in which any value inside the bounds may stand anywhere."""


_RARE = 512
"""One in so many: fewer than one lane in a hundred changes with it, which is no noise then (``numeric.FEW``)."""


def rare(buffer: BoundBuffer, data: Bytes, values: tuple[float, ...], seed: int) -> Bytes:
    """``data`` of floats with one in 512 elements replaced by ``values`` that the bounds allow, as they are."""
    if not is_float(buffer.dtype) or not _free(buffer) or buffer.domain.kind == "bytes":
        return data
    low, high = (side if side is not None else far for side, far in ((buffer.low, -LARGEST), (buffer.high, LARGEST)))
    given = np.array([value for value in values if low <= value <= high], np.float64)
    if not len(given):
        return data
    kind = numpy_dtype(buffer.dtype)
    chosen, found = from_floats(given, buffer.dtype).view(kind), np.ascontiguousarray(data).view(kind).copy()
    index = np.arange(len(found), dtype=np.uint64)
    here = random.below(random.key(seed, 1), index, _RARE) == 0
    which = random.below(random.key(seed, 2), index, len(chosen)).astype(np.intp)
    found[here] = chosen[which[here]]
    return found.view(np.uint8)


def planted(buffer: BoundBuffer, data: Bytes, values: tuple[float, ...], seed: int) -> Bytes:
    """``data`` with half of its elements replaced by ``values`` that the domain allows, by chance and by turns; of
    structs of any bytes, half of the words."""
    chosen = _words(values) if _is_bytes(buffer) else _allowed(buffer, values)
    if not len(chosen) or len(data) % chosen.dtype.itemsize:
        return data
    found = np.ascontiguousarray(data).view(chosen.dtype).copy()
    index = np.arange(len(found), dtype=np.uint64)
    here = random.below(random.key(seed, 1), index, 2) == 0
    which = random.below(random.key(seed, 2), index, len(chosen)).astype(np.intp)
    found[here] = chosen[which[here]]
    return found.view(np.uint8)


def _is_bytes(buffer: BoundBuffer) -> bool:
    return is_raw(buffer.dtype) and buffer.domain.kind == "bytes"


def _words(values: tuple[float, ...]) -> npt.NDArray[np.uint32]:
    """The values as whole numbers and as floats of 32 bits."""
    whole = [int(value) % 2**32 for value in values if value == int(value) and abs(value) < 2**32]
    with np.errstate(over="ignore"):
        floats = np.array(values, np.float32)
    return np.unique(np.concatenate([np.array(whole, np.uint32), floats[np.isfinite(floats)].view(np.uint32)]))


def alike(buffer: BoundBuffer, data: Bytes, largest: bool) -> Bytes:
    """The buffer's largest element everywhere, or its least: what counts equal values overflows here first, and what a
    filter keeps is all or nothing."""
    if not _free(buffer) or not len(data):
        return data
    found = np.ascontiguousarray(data).view(numpy_dtype(buffer.dtype))
    order = to_floats(data, buffer.dtype) if base(buffer.dtype)[0] == "bf16" else found
    return np.full(found.shape, found[order.argmax() if largest else order.argmin()]).view(np.uint8)


SMALL = {"f16": 2.0**-5, "bf16": 2.0**-10, "f32": 2.0**-10, "f64": 2.0**-10}
"""So small that a function which is exact to a unit of 1 only (``expf(x) - 1``) shows, and no smaller: what hardware
approximates to an absolute error is then less precise, and not wrong."""


def small(buffer: BoundBuffer, data: Bytes) -> Bytes:
    """Floats nearer to zero, where their bounds hold it."""
    if not has_small(buffer) or not len(data):
        return data
    return from_floats(to_floats(data, buffer.dtype) * SMALL[base(buffer.dtype)[0]], buffer.dtype)


def has_small(buffer: BoundBuffer) -> bool:
    zero = (buffer.low is None or buffer.low <= 0) and (buffer.high is None or buffer.high >= 0)
    return is_float(buffer.dtype) and _free(buffer) and buffer.domain.kind != "bytes" and zero


def _free(buffer: BoundBuffer) -> bool:
    return not is_raw(buffer.dtype) and buffer.domain.kind in _FREE


def _allowed(buffer: BoundBuffer, values: tuple[float, ...]) -> npt.NDArray[np.generic]:
    if not _free(buffer):
        return np.zeros(0)
    return _floats(buffer, values) if is_float(buffer.dtype) else _wholes(buffer, values)


def _floats(buffer: BoundBuffer, values: tuple[float, ...]) -> npt.NDArray[np.generic]:
    """Each value, its neighbours in the type (what ``>`` and ``>=`` tell apart), and half and twice as much."""
    if base(buffer.dtype)[0] == "bf16":
        return _halved_floats(buffer, values)
    kind = np.dtype(numpy_dtype(buffer.dtype))
    low = -LARGEST if buffer.low is None else buffer.low
    high = LARGEST if buffer.high is None else buffer.high
    with np.errstate(over="ignore"):
        given = np.array(values, np.float64).astype(kind)
        around = [np.nextafter(given, np.asarray(side, kind)) for side in (-np.inf, np.inf)]
        found = np.unique(np.concatenate([given, *around, given * np.asarray(2, kind), given * np.asarray(0.5, kind)]))
    inside = np.isfinite(found) & (found.astype(np.float64) >= low) & (found.astype(np.float64) <= high)
    return np.asarray(found[inside])


def _halved_floats(buffer: BoundBuffer, values: tuple[float, ...]) -> npt.NDArray[np.generic]:
    """The same for bf16, the upper half of a float: the value, rounded toward zero, and its neighbours, as bits."""
    given = np.array([value * part for value in values for part in (1.0, 2.0, 0.5)], np.float64)
    with np.errstate(over="ignore"):
        bits = (given.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.int64)
    around = np.unique(np.concatenate([bits + step for step in (-1, 0, 1)]) & 0xFFFF).astype(np.uint16)
    found = (around.astype(np.uint32) << np.uint32(16)).view(np.float32)
    low = -LARGEST if buffer.low is None else buffer.low
    high = LARGEST if buffer.high is None else buffer.high
    return np.asarray(around[np.isfinite(found) & (found >= low) & (found <= high)])


def _wholes(buffer: BoundBuffer, values: tuple[float, ...]) -> npt.NDArray[np.generic]:
    """Whole ones inside the bounds; where nobody stated any, inside the type."""
    scalar = base(buffer.dtype)[0]
    first, end = integers.bounds(scalar, buffer.domain.kind, buffer.low, buffer.high)
    if not buffer.domain.given and buffer.domain.kind == "integers" and scalar != "bool":
        least, most = integer_range(scalar)
        first, end = least, most + 1
    near = {int(value) + step for value in values if value == int(value) for step in (-1, 0, 1)}
    return np.array(sorted(item for item in near if first <= item < end), numpy_dtype(buffer.dtype))
