"""An error that is designed to be one: compensated sums lose nothing, whatever float64 says of their middle."""

import numpy as np
import pytest

from tests.execution.emulator.shadowing import shadowed

X = np.random.default_rng(3).uniform(0, 1, 32 * 300).astype(np.float32)
Y = np.zeros(32, np.float32)
KAHAN = """extern "C" __global__ void k(const float* x, float* y, int n) {
    int t = threadIdx.x;
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < n; i++) {
        float v = x[i * 32 + t] - lost;
        float next = sum + v;
        lost = (next - sum) - v;
        sum = next;
    }
    y[t] = sum;
}
"""


@pytest.mark.parametrize("together", [False, True])
def test_the_term_of_a_compensated_sum_reaches_nothing(together: bool) -> None:
    source = KAHAN.replace(";\n        float next", ", next") if together else KAHAN
    found = shadowed(source, ("x", "y", 300), {"x": X, "y": Y})
    exact = X.astype(np.float64).reshape(300, 32).sum(axis=0)
    assert np.abs(found.own / exact - 1).max() <= 2.0**-23, "it is as good as a float gets"
    assert max(line.largest for line in found.lines.values()) > 2.0**20, "and the term is all error"
    assert all(line.reaching < 4 for line in found.lines.values())


def test_where_the_term_is_what_is_wanted_it_does() -> None:
    """The same numbers, stored: then their error is the result's."""
    found = shadowed(KAHAN.replace("y[t] = sum", "y[t] = lost"), ("x", "y", 300), {"x": X, "y": Y})
    assert max(line.reaching for line in found.lines.values()) > 2.0**20


def test_a_loss_after_a_compensated_sum_is_named_alone() -> None:
    last = "float shifted = sum + 1.0e6f;\n    y[t] = shifted - 1.0e6f"
    found = shadowed(KAHAN.replace("y[t] = sum", last), ("x", "y", 300), {"x": X, "y": Y})
    (line,) = [line for line in found.lines.values() if line.reaching >= 4 and line.reaching >= 2 * line.brought]
    assert line.line not in (5, 6, 7) and line.results == 32, "once a thread, behind the loop"
