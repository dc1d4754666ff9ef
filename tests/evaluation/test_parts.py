"""Large outputs are looked at part by part, by several threads: the verdict is the one of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.evaluation import values
from agent.evaluation.comparators.base import Expected, compare
from agent.evaluation.comparators.numeric import fits, spread_of

N = 1000


def case(seed: int, error: float, odd: bool) -> tuple[Expected, np.ndarray]:
    """An output whose candidate is off by ``error`` of its scale here and there; ``odd``: with NaN and infinities."""
    generator = np.random.default_rng(seed)
    truth = generator.standard_normal(N)
    original = truth.astype(np.float32)
    candidate = (truth + error * np.where(generator.random(N) < 0.1, generator.standard_normal(N), 0)).astype(
        np.float32
    )
    written = generator.random(N) < 0.9
    if odd:
        for array in (original, candidate, truth):
            array[::97] = np.nan
            array[::89] = np.inf
    expected = Expected("y", "f32", original.view(np.uint8), written, oracle=truth, spread=1e-7)
    return expected, candidate.view(np.uint8)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 1e-8, 1e-6, 1e-3, 0.5, 20.0]), st.booleans(), st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_parts_make_no_difference(seed: int, error: float, odd: bool, part: int) -> None:
    expected, got = case(seed, error, odd)
    whole = compare(expected, got)
    spread = spread_of(expected.original, got, "f32", expected.written)
    assert expected.oracle is not None
    fit = fits(got, "f32", expected.oracle, expected.written)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "PART", part)
        again = compare(expected, got)
        assert (again.grade, again.index) == (whole.grade, whole.index)
        assert again.message == whole.message
        if whole.errors is not None and again.errors is not None:
            for name in ("candidate", "original", "candidate_rms", "original_rms", "limit", "scale", "apart"):
                assert getattr(again.errors, name) == pytest.approx(getattr(whole.errors, name), rel=1e-12)
        assert spread_of(expected.original, got, "f32", expected.written) == pytest.approx(spread, rel=1e-12)
        assert fits(got, "f32", expected.oracle, expected.written) == fit


def test_errors_by_hand() -> None:
    """Scale 4; the candidate is off by 0.5 in one of four lanes, the original by 0.25 in another."""
    truth = np.array([4.0, -2.0, 1.0, 0.0])
    original = np.array([4.0, -2.25, 1.0, 0.0], np.float32).view(np.uint8)
    candidate = np.array([4.0, -2.0, 1.5, 0.0], np.float32).view(np.uint8)
    expected = Expected("y", "f32", original, np.ones(4, bool), oracle=truth, spread=0.25)
    errors = compare(expected, candidate).errors
    assert errors is not None
    assert (errors.candidate, errors.original, errors.scale) == (0.125, 0.0625, 4.0)
    rms = np.sqrt((16 + 4 + 1) / 4)
    assert errors.candidate_rms == pytest.approx(np.sqrt(0.25 / 4) / rms)
    assert errors.original_rms == pytest.approx(np.sqrt(0.0625 / 4) / rms)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_lane_counts_when_all_its_bytes_do(width: int) -> None:
    dtype = {1: "u8", 2: "f16", 4: "f32", 8: "f64"}[width]
    mask = np.random.default_rng(0).random(64 * width) < 0.8
    assert np.array_equal(values.lane_mask(mask, dtype), mask.reshape(-1, width).all(axis=1))
