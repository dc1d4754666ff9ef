"""Bit for bit: integers, and whatever the workload says is exact."""

from agent.evaluation.comparators.base import SAME, Comparison, Expected, comparator, first, mismatch
from agent.evaluation.values import lane_bytes, lanes
from agent.execution.device import Bytes


@comparator("exact")
def exact(expected: Expected, got: Bytes) -> Comparison:
    width = lane_bytes(expected.dtype)
    differs = (expected.original != got).reshape(-1, width).any(axis=1) & expected.written
    if not differs.any():
        return Comparison(expected.name, SAME)
    at = first(differs)
    want, have = lanes(expected.original, expected.dtype)[at], lanes(got, expected.dtype)[at]
    return mismatch(expected, at, have, want, int(differs.sum()), int(expected.written.sum()))
