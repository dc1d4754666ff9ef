"""Wrong answers made from a right one. A checker that accepts one of them cannot tell that fault on this workload.

Each mutant answers a known way in which a wrong kernel passed somebody's checker: outputs smaller than a fixed
tolerance (zeros pass), random sums near zero (a constant passes), an output nobody wrote (stale memory passes), a
dropped partial tile, a last element off by a little, NaN as a wildcard, half precision inside a float kernel.
"""

from collections.abc import Callable, Iterator

import numpy as np
from attrs import field, frozen

from agent.evaluation.comparators.base import SAME, Expected, compare
from agent.evaluation.values import EPSILON, from_floats, lane_bytes, to_floats
from agent.execution.device import Bytes
from agent.workload.dtypes import base, is_float

TILE = 32
"""Lanes in the "last tile": a warp's worth."""

KILLED, SURVIVED, EQUAL, BLIND = "killed", "survived", "equal", "blind"


@frozen
class Mutant:
    name: str
    data: Bytes = field(repr=False)


Maker = Callable[[Expected], Iterator[Bytes | Mutant]]
MAKERS: dict[str, Maker] = {}


def mutant(name: str) -> Callable[[Maker], Maker]:
    def register(function: Maker) -> Maker:
        MAKERS[name] = function
        return function

    return register


def mutants(expected: Expected) -> Iterator[Mutant]:
    """All that can be made of this output; a copy of an input is named after it (``copy of x``)."""
    for name, make in MAKERS.items():
        for made in make(expected):
            yield made if isinstance(made, Mutant) else Mutant(name, made)


def fate(expected: Expected, changed: Mutant) -> str:
    """``equal``: no mutant at all, the truth itself looks like that. ``blind``: the comparator's nature hides it,
    or the user's own tolerance asks for it."""
    view = changed.data.reshape(-1, lane_bytes(expected.dtype)) != expected.original.reshape(
        -1, lane_bytes(expected.dtype)
    )
    if not (view.any(axis=1) & expected.written).any():
        return EQUAL
    if compare(expected, changed.data).grade != SAME:
        return KILLED
    if expected.kind == "distribution" and changed.name in _SINGLE:
        return BLIND
    return BLIND if expected.tolerance is not None and changed.name == "half precision" else SURVIVED


_SINGLE = ("last tile missing", "one element off", "NaN", "half precision")


@mutant("zeros")
def _zeros(expected: Expected) -> Iterator[Bytes]:
    yield np.zeros_like(expected.original)


@mutant("ones")
def _ones(expected: Expected) -> Iterator[Bytes]:
    yield from_floats(np.ones(len(expected.written)), expected.dtype)


@mutant("constant")
def _constant(expected: Expected) -> Iterator[Bytes]:
    """The mean of the output everywhere: what a lazy kernel would guess."""
    values = to_floats(expected.original, expected.dtype)[expected.written]
    values = values[np.isfinite(values)]
    if len(values):
        yield from_floats(np.full(len(expected.written), values.mean()), expected.dtype)


@mutant("copy of an input")
def _copy(expected: Expected) -> Iterator[Mutant]:
    for name, (dtype, data) in expected.inputs.items():
        if dtype == expected.dtype and data.nbytes >= expected.original.nbytes:
            yield Mutant(f"copy of {name}", data[: expected.original.nbytes].copy())


@mutant("stale output")
def _stale(expected: Expected) -> Iterator[Bytes]:
    yield np.full_like(expected.original, expected.prior)


@mutant("last tile missing")
def _tail(expected: Expected) -> Iterator[Bytes]:
    written = np.nonzero(expected.written)[0]
    if len(written):
        view = expected.original.copy().reshape(-1, lane_bytes(expected.dtype))
        view[written[-min(TILE, max(1, len(written) // 4)) :]] = 0
        yield view.reshape(-1)


@mutant("one element off")
def _off(expected: Expected) -> Iterator[Bytes]:
    """The lane of largest magnitude moved by twice what the comparator allows; an integer by one."""
    values = to_floats(expected.original, expected.dtype)
    finite = np.nonzero(expected.written & np.isfinite(values))[0]
    if not len(finite):
        return
    at = finite[np.argmax(np.abs(values[finite]))]
    if not is_float(expected.dtype) or expected.kind != "numeric":
        view = expected.original.copy().reshape(-1, lane_bytes(expected.dtype))
        view[at, 0] ^= 1
        yield view.reshape(-1)
        return
    errors = compare(expected, expected.original).errors
    if errors is None:
        return
    anchor = expected.oracle[at] if expected.oracle is not None else values[at]
    unit = EPSILON[base(expected.dtype)[0]]
    step = max(
        2 * errors.limit * errors.scale, 2 * unit * abs(anchor), 2 * unit * errors.scale * (errors.scale < 1e-30)
    )
    changed = values.copy()
    changed[at] = anchor + np.copysign(step, anchor)
    yield from_floats(changed, expected.dtype)


@mutant("NaN")
def _nan(expected: Expected) -> Iterator[Bytes]:
    written = np.nonzero(expected.written)[0]
    if is_float(expected.dtype) and len(written):
        changed = to_floats(expected.original, expected.dtype)
        changed[written[len(written) // 2]] = np.nan
        yield from_floats(changed, expected.dtype)


@mutant("half precision")
def _half(expected: Expected) -> Iterator[Bytes]:
    """The answer rounded to the next lower precision (f16 for f32, f32 for f64)."""
    lower = {"f32": np.float16, "f64": np.float32}.get(base(expected.dtype)[0])
    if lower is not None:
        with np.errstate(over="ignore"):
            rounded = to_floats(expected.original, expected.dtype).astype(lower).astype(np.float64)
        yield from_floats(rounded, expected.dtype)
