"""Intervals and words from synthetic times of known distributions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.evaluation.measures.statistics import EFFECT, Interval, blur, decide, interval, overall, seconds
from agent.execution.timing import Block

MS = 1e-3


def blocks(
    generator: np.random.Generator, count: int, old: float, new: float, noise: float, drift: float = 0.0
) -> list[Block]:
    """Log-normal times around two medians, in the order old, new, new, old, slower with each call by ``drift``."""
    found: list[Block] = []
    for number in range(count):
        slow = [1 + drift * (4 * number + place) for place in range(4)]
        made = [
            time * slow[place] * math.exp(noise * generator.standard_normal())
            for place, time in enumerate((old, new, new, old))
        ]
        found.append((made[0], made[3], made[1], made[2]))
    return found


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.05, 1.3, 2.0, 5.0])
@pytest.mark.parametrize("processes", [1, 3])
def test_a_known_ratio_lies_inside_nearly_always(ratio: float, processes: int) -> None:
    """Of 60 measurements with three per cent of noise a call, at least 52 hold the truth (95 % of 60 are 57; that fewer
    than 52 do has a chance below 1 in 80 at a true coverage of 95 %, and medians of ten blocks cover a little less)."""
    generator = np.random.default_rng(1)
    hits = 0
    for _ in range(60):
        found = interval([blocks(generator, 12, ratio * MS, MS, 0.03) for _ in range(processes)])
        hits += found.low <= ratio <= found.high
    assert hits >= 50


def test_equal_code_is_never_faster() -> None:
    generator = np.random.default_rng(2)
    for noise in (0.001, 0.01, 0.03):
        for _ in range(200):
            found = interval([blocks(generator, 10, MS, MS, noise)])
            control = interval([blocks(generator, 10, MS, MS, noise)])
            assert decide(found, control) != "faster"


def test_a_true_effect_of_five_per_cent_is_found() -> None:
    generator = np.random.default_rng(3)
    words = [
        decide(
            interval([blocks(generator, 16, 1.05 * MS, MS, 0.005) for _ in range(3)]),
            interval([blocks(generator, 16, MS, MS, 0.005)]),
        )
        for _ in range(50)
    ]
    assert words.count("faster") >= 48


def test_a_drift_of_the_clock_favours_nobody() -> None:
    """Each call is a per cent slower than the one before: compared in plain turns the second would lose."""
    found = interval([blocks(np.random.default_rng(4), 10, MS, MS, 0.0, drift=0.01)])
    assert found.ratio == pytest.approx(1.0, abs=1e-9)


def test_one_wild_block_moves_nothing() -> None:
    steady = blocks(np.random.default_rng(5), 11, 2 * MS, MS, 0.001)
    wild = [*steady[:-1], (2 * MS, 2 * MS, 50 * MS, MS)]
    assert interval([wild]).ratio == pytest.approx(2.0, rel=0.01)


def test_processes_that_disagree_widen_the_interval() -> None:
    generator = np.random.default_rng(6)
    alike = interval([blocks(generator, 10, MS, MS, 0.002) for _ in range(3)])
    apart = interval([blocks(generator, 10, factor * MS, MS, 0.002) for factor in (0.9, 1.0, 1.1)])
    assert apart.half_width > 5 * alike.half_width
    assert apart.low < 0.95 and apart.high > 1.05


def test_what_the_clock_cannot_tell_is_in_the_interval() -> None:
    """Two calls of 10 us each side, half a microsecond each: 2.5 % each side; over ten sets a tenth of that."""
    same = [[(10e-6, 10e-6, 10e-6, 10e-6)] * 8]
    assert blur(same, 1) == pytest.approx(0.05)
    assert blur(same, 10) == pytest.approx(0.005)
    found = interval(same)
    assert (found.low, found.high) == pytest.approx((math.exp(-0.05), math.exp(0.05)))


def test_the_same_samples_give_the_same_interval() -> None:
    made = [blocks(np.random.default_rng(7), 9, MS, MS, 0.02)]
    assert interval(made) == interval(made)


@given(st.lists(st.tuples(*[st.floats(1e-6, 1.0)] * 4), min_size=1, max_size=6), st.floats(0.1, 10.0))
@settings(max_examples=60, deadline=None)
def test_the_unit_of_time_does_not_matter(made: list[Block], scale: float) -> None:
    scaled = [(a * scale, b * scale, c * scale, d * scale) for a, b, c, d in made]
    one, other = interval([made], sets=10**6), interval([scaled], sets=10**6)
    assert other.ratio == pytest.approx(one.ratio, rel=1e-9)
    assert one.low <= one.ratio <= one.high


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="no blocks"):
        interval([])
    with pytest.raises(ValueError, match="no blocks"):
        interval([[(1.0, 1.0, 1.0, 1.0)], []])


CONTROL = Interval(1.0, 0.995, 1.005)


@pytest.mark.parametrize(
    ("found", "control", "word"),
    [
        (Interval(1.84, 1.82, 1.86), CONTROL, "faster"),
        (Interval(1.03, 1.021, 1.04), CONTROL, "faster"),
        (Interval(1.03, EFFECT, 1.04), CONTROL, "same"),
        (Interval(1.30, 0.99, 1.60), CONTROL, "same"),
        (Interval(1.01, 1.008, 1.012), CONTROL, "same"),
        (Interval(0.90, 0.88, 0.92), CONTROL, "slower"),
        (Interval(0.99, 0.985, 0.995), CONTROL, "same"),
        # A card on which the original differs from itself by a tenth.
        (Interval(1.08, 1.07, 1.09), Interval(1.0, 0.97, 1.10), "same"),
        (Interval(1.08, 1.07, 1.09), Interval(1.0, 0.90, 1.01), "same"),
        (Interval(0.93, 0.92, 0.94), Interval(1.0, 0.97, 1.10), "same"),
        (Interval(1.15, 1.12, 1.2), Interval(1.0, 0.97, 1.10), "faster"),
        (Interval(1.05, 1.04, 1.06), None, "faster"),
    ],
)
def test_a_word_for_an_interval(found: Interval, control: Interval | None, word: str) -> None:
    assert decide(found, control) == word


@pytest.mark.parametrize(
    ("declared", "others", "state"),
    [
        ("faster", [], "faster"),
        ("faster", ["faster", "same"], "faster"),
        ("faster", ["slower"], "mixed"),
        ("same", ["faster", "slower"], "mixed"),
        ("slower", ["faster"], "mixed"),
        ("same", ["faster"], "not faster"),
        ("same", [], "not faster"),
        ("slower", ["same"], "not faster"),
    ],
)
def test_a_word_for_all_sizes(declared: str, others: list[str], state: str) -> None:
    assert overall(declared, others) == state


def test_median_times_of_each_side() -> None:
    made = [[(1.0, 3.0, 10.0, 30.0), (2.0, 2.0, 20.0, 20.0)]]
    assert (seconds(made, 0), seconds(made, 1)) == (2.0, 20.0)
