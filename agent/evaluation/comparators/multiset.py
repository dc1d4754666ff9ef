"""The same values in any order: compaction, queues, hash tables."""

import numpy as np

from agent.evaluation.comparators.base import SAME, WRONG, Comparison, Expected, comparator
from agent.evaluation.values import lane_bytes
from agent.execution.device import Bytes
from agent.workload.dtypes import size_of


@comparator("multiset")
def multiset(expected: Expected, got: Bytes) -> Comparison:
    """Elements (all lanes of a vector together) compared as sorted byte strings; those never written are left out."""
    size = size_of(expected.dtype)
    per = size // lane_bytes(expected.dtype)
    written = expected.written.reshape(-1, per).all(axis=1)
    want, have = (np.sort(_keys(data, size)[written]) for data in (expected.original, got))
    if np.array_equal(want, have):
        return Comparison(expected.name, SAME)
    missing = int((want != have).sum())
    return Comparison(
        expected.name,
        WRONG,
        f"{expected.name} holds other values than expected, whatever their order (at least {missing} of {len(want)})",
    )


def _keys(data: Bytes, size: int) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
    """Elements as opaque keys that sort."""
    return (
        np.ascontiguousarray(data).view(f"S{size}")
        if size not in (1, 2, 4, 8)
        else np.ascontiguousarray(data).view(f"u{size}")
    )
