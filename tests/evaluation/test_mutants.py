"""Every mutant of an ordinary output must die; where the truth itself looks like the mutant, it is none."""

import numpy as np
import pytest
from attrs import evolve

from agent.evaluation.comparators import Expected
from agent.evaluation.contracts.mutants import BLIND, EQUAL, KILLED, MAKERS, SURVIVED, fate, mutants


def raw(values: object, dtype: str = "float32") -> "np.ndarray":
    return np.ascontiguousarray(np.asarray(values, dtype)).view(np.uint8)


def softmax_row(count: int = 257) -> Expected:
    """A row of a softmax in float against float64: outputs around 1/257, far below the usual fixed tolerances."""
    x = np.random.default_rng(3).normal(size=count).astype(np.float32)
    exact = np.exp(x.astype(np.float64) - x.max())
    exact /= exact.sum()
    low = np.exp(x - x.max(), dtype=np.float32)
    low /= low.sum(dtype=np.float32)
    return Expected("y", "f32", raw(low), np.ones(count, bool), oracle=exact, inputs={"x": ("f32", raw(x))}, prior=0xCB)


def counts() -> Expected:
    values = np.random.default_rng(4).integers(2, 900, 64)
    return Expected(
        "h",
        "i32",
        raw(values, "int32"),
        np.ones(64, bool),
        "exact",
        inputs={"x": ("i32", raw(values + 1, "int32"))},
        prior=0xCB,
    )


ALL = {
    "zeros",
    "ones",
    "constant",
    "copy of x",
    "stale output",
    "last tile missing",
    "one element off",
    "NaN",
    "half precision",
}


def test_nine_mutants_exist() -> None:
    assert set(MAKERS) == ALL - {"copy of x"} | {"copy of an input"}


@pytest.mark.parametrize("truth", [softmax_row(), counts()], ids=["float", "integer"])
def test_all_die(truth: Expected) -> None:
    fates = {mutant.name: fate(truth, mutant) for mutant in mutants(truth)}
    assert set(fates.values()) == {KILLED}, fates
    assert set(fates) == (ALL if truth.dtype == "f32" else ALL - {"NaN", "half precision"})


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_comparator_that_accepts_anything_is_found_out(name: str) -> None:
    """The self-test has teeth: with a tolerance as wide as the moon every finite mutant survives, but for the one that
    is made to lie twice that far off, and the one that such a tolerance asks for."""
    truth = evolve(softmax_row(), tolerance=1e10)
    fates = [fate(truth, mutant) for mutant in mutants(truth) if mutant.name == name]
    allowed = {"NaN": KILLED, "one element off": KILLED, "half precision": BLIND}
    assert fates == [allowed.get(name, SURVIVED)]


def test_a_truth_of_zeros_makes_zeros_no_mutant() -> None:
    truth = Expected("y", "f32", raw(np.zeros(64)), np.ones(64, bool), oracle=np.zeros(64), prior=0xCB)
    fates = {mutant.name: fate(truth, mutant) for mutant in mutants(truth)}
    assert fates["zeros"] == fates["constant"] == fates["last tile missing"] == EQUAL
    assert fates["ones"] == fates["stale output"] == fates["NaN"] == KILLED


def test_a_copy_kernel_makes_the_input_no_mutant() -> None:
    values = np.random.default_rng(5).normal(size=64).astype(np.float32)
    truth = Expected(
        "y", "f32", raw(values), np.ones(64, bool), oracle=values.astype(float), inputs={"x": ("f32", raw(values))}
    )
    assert [fate(truth, mutant) for mutant in mutants(truth) if mutant.name == "copy of x"] == [EQUAL]


def test_an_output_nobody_wrote_has_no_mutants() -> None:
    truth = Expected("y", "f32", raw(np.ones(8)), np.zeros(8, bool))
    assert {fate(truth, mutant) for mutant in mutants(truth)} == {EQUAL}
