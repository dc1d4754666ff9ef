"""Random draws: the two outputs may differ everywhere, and must look drawn from one distribution."""

import numpy as np

from agent.evaluation.comparators.base import SAME, WRONG, Comparison, Expected, comparator
from agent.evaluation.values import to_floats
from agent.execution.device import Bytes

CRITICAL = 2.9
"""Two-sample Kolmogorov-Smirnov at a significance of 1e-7, as a verdict has some fifty comparisons and an honest one of
them refused by chance is one too many: 2 exp(-2 c^2) (Smirnov's asymptotic form, which errs on the safe side)."""


@comparator("distribution")
def distribution(expected: Expected, got: Bytes) -> Comparison:
    """Largest distance between the two empirical distribution functions against its critical value. Never graded
    ``less``, and blind to single elements: the self-test says so."""
    want = np.sort(to_floats(expected.original, expected.dtype)[expected.written])
    have = np.sort(to_floats(got, expected.dtype)[expected.written])
    if not len(want):
        return Comparison(expected.name, SAME)
    if not np.isfinite(have).all() and np.isfinite(want).all():
        return Comparison(expected.name, WRONG, f"{expected.name} holds NaN or infinity, the original's does not")
    points = np.concatenate((want, have))
    below = (np.searchsorted(values, points, side="right") / len(values) for values in (want, have))
    distance = float(np.abs(np.subtract(*below)).max())
    limit = CRITICAL * np.sqrt(2 / len(want))
    if distance <= limit:
        return Comparison(expected.name, SAME)
    return Comparison(
        expected.name,
        WRONG,
        f"{expected.name} is distributed otherwise (Kolmogorov-Smirnov distance {distance:.3f}, limit {limit:.3f})",
    )
