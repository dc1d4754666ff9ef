"""Floats: the error budget is the original's own, never a constant that somebody picked.

Errors are taken against the float64 oracle and are relative to the scale of the output (its largest magnitude; for
the root mean square, its own root mean square). With E the original's error and D its spread when the inputs move by
one unit in the last place (both so scaled; of inputs stored in 16 bits: by one of float, as far as that is told from
their own) and u one unit in the last place of 1:

    same   error <= 4 max(E, D) + 2 u
    less   error <= min(1/16, c (4 max(E, D) + 2 u)), c: how much coarser the next lower precision is
    wrong  beyond

Without an oracle the error is the distance from the original, which has errors of its own: 8 D + 4 u.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from agent.evaluation.comparators.base import (
    LESS,
    SAME,
    WRONG,
    Comparison,
    Errors,
    Expected,
    comparator,
    first,
    mismatch,
    place,
    show,
)
from agent.evaluation.values import COARSER, EPSILON, SMALLEST, Floats, Mask, by_parts, lane_bytes, to_floats
from agent.execution.device import Bytes
from agent.workload.dtypes import base

FACTOR = 4.0
GROSS = 1 / 16
"""No rounding in a lower precision is allowed to explain more than this part of the output's scale."""

APART = 2.0**-10
"""Original and oracle this far apart (of the scale) took different branches; float rounding alone does not do that."""

FEW = 0.01
"""This part of the lanes may be apart; more is no branch but how the kernel rounds, and counts as its error."""

FIT = 1 / 32
"""Original and oracle must agree to this in the root mean square, or the oracle says nothing about the case."""

_TINY = 1e-300

Places = npt.NDArray[np.int64]


@frozen
class _Lanes:
    """Lanes of one part that the original wrote. ``at`` are their places in the output, ``odd`` marks those that are
    not finite on some side."""

    at: Places
    want: Floats
    have: Floats
    truth: Floats | None
    odd: Mask

    @property
    def even(self) -> "tuple[Floats, Floats, Floats | None]":
        """The finite ones: original, candidate, truth."""
        if not self.odd.any():
            return self.want, self.have, self.truth
        keep = ~self.odd
        return self.want[keep], self.have[keep], None if self.truth is None else self.truth[keep]


@comparator("numeric")
def numeric(expected: Expected, got: Bytes) -> Comparison:
    count = len(expected.written)

    def lanes(part: slice) -> _Lanes:
        return _lanes(expected, got, part)

    total = sum(by_parts(count, lambda part: int(expected.written[part].sum())))
    if not total:
        return Comparison(expected.name, SAME)
    special = _special(expected, by_parts(count, lambda part: _bad(lanes(part))), total)
    if special is not None:
        return special
    sides = _sides(expected, count, lanes)
    return _grade(expected, sides, count, lanes, total)


def _lanes(expected: Expected, got: Bytes, part: slice) -> _Lanes:
    width = lane_bytes(expected.dtype)
    span = slice(part.start * width, part.stop * width)
    want, have = (to_floats(data[span], expected.dtype) for data in (expected.original, got))
    truth = expected.oracle[part] if expected.oracle is not None else None
    written = expected.written[part]
    at = np.arange(part.start, part.start + len(written), dtype=np.int64)
    if not written.all():
        at, want, have = at[written], want[written], have[written]
        truth = truth[written] if truth is not None else None
    sides = [side for side in (want, have, truth) if side is not None]
    with np.errstate(over="ignore", invalid="ignore"):
        clean = np.isfinite(sum(float(side.sum()) for side in sides))  # one look that tells in nearly all cases
    odd = np.zeros(len(want), np.bool_)
    for side in () if clean else sides:
        odd |= ~np.isfinite(side)
    return _Lanes(at, want, have, truth, odd)


def fits(original: Bytes, dtype: str, oracle: Floats, written: Mask) -> bool:
    """Whether the oracle computes the same thing: finite lanes agree as far as float rounding, cancellation included,
    may explain, but for a few."""
    expected = Expected("", dtype, original, written, oracle=oracle)
    count = len(written)

    def lanes(part: slice) -> tuple[Floats, Floats]:
        want, _, truth = _lanes(expected, original, part).even
        assert truth is not None
        return want, truth

    def nans(part: slice) -> bool:
        found = _lanes(expected, original, part)
        assert found.truth is not None
        return bool(np.array_equal(np.isnan(found.want), np.isnan(found.truth)))

    first_look = by_parts(count, lambda part: _size(lanes(part)[1]))
    total = sum(size for size, _ in first_look)
    if not total:
        return all(by_parts(count, nans))
    limit = APART * max(max(most for _, most in first_look), _TINY)

    def second(part: slice) -> tuple[int, float, float]:
        want, truth = lanes(part)
        distance = np.abs(want - truth)
        with np.errstate(over="ignore"):
            return int((distance > limit).sum()), _squares(distance), _squares(truth)

    apart, off, own = (sum(column) for column in zip(*by_parts(count, second), strict=True))
    return bool(apart <= FEW * total or off <= FIT**2 * own)


