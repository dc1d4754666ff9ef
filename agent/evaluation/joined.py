"""Outputs in any order whose elements of one index belong together, as keys and values do that one thread writes."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from agent.evaluation.comparators.base import WRONG, Comparison, Expected
from agent.evaluation.values import lane_bytes
from agent.execution.device import Answer
from agent.workload.dtypes import size_of

Pair = tuple[str, str]


def joined(expected: Sequence[Expected], answer: Answer, turned: Answer | None) -> tuple[Pair, ...]:
    """The pairs that a run of the original with its blocks in another order moved, and left together."""
    free = [item for item in expected if item.kind == "multiset"]
    if turned is None or turned.status != "ok":
        return ()
    return tuple((one.name, other.name) for one, other in combinations(free, 2) if _stayed(one, other, answer, turned))


def apart(
    pairs: Sequence[Pair], expected: Sequence[Expected], original: Answer, answer: Answer
) -> Iterator[Comparison]:
    """Pairs whose elements a candidate has, but not side by side."""
    items = {item.name: item for item in expected}
    for one, other in pairs:
        want, have = (_rows(items[one], items[other], side) for side in (original, answer))
        if want is not None and have is not None and not np.array_equal(want, have):
            words = f"{one} and {other} do not hold side by side what the original writes side by side"
            yield Comparison(one, WRONG, words)


def _stayed(one: Expected, other: Expected, answer: Answer, turned: Answer) -> bool:
    moved = all(not np.array_equal(answer.outputs[item.name], turned.outputs[item.name]) for item in (one, other))
    was, now = (_rows(one, other, side) for side in (answer, turned)) if moved else (None, None)
    return was is not None and now is not None and np.array_equal(was, now)


def _rows(one: Expected, other: Expected, answer: Answer) -> "npt.NDArray[np.void] | None":
    """Both elements of each index as one, sorted; None where they are not written at the same places."""
    sizes = [size_of(item.dtype) for item in (one, other)]
    marks = [
        item.written.reshape(-1, size // lane_bytes(item.dtype)).all(axis=1)
        for item, size in zip((one, other), sizes, strict=True)
    ]
    if not np.array_equal(marks[0], marks[1]):
        return None
    columns = [
        np.ascontiguousarray(answer.outputs[item.name]).reshape(-1, size)
        for item, size in zip((one, other), sizes, strict=True)
    ]
    rows = np.ascontiguousarray(np.concatenate(columns, axis=1)[marks[0]])
    return np.sort(rows.view(f"S{sum(sizes)}").reshape(-1))
