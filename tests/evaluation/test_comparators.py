"""Golden errors come from exact arithmetic on paper: powers of two, so that every rounding is known."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.evaluation.comparators import COMPARATORS, Expected, compare
from agent.evaluation.comparators.distribution import CRITICAL
from agent.evaluation.values import from_floats, lane_mask, to_floats

ULP = 2.0**-23


def raw(values: object, dtype: str = "float32") -> "np.ndarray":
    return np.ascontiguousarray(np.asarray(values, dtype)).view(np.uint8)


def expected(values: list[float], **more: object) -> Expected:
    fields: dict[str, object] = {
        "name": "y",
        "dtype": "f32",
        "original": raw(values),
        "written": np.ones(len(values), bool),
    }
    return Expected(**(fields | more))  # type: ignore[arg-type]


def test_five_ways_are_registered() -> None:
    assert set(COMPARATORS) == {"exact", "numeric", "multiset", "argmax", "distribution"}


class TestNumeric:
    def test_equal_is_same_with_no_error(self) -> None:
        found = compare(expected([1.0, 2.0], oracle=np.array([1.0, 2.0])), raw([1.0, 2.0]))
        assert (found.grade, found.errors.candidate) == ("same", 0.0)

    def test_two_units_of_the_scale_pass_and_three_do_not(self) -> None:
        truth = expected([1.0, 0.5], oracle=np.array([1.0, 0.5]))
        assert compare(truth, raw([1.0 + 2 * ULP, 0.5])).grade == "same"
        assert compare(truth, raw([1.0 + 3 * ULP, 0.5])).grade == "less"

    def test_the_budget_is_four_times_the_originals_error(self) -> None:
        # original off by 8 ulp: the limit is 4 * 8 + 2 = 34 ulp
        truth = expected([1.0 + 8 * ULP], oracle=np.array([1.0]))
        assert compare(truth, raw([1.0 + 34 * ULP])).grade == "same"
        assert compare(truth, raw([1.0 + 35 * ULP])).grade == "less"
        assert compare(truth, raw([1.0])).errors.candidate == 0.0

    def test_the_spread_widens_it(self) -> None:
        truth = expected([1.0], oracle=np.array([1.0]), spread=16 * ULP, spread_rms=16 * ULP)
        assert compare(truth, raw([1.0 + 66 * ULP])).grade == "same"
        assert compare(truth, raw([1.0 + 67 * ULP])).grade == "less"

    def test_the_root_mean_square_catches_many_small_errors(self) -> None:
        values = [1024.0] + [1.0] * 999
        noisy = np.array(values)
        noisy[1:] += 2.0**-14  # half a unit of the scale: far inside the limit on the largest error
        found = compare(expected(values, oracle=np.array(values)), raw(noisy))
        assert found.errors.candidate <= found.errors.limit
        # rms error 2^-14 * sqrt(999/1000), rms of the output sqrt((2^20 + 999) / 1000)
        assert found.errors.candidate_rms == pytest.approx(
            2.0**-14 * 0.999**0.5 / ((2**20 + 999) / 1000) ** 0.5, rel=1e-12
        )
        assert found.grade == "less"

    def test_half_precision_is_less_and_a_lost_part_is_wrong(self) -> None:
        values = [1.0 / 3.0, 2.0 / 3.0]
        exact = np.array(values)
        assert compare(expected(values, oracle=exact), raw(exact.astype(np.float16))).grade == "less"
        assert compare(expected(values, oracle=exact), raw(exact * 0.9)).grade == "wrong"

    def test_zeros_do_not_pass_however_small_the_output(self) -> None:
        values = [3.0e-6, 2.0e-6]
        assert compare(expected(values, oracle=np.array(values)), raw([0.0, 0.0])).grade == "wrong"

    def test_an_all_zero_truth_demands_zero(self) -> None:
        truth = expected([0.0, 0.0], oracle=np.array([0.0, 0.0]))
        assert compare(truth, raw([0.0, -0.0])).grade == "same"
        assert compare(truth, raw([0.0, 1e-20])).grade == "wrong"

    @pytest.mark.parametrize("oracle", [None, np.array([1.0, 2.0])])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_nan_and_infinity_are_no_wildcards(self, oracle: "np.ndarray | None", bad: float) -> None:
        found = compare(expected([1.0, 2.0], oracle=oracle), raw([1.0, bad]))
        assert (found.grade, found.index) == ("wrong", 1)

    def test_nan_where_the_truth_is_nan(self) -> None:
        truth = expected([np.nan, 2.0, np.inf], oracle=np.array([np.nan, 2.0, np.inf]))
        assert compare(truth, raw([np.nan, 2.0, np.inf])).grade == "same"
        assert compare(truth, raw([0.0, 2.0, np.inf])).grade == "wrong"
        assert compare(truth, raw([np.nan, 2.0, -np.inf])).grade == "wrong"

    def test_finite_where_the_original_overflowed(self) -> None:
        truth = expected([np.inf, 1.0], oracle=np.array([2.0**100, 1.0]))
        assert compare(truth, raw([2.0**100, 1.0])).grade == "same"
        assert compare(truth, raw([2.0**99, 1.0])).grade == "wrong"

    def test_lanes_that_branched_apart_follow_the_original(self) -> None:
        # float decided otherwise than float64 in one lane of 200: either branch is right, a third answer is not
        values, exact = np.full(200, 1.0), np.full(200, 1.0)
        values[7], exact[7] = 0.25, 0.75
        truth = expected(list(values), oracle=exact)
        assert compare(truth, raw(values)).errors.apart == 1
        assert compare(truth, raw(values)).grade == "same"
        assert compare(truth, raw(exact)).grade == "same"
        third = values.copy()
        third[7] = 0.5
        assert compare(truth, raw(third)).grade == "wrong"

    def test_exact_arithmetic_allows_nothing(self) -> None:
        truth = expected([3.0], oracle=np.array([3.0]), exact=True)
        assert compare(truth, raw([3.0])).grade == "same"
        assert compare(truth, raw([np.nextafter(np.float32(3), np.float32(4))])).grade == "less"

    def test_the_users_tolerance_replaces_the_budget(self) -> None:
        truth = expected([1.0], oracle=np.array([1.0]), tolerance=1e-2)
        assert compare(truth, raw([1.009])).grade == "same"
        assert compare(truth, raw([1.011])).grade == "wrong"

    def test_without_an_oracle_the_original_is_the_measure(self) -> None:
        assert compare(expected([1.0]), raw([1.0 + 4 * ULP])).grade == "same"
        assert compare(expected([1.0]), raw([1.0 + 5 * ULP])).grade == "less"

    def test_lanes_nobody_wrote_do_not_count(self) -> None:
        truth = expected([1.0, 7.0], written=np.array([True, False]))
        assert compare(truth, raw([1.0, -3.0])).grade == "same"

    def test_denormal_outputs_have_coarser_units(self) -> None:
        smallest = 2.0**-149
        truth = expected([4 * smallest], oracle=np.array([4 * smallest]))
        assert compare(truth, raw([6 * smallest])).grade == "same"
        assert compare(truth, raw([7 * smallest])).grade != "same"

    @given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40), st.integers(0, 39), st.floats(0.2, 2.0))
    def test_one_lane_that_moves_by_much_is_always_seen(self, values: list[float], at: int, part: float) -> None:
        scale = max(map(abs, values))
        assume(scale == 0 or scale > 1e-30)  # among the denormals two units are much
        changed = np.array(values, np.float64)
        changed[at % len(values)] += part * scale + (scale == 0)
        assert compare(expected(values, oracle=np.array(values)), raw(changed)).grade == "wrong"


class TestExact:
    def test_one_bit(self) -> None:
        truth = expected([], dtype="i32", kind="exact", original=raw([5, 6], "int32"), written=np.ones(2, bool))
        assert compare(truth, raw([5, 6], "int32")).grade == "same"
        found = compare(truth, raw([5, 7], "int32"))
        assert (found.grade, found.index) == ("wrong", 1)
        assert "y[1] is 7, expected 6" in found.message


class TestMultiset:
    def test_any_order_but_no_other_value(self) -> None:
        truth = expected(
            [], dtype="u32", kind="multiset", original=raw([3, 1, 2, 2], "uint32"), written=np.ones(4, bool)
        )
        assert compare(truth, raw([2, 3, 2, 1], "uint32")).grade == "same"
        assert compare(truth, raw([2, 3, 1, 1], "uint32")).grade == "wrong"

    def test_lanes_of_a_vector_stay_together(self) -> None:
        truth = expected(
            [], dtype="u32x2", kind="multiset", original=raw([1, 2, 3, 4], "uint32"), written=np.ones(4, bool)
        )
        assert compare(truth, raw([3, 4, 1, 2], "uint32")).grade == "same"
        assert compare(truth, raw([2, 1, 3, 4], "uint32")).grade == "wrong"


class TestArgmax:
    def truth(self, picks: list[int]) -> Expected:
        x = raw([[1.0, 5.0, 5.0], [9.0, 2.0, 9.0]])
        return expected(
            [],
            dtype="i32",
            kind="argmax",
            original=raw(picks, "int32"),
            written=np.ones(2, bool),
            inputs={"x": ("f32", x)},
        )

    def test_ties_may_go_either_way(self) -> None:
        assert compare(self.truth([1, 0]), raw([2, 2], "int32")).grade == "same"

    @pytest.mark.parametrize("picks", [[0, 0], [1, 1], [1, 3], [-1, 0]])
    def test_a_smaller_value_or_no_place_at_all(self, picks: list[int]) -> None:
        assert compare(self.truth([1, 0]), raw(picks, "int32")).grade == "wrong"


class TestDistribution:
    def test_same_law_other_draws(self) -> None:
        random = np.random.default_rng(5)
        truth = expected(list(random.normal(size=4000)), kind="distribution")
        assert compare(truth, raw(random.normal(size=4000))).grade == "same"

    def test_a_verdict_of_fifty_comparisons_is_not_lost_by_chance(self) -> None:
        assert 50 * 2 * np.exp(-2 * CRITICAL**2) < 1e-5  # Smirnov 1939: how often a distance is that large
        random = np.random.default_rng(3)
        for size in (50, 700):
            for one, other in random.normal(size=(400, 2, size)):
                assert compare(expected(list(one), kind="distribution"), raw(other)).grade == "same"

    @pytest.mark.parametrize("other", ["shifted", "constant", "nan"])
    def test_other_laws(self, other: str) -> None:
        random = np.random.default_rng(5)
        truth = expected(list(random.normal(size=4000)), kind="distribution")
        draws = {"shifted": random.normal(0.2, size=4000), "constant": np.zeros(4000), "nan": np.full(4000, np.nan)}
        assert compare(truth, raw(draws[other])).grade == "wrong"


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i32", "u8"])
def test_values_survive_a_round_trip(dtype: str) -> None:
    values = np.array([0.0, 1.0, 2.0, 96.0])
    assert np.array_equal(to_floats(from_floats(values, dtype), dtype), values)


def test_bf16_rounds_to_nearest_even() -> None:
    # 1 + 2^-8 lies half way between 1 and 1 + 2^-7: even wins; 1 + 3 * 2^-8 lies half way and goes up
    got = to_floats(from_floats(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, np.nan]), "bf16"), "bf16")
    assert got[0] == 1.0
    assert got[1] == 1 + 2 * 2.0**-7
    assert np.isnan(got[2])


def test_a_lane_is_written_when_all_its_bytes_are() -> None:
    assert list(lane_mask(np.array([1, 1, 1, 1, 1, 1, 0, 1], bool), "f32")) == [True, False]


def test_unknown_kinds_do_not_pass() -> None:
    with pytest.raises(KeyError):
        compare(evolve(expected([1.0]), kind="auto"), raw([1.0]))


class TestInputsOfSixteenBits:
    """What coarse inputs do to an output is no licence beside an oracle; without one it is all that is known."""

    def test_beside_an_oracle_the_finer_spread_counts(self) -> None:
        truth = expected([1.0], oracle=np.array([1.0]), spread=2.0**-8, spread_rms=2.0**-8, fine=ULP, fine_rms=ULP)
        assert compare(truth, raw([1.0 + 5 * ULP])).grade == "same"
        assert compare(truth, raw([1.0 + 9 * ULP])).grade == "less"

    def test_without_one_the_coarse_counts(self) -> None:
        truth = expected([1.0], spread=2.0**-8, spread_rms=2.0**-8, fine=ULP, fine_rms=ULP)
        assert compare(truth, raw([1.0 + 2.0**-6])).grade == "same"