def spread_of(original: Bytes, near: Bytes, dtype: str, written: Mask) -> tuple[float, float]:
    """How far lanes moved: the most, and in the root mean square. Lanes that jumped (a branch went the other way) say
    nothing about rounding and are left out while they are few."""
    expected = Expected("", dtype, original, written)
    count = len(written)

    def lanes(part: slice) -> tuple[Floats, Floats]:
        want, moved, _ = _lanes(expected, near, part).even
        return want, moved

    first_look = by_parts(count, lambda part: _size(lanes(part)[0]))
    total = sum(size for size, _ in first_look)
    if not total:
        return 0.0, 0.0
    limit = APART * max(most for _, most in first_look)

    def second(part: slice) -> tuple[int, float, float, float, float]:
        want, moved = lanes(part)
        distance = np.abs(want - moved)
        jumps = distance > limit
        calm = np.where(jumps, 0.0, distance)
        with np.errstate(over="ignore"):
            return int(jumps.sum()), *_most(distance), *_most(calm)

    found = by_parts(count, second)
    few = sum(item[0] for item in found) <= FEW * total
    most, squares = (3, 4) if few else (1, 2)
    with np.errstate(over="ignore"):
        return max(item[most] for item in found), float(np.sqrt(sum(item[squares] for item in found) / total))


def _size(values: Floats) -> tuple[int, float]:
    return len(values), float(np.abs(values).max(initial=0.0))


def _squares(values: Floats) -> float:
    return float(np.square(values).sum())


def _most(values: Floats) -> tuple[float, float]:
    return float(values.max(initial=0.0)), _squares(values)


def _bad(lanes: _Lanes) -> tuple[int, int, float, float] | None:
    """NaN never matches unless the truth is NaN; an infinity matches its like. A finite value where the original
    overflowed is right when float64 agrees with it. The count of bad lanes, and the first: place, candidate's value,
    original's."""
    if not lanes.odd.any():
        return None
    want, have, truth = lanes.want, lanes.have, lanes.truth
    agrees = (np.isnan(want) & np.isnan(have)) | (want == have)
    if truth is not None:
        with np.errstate(invalid="ignore"):
            close = np.abs(have - truth) <= APART * np.abs(truth)
        agrees |= ~np.isfinite(want) & np.isfinite(have) & close
        agrees |= np.isfinite(want) & np.isfinite(have)
    bad = lanes.odd & ~agrees
    if not bad.any():
        return None
    at = first(bad)
    return int(bad.sum()), int(lanes.at[at]), float(have[at]), float(want[at])


def _special(expected: Expected, found: "list[tuple[int, int, float, float] | None]", total: int) -> Comparison | None:
    bad = [item for item in found if item is not None]
    if not bad:
        return None
    _, at, have, want = bad[0]
    return mismatch(expected, at, np.float64(have), np.float64(want), sum(item[0] for item in bad), total)


@frozen
class _Sides:
    """The distances that count: the largest of each side and their root mean squares (relative to the scale), and what
    they are scaled by. ``branched``: lanes apart follow either precision."""

    candidate: float
    original: float
    candidate_rms: float
    original_rms: float
    scale: float
    rms: float
    apart: int
    oracle: bool
    limit: float
    branched: bool


def _sides(expected: Expected, count: int, lanes: "Callable[[slice], _Lanes]") -> _Sides:
    oracle = expected.oracle is not None

    def reference(part: slice) -> Floats:
        want, _, truth = lanes(part).even
        return want if truth is None else truth

    first_look = by_parts(count, lambda part: _size(reference(part)))
    total = max(1, sum(size for size, _ in first_look))
    scale = max(max(most for _, most in first_look), _TINY)
    limit = max(APART * scale, 4 * expected.spread)

    def second(part: slice) -> tuple[float, int]:
        want, _, truth = lanes(part).even
        apart = 0 if truth is None else int((np.abs(want - truth) > limit).sum())
        return _squares((want if truth is None else truth) / scale), apart

    squares, apart = (sum(column) for column in zip(*by_parts(count, second), strict=True))
    rms = max(float(np.sqrt(squares / total)) * scale, _TINY)
    branched = bool(apart) and apart <= FEW * total

    def third(part: slice) -> tuple[float, float, float, float]:
        candidate, original = _distances(lanes(part), limit, branched)
        with np.errstate(over="ignore"):
            return (
                float(candidate.max(initial=0.0)),
                float(original.max(initial=0.0)),
                _squares(candidate / scale),
                _squares(original / scale),
            )

    found = list(zip(*by_parts(count, third), strict=True))
    return _Sides(
        candidate=max(found[0]),
        original=max(found[1]),
        candidate_rms=float(np.sqrt(sum(found[2]) / total)),
        original_rms=float(np.sqrt(sum(found[3]) / total)),
        scale=scale,
        rms=rms,
        apart=apart if branched else 0,
        oracle=oracle,
        limit=limit,
        branched=branched,
    )


