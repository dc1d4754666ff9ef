"""Which places of an output a kernel writes, told from what comes back over several prior contents."""

import numpy as np
import pytest

from agent.evaluation.oracles.truth import touched
from agent.evaluation.runs import MORE_PRIORS, PRIORS

LANES = 300_000
WRITTEN = 200_000


def places_as_they_come(dtype: str, prior: int, draws: np.random.Generator) -> np.ndarray:
    """What a kernel leaves whose threads take the next free place, each its own value: in another order each time."""
    out = np.full(LANES * np.dtype(dtype).itemsize, prior, np.uint8)
    values = np.arange(WRITTEN, dtype=np.int64).astype(dtype)
    out.view(dtype)[:WRITTEN] = draws.permutation(values)
    return out


@pytest.mark.parametrize(("dtype", "priors"), [("<i4", PRIORS), ("<u2", (*PRIORS, *MORE_PRIORS))])
def test_each_lane_that_was_written_is_seen(dtype: str, priors: tuple[int, ...]) -> None:
    """200,000 lanes; single bytes hold in both runs what stood there in about three of a million."""
    draws = np.random.default_rng(1)
    width = np.dtype(dtype).itemsize
    found = touched([(prior, places_as_they_come(dtype, prior, draws)) for prior in priors], width)
    expected = np.zeros(LANES * width, np.bool_)
    expected[: WRITTEN * width] = True
    assert np.array_equal(found, expected)


def test_what_was_never_written_is_not() -> None:
    left = [(prior, np.full(64, prior, np.uint8)) for prior in PRIORS]
    assert not touched(left, 4).any()


def test_a_lane_is_whole() -> None:
    one, other = (np.full(8, prior, np.uint8) for prior in PRIORS)
    one[5] = other[5] = 7
    assert list(touched([(PRIORS[0], one), (PRIORS[1], other)], 4)) == [False] * 4 + [True] * 4
