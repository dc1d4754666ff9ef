"""Read-modify-write in lane order: each lane sees what the lanes before it left, whatever they have in common.

Lanes are grouped by element (keeping their order). Groups of one are done at once; groups that are few or long go
through ``ufunc.accumulate``, which is sequential; many short ones go one round for each place in the group.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from agent.execution.emulator.addresses import Array

# takes (current, operands...) and gives the next value, element by element
Update = Callable[..., Array]


def update(view: Array, index: Array, function: Update, operands: tuple[Array, ...], fold: Any = None) -> Array:
    """Apply ``function`` to ``view[index]`` in lane order; gives what each lane found there before.

    ``fold`` is a ufunc on the elements' type with the same meaning where there is one (then ``operands`` is one array).
    Shapes: all one-dimensional, one element per lane.
    """
    count = len(index)
    if count == 1 or _distinct(index):
        old = view[index]
        view[index] = function(old, *operands)
        return old
    order = np.argsort(index, kind="stable")
    where = index[order]
    first = np.empty(count, bool)
    first[0] = True
    np.not_equal(where[1:], where[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    lengths = np.diff(np.append(starts, count))
    sorted_operands = tuple(operand[order] for operand in operands)
    longest = int(lengths.max())
    old = np.empty(count, view.dtype)
    if fold is not None and len(starts) < longest:
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            stop = start + length
            chain = np.concatenate((view[where[start] : where[start] + 1], sorted_operands[0][start:stop]))
            results = fold.accumulate(chain)
            old[start:stop] = results[:-1]
            view[where[start]] = results[-1]
    else:
        for rank in range(longest):
            at = starts[lengths > rank] + rank
            places = where[at]
            current = view[places]
            old[at] = current
            view[places] = function(current, *(operand[at] for operand in sorted_operands))
    result = np.empty(count, view.dtype)
    result[order] = old
    return result


def _distinct(index: Array) -> bool:
    steps = index[1:] > index[:-1]
    return bool(steps.all()) or len(np.unique(index)) == len(index)


def compare_and_swap(view: Array, index: Array, expected: Array, new: Array) -> Array:
    """As :func:`update` for compare-and-swap: in one group only the lanes that succeed change anything."""
    count = len(index)
    order = np.argsort(index, kind="stable")
    where, expected, new = index[order], expected[order], new[order]
    first = np.empty(count, bool)
    first[:1] = True
    np.not_equal(where[1:], where[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    stops = np.append(starts[1:], count)
    old = np.empty(count, view.dtype)
    position = starts.copy()
    live = np.arange(len(starts))
    while len(live):
        if len(live) > 64 or count <= len(starts) * 2:
            at = position[live]
            current = view[where[at]]
            old[at] = current
            hit = current == expected[at]
            view[where[at[hit]]] = new[at[hit]]
            position[live] += 1
        else:
            for group in live.tolist():
                start, stop = int(position[group]), int(stops[group])
                current = view[where[start]]
                hits = expected[start:stop] == current
                length = int(hits.argmax()) + 1 if hits.any() else stop - start
                old[start : start + length] = current
                if hits[length - 1]:
                    view[where[start]] = new[start + length - 1]
                position[group] = start + length
        live = live[position[live] < stops[live]]
    result = np.empty(count, view.dtype)
    result[order] = old
    return result