def _distances(lanes: _Lanes, limit: float, branched: bool) -> tuple[Floats, Floats]:
    """Candidate's and original's, lane by lane, from float64 where there is an oracle, else from the original."""
    want, have, truth = lanes.even
    if truth is None:
        return np.abs(have - want), np.zeros(0)
    candidate, original = np.abs(have - truth), np.abs(want - truth)
    if not branched:
        return candidate, original
    apart = original > limit
    return np.where(apart, np.minimum(candidate, np.abs(have - want)), candidate), np.where(apart, 0.0, original)


def _grade(expected: Expected, sides: _Sides, count: int, lanes: "Callable[[slice], _Lanes]", total: int) -> Comparison:
    scalar = base(expected.dtype)[0]
    unit = _unit(scalar, sides.scale)
    errors = _errors(expected, sides, unit)
    if errors.candidate <= errors.limit and errors.candidate_rms <= errors.limit_rms:
        return Comparison(expected.name, SAME, errors=errors)
    gross = max(errors.limit, min(GROSS, errors.coarser * (FACTOR * errors.own + errors.units)))

    def worst(part: slice) -> tuple[float, int, float, float, int]:
        found = lanes(part)
        distance = _distances(found, sides.limit, sides.branched)[0]
        if not len(distance):
            return -1.0, 0, 0.0, 0.0, 0
        at, (want, have, _) = int(np.argmax(distance)), found.even
        beyond = int((distance > errors.limit * sides.scale).sum())
        return float(distance[at]), int(found.at[~found.odd][at]), float(have[at]), float(want[at]), beyond

    seen = by_parts(count, worst)
    _, at, have, want, _ = max(seen, key=lambda item: item[0])
    beyond = sum(item[4] for item in seen)
    grade = LESS if errors.candidate <= gross else WRONG
    words = f"{beyond} of {total}" if beyond else "the root mean square"
    against = "float64" if sides.oracle else "the original"
    message = (
        f"{expected.name}[{place(expected, at)}] is {show(have)}, expected {show(want)}; "
        f"error {errors.candidate:.1e} of the output's scale against "
        f"{against}, allowed {errors.limit:.1e} ({words} beyond)"
    )
    return Comparison(expected.name, grade, message, at, errors)


def _unit(scalar: str, scale: float) -> float:
    """One unit in the last place of the scale, relative to it: larger among the denormals."""
    return max(EPSILON.get(scalar, 0.0), SMALLEST.get(scalar, 0.0) / scale)


def _errors(expected: Expected, sides: _Sides, unit: float) -> Errors:
    relative = sides.scale / sides.rms
    most, rms = expected.spread, expected.spread_rms
    if sides.oracle and expected.fine is not None and expected.fine_rms is not None:
        most, rms = expected.fine, expected.fine_rms
    own, own_rms = most / sides.scale, rms / sides.rms
    if sides.oracle:
        own, own_rms = max(own, sides.original / sides.scale), max(own_rms, sides.original_rms * relative)
    else:  # the distance of two answers, each with errors of its own
        own, own_rms, unit = 2 * own, 2 * own_rms, 2 * unit
    found = Errors(
        candidate=sides.candidate / sides.scale,
        original=sides.original / sides.scale,
        candidate_rms=sides.candidate_rms * relative,
        original_rms=sides.original_rms * relative,
        limit=FACTOR * own + 2 * unit,
        limit_rms=FACTOR * own_rms + 2 * unit,
        scale=sides.scale,
        apart=sides.apart,
        own=own,
        own_rms=own_rms,
        units=2 * unit,
        coarser=COARSER.get(base(expected.dtype)[0], 1.0),
    )
    if expected.tolerance is not None:
        return evolve(found, limit=expected.tolerance, limit_rms=expected.tolerance)
    if expected.exact:
        return evolve(found, limit=0.0, limit_rms=0.0)
    return found
