"""Floats: the error budget is the original's own, never a constant that somebody picked.

Errors are taken against the float64 oracle and are relative to the scale of the output (its largest magnitude; for
the root mean square, its own root mean square). With E the original's error and D its spread when the inputs move by
one unit in the last place (both so scaled) and u one unit in the last place of 1:

    same   error <= 4 max(E, D) + 2 u
    less   error <= min(1/16, c (4 max(E, D) + 2 u)), c: how much coarser the next lower precision is
    wrong  beyond

Without an oracle the error is the distance from the original, which has errors of its own: 8 D + 4 u.
"""

import numpy as np
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
from agent.evaluation.values import COARSER, EPSILON, SMALLEST, Floats, Mask, to_floats
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


@comparator("numeric")
def numeric(expected: Expected, got: Bytes) -> Comparison:
    want = to_floats(expected.original, expected.dtype)[expected.written]
    have = to_floats(got, expected.dtype)[expected.written]
    places = np.nonzero(expected.written)[0]
    if not len(want):
        return Comparison(expected.name, SAME)
    truth = expected.oracle[expected.written] if expected.oracle is not None else None
    odd = ~np.isfinite(want) | ~np.isfinite(have) | (~np.isfinite(truth) if truth is not None else False)
    special = _special(expected, want, have, truth, odd, places)
    if special is not None:
        return special
    sides = _sides(expected, want[~odd], have[~odd], truth[~odd] if truth is not None else None)
    return _grade(expected, sides, want[~odd], have[~odd], places[~odd])


def fits(original: Floats, oracle: Floats) -> bool:
    """Whether the oracle computes the same thing: finite lanes agree as far as float rounding, cancellation included,
    may explain, but for a few."""
    finite = np.isfinite(original) & np.isfinite(oracle)
    if not finite.any():
        return bool(np.array_equal(np.isnan(original), np.isnan(oracle)))
    distance, truth = np.abs(original[finite] - oracle[finite]), oracle[finite]
    apart = distance > APART * max(float(np.abs(truth).max()), _TINY)
    if apart.sum() <= FEW * len(truth):
        return True
    with np.errstate(over="ignore"):
        return float(np.mean(np.square(distance))) <= FIT**2 * float(np.mean(np.square(truth)))


def _special(
    expected: Expected,
    want: Floats,
    have: Floats,
    truth: Floats | None,
    odd: Mask,
    places: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> Comparison | None:
    """NaN never matches unless the truth is NaN; an infinity matches its like. A finite value where the original
    overflowed is right when float64 agrees with it."""
    agrees = (np.isnan(want) & np.isnan(have)) | (want == have)
    if truth is not None:
        with np.errstate(invalid="ignore"):
            close = np.abs(have - truth) <= APART * np.abs(truth)
        agrees |= ~np.isfinite(want) & np.isfinite(have) & close
        agrees |= np.isfinite(want) & np.isfinite(have)
    bad = odd & ~agrees
    if not bad.any():
        return None
    at = first(bad)
    return mismatch(expected, int(places[at]), have[at], want[at], int(bad.sum()), len(want))


@frozen
class _Sides:
    """Distances that count, lane by lane, and what they are scaled by."""

    candidate: Floats
    original: Floats
    scale: float
    rms: float
    apart: int
    oracle: bool


def _sides(expected: Expected, want: Floats, have: Floats, truth: Floats | None) -> _Sides:
    reference = want if truth is None else truth
    scale = max(float(np.abs(reference).max(initial=0.0)), _TINY)
    rms = max(float(np.sqrt(np.mean(np.square(reference / scale)))) * scale if len(reference) else 0.0, _TINY)
    if truth is None:
        return _Sides(np.abs(have - want), np.zeros_like(want), scale, rms, 0, False)
    candidate, original = np.abs(have - truth), np.abs(want - truth)
    apart = original > max(APART * scale, 4 * expected.spread)
    apart &= apart.sum() <= FEW * len(apart)
    candidate = np.where(apart, np.minimum(candidate, np.abs(have - want)), candidate)
    return _Sides(candidate, np.where(apart, 0.0, original), scale, rms, int(apart.sum()), True)


def _grade(
    expected: Expected, sides: _Sides, want: Floats, have: Floats, places: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> Comparison:
    scalar = base(expected.dtype)[0]
    unit = _unit(scalar, sides.scale)
    errors = _errors(expected, sides, unit)
    if errors.candidate <= errors.limit and errors.candidate_rms <= errors.limit_rms:
        return Comparison(expected.name, SAME, errors=errors)
    gross = max(errors.limit, min(GROSS, COARSER.get(scalar, 1.0) * _budget(expected, sides, unit)))
    beyond = sides.candidate > errors.limit * sides.scale
    at = int(np.argmax(sides.candidate))
    grade = LESS if errors.candidate <= gross else WRONG
    count = f"{int(beyond.sum())} of {len(want)}" if beyond.any() else "the root mean square"
    against = "float64" if sides.oracle else "the original"
    message = (
        f"{expected.name}[{place(expected, int(places[at]))}] is {show(have[at])}, expected {show(want[at])}; "
        f"error {errors.candidate:.1e} of the output's scale against "
        f"{against}, allowed {errors.limit:.1e} ({count} beyond)"
    )
    return Comparison(expected.name, grade, message, int(places[at]), errors)


def _unit(scalar: str, scale: float) -> float:
    """One unit in the last place of the scale, relative to it: larger among the denormals."""
    return max(EPSILON.get(scalar, 0.0), SMALLEST.get(scalar, 0.0) / scale)


def _budget(expected: Expected, sides: _Sides, unit: float) -> float:
    if not sides.oracle:
        return 2 * FACTOR * expected.spread / sides.scale + 4 * unit
    own = max(float(sides.original.max(initial=0.0)), expected.spread)
    return FACTOR * own / sides.scale + 2 * unit


def _errors(expected: Expected, sides: _Sides, unit: float) -> Errors:
    def rms(values: Floats) -> float:
        if not len(values):
            return 0.0
        with np.errstate(over="ignore"):
            return float(np.sqrt(np.mean(np.square(values / sides.scale)))) * (sides.scale / sides.rms)

    own = max(rms(sides.original), expected.spread_rms / sides.rms)
    found = Errors(
        candidate=float(sides.candidate.max(initial=0.0)) / sides.scale,
        original=float(sides.original.max(initial=0.0)) / sides.scale,
        candidate_rms=rms(sides.candidate),
        original_rms=rms(sides.original),
        limit=_budget(expected, sides, unit),
        limit_rms=FACTOR * own + 2 * unit if sides.oracle else 2 * FACTOR * own + 4 * unit,
        scale=sides.scale,
        apart=sides.apart,
    )
    if expected.tolerance is not None:
        return evolve(found, limit=expected.tolerance, limit_rms=expected.tolerance)
    if expected.exact:
        return evolve(found, limit=0.0, limit_rms=0.0)
    return found
