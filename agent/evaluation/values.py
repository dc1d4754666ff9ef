"""Bytes of a buffer as numbers, and back. Vectors are seen lane by lane."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from agent.execution.device import Bytes
from agent.workload.dtypes import base, numpy_dtype, size_of

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
"""One unit in the last place of a value in [1, 2)."""

SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}
"""The smallest denormal: the spacing of values near zero."""

COARSER = {"f16": 2.0**7, "bf16": 2.0**4, "f32": 2.0**13, "f64": 2.0**29}
"""How much coarser the next lower precision is: fp8 (e4m3) for the 16-bit types, f16 for f32, f32 for f64."""


def lane_bytes(dtype: str) -> int:
    return size_of(dtype) // base(dtype)[1]


def lanes(data: Bytes, dtype: str) -> npt.NDArray[np.generic]:
    """The lanes in their own NumPy type (bf16 as its bits)."""
    return np.ascontiguousarray(data).view(numpy_dtype(dtype))


def to_floats(data: Bytes, dtype: str) -> Floats:
    """The lanes as float64, exact for every type but 64-bit integers beyond 2**53."""
    raw = lanes(data, dtype)
    if base(dtype)[0] == "bf16":
        raw = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float64)


def from_floats(values: Floats, dtype: str) -> Bytes:
    """The nearest values of ``dtype`` as bytes (round to nearest even; integers truncate as C does)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if base(dtype)[0] == "bf16":
            bits = values.astype(np.float32).view(np.uint32)
            rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
            raw = np.where(np.isnan(values), np.uint32(0x7FC0), rounded >> np.uint32(16)).astype(np.uint16)
            return np.ascontiguousarray(raw).view(np.uint8)
        return np.ascontiguousarray(values.astype(numpy_dtype(dtype))).view(np.uint8)


def lane_mask(mask: Mask, dtype: str) -> Mask:
    """A mask per byte as one per lane; a lane counts when all its bytes do."""
    width = lane_bytes(dtype)
    if width in (2, 4, 8):  # all bytes of a lane at once
        whole = int.from_bytes(b"\x01" * width, "little")
        return np.asarray(np.ascontiguousarray(mask).view(f"<u{width}") == whole)
    return np.asarray(mask.reshape(-1, width).all(axis=1))


PART = 1 << 17
"""Lanes that are looked at in one go: their doubles fit a processor's own cache."""


def by_parts(count: int, look: Callable[[slice], T]) -> list[T]:
    """What ``look`` finds in each part of ``count`` lanes, in order; large arrays by several threads at once (NumPy
    lets others run while it computes). At least one part."""
    parts = [slice(start, min(start + PART, count)) for start in range(0, max(count, 1), PART)]
    if len(parts) < _FEW_PARTS:
        return [look(part) for part in parts]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        return list(threads.map(look, parts))


_FEW_PARTS = 4
