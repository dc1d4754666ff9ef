"""Indices where ties may be broken either way: two answers agree when they point at equal values."""

import numpy as np

from agent.evaluation.comparators.base import SAME, WRONG, Comparison, Expected, comparator, first, mismatch
from agent.evaluation.values import lanes, to_floats
from agent.execution.device import Bytes


@comparator("argmax")
def argmax(expected: Expected, got: Bytes) -> Comparison:
    """The values are looked up in the largest float input whose size is a whole multiple of the output's: row r of
    it belongs to output r. Without such an input the indices must be equal."""
    want = lanes(expected.original, expected.dtype).astype(np.int64)
    have = lanes(got, expected.dtype).astype(np.int64)
    differs = (want != have) & expected.written
    if not differs.any():
        return Comparison(expected.name, SAME)
    rows = _values(expected, len(want))
    if rows is not None:
        inside = (have >= 0) & (have < rows.shape[1]) & (want >= 0) & (want < rows.shape[1])
        at = np.nonzero(differs & inside)[0]
        differs[at] = rows[at, want[at]] != rows[at, have[at]]
    if not differs.any():
        return Comparison(expected.name, SAME)
    at0 = first(differs)
    found = mismatch(expected, at0, have[at0], want[at0], int(differs.sum()), int(expected.written.sum()))
    return Comparison(expected.name, WRONG, found.message + ", and the values there are not equal", at0)


def _values(expected: Expected, count: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]] | None":
    best: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None
    for dtype, data in expected.inputs.values():
        if not dtype.startswith(("f", "bf")):
            continue
        values = to_floats(data, dtype)
        if count and len(values) % count == 0 and (best is None or len(values) > best.size):
            best = values.reshape(count, -1)
    return best
