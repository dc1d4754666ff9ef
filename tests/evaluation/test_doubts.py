"""Whether a loss of precision is luck: the rule against its own arithmetic, and what it makes of whole verdicts."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from attrs import evolve

from agent.evaluation.comparators import Comparison, Errors
from agent.evaluation.comparators.base import LESS, SAME, WRONG
from agent.evaluation.comparators.numeric import FACTOR
from agent.evaluation.doubts import (
    BEYOND,
    LUCK,
    MOST,
    OFTEN,
    OPEN,
    RARE,
    ROW,
    Doubt,
    eased,
    further,
    gathered,
    gross,
    settled,
)
from agent.evaluation.gates import gates
from agent.evaluation.gates import numerics as gate
from agent.evaluation.gates.numerics import numerics
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.runs import case
from agent.evaluation.trial import REGISTERED, Trial
from tests.evaluation.kernels import original, rewrite, setting

ULP = 2.0**-23
COARSER = 2.0**13
HONEST = 2.0
"""A rewrite is honest whose errors spread at most so many times as widely as the original's."""

A_VERDICT = 50 * 2
"""Comparisons of a full verdict, each by its largest error and its root mean square."""


def run(candidate: float, own: float, scale: float = 1.0, exact: bool = False) -> Comparison:
    """One output of one run; ``own`` is the original's error there."""
    units = 2 * ULP
    limit = 0.0 if exact else FACTOR * own + units
    grade = SAME if candidate <= limit else LESS if candidate <= COARSER * (FACTOR * own + units) else WRONG
    errors = Errors(
        candidate=candidate,
        original=own,
        candidate_rms=candidate,
        original_rms=own,
        limit=limit,
        limit_rms=limit,
        scale=scale,
        own=own,
        own_rms=own,
        units=units,
        coarser=COARSER,
    )
    return Comparison("y", grade, "y[0] is off", 0, errors)


def decided(runs: Iterator[Comparison]) -> tuple[str, int]:
    """What becomes of a doubt that the first run raises, and after how many runs."""
    first = next(runs).errors
    assert first is not None
    more: list[Comparison] = []
    for item in runs:
        more.append(item)
        found = settled(first, more)
        if found.state != OPEN or len(more) == MOST:
            return found.state, 1 + len(more)
    raise AssertionError("too few runs")


def draws(source: np.random.Generator, ratio: float, lanes: int, units: float) -> Iterator[Comparison]:
    """The largest errors of ``lanes`` independent values; the original's spread is ``units`` in the last place."""
    while True:
        mine, theirs = np.abs(source.normal(size=(2, lanes))).max(axis=1)
        yield run(ratio * mine * units * ULP, theirs * units * ULP)


class TestTheArithmeticOfTheDocstring:
    def test_the_first_reason_is_seldom_wrong(self) -> None:
        edges = np.linspace(0.0, 10.0, 2001)
        below = np.array([math.erf(edge / math.sqrt(2)) for edge in edges])
        density, middle = np.diff(below), (edges[1:] + edges[:-1]) / 2
        chance = 0.0
        for count in range(1, MOST + 2):
            known = HONEST * middle / (FACTOR * RARE ** (-1 / count))  # all of the original's errors are below this
            chance += float(density @ np.array([math.erf(edge / math.sqrt(2)) ** count for edge in known]))
        assert 1e-9 < chance < 6e-8
        assert A_VERDICT * (chance + self.row()) < 1e-5

    @staticmethod
    def row() -> float:
        """The second reason: each of the first runs, or most of all."""
        once = 2 / math.pi * math.atan(HONEST / FACTOR)
        often = (
            math.comb(MOST, count) * once**count * (1 - once) ** (MOST - count) for count in range(OFTEN, MOST + 1)
        )
        return once**ROW + sum(often)

    def test_a_row_is_seldom_luck(self) -> None:
        source = np.random.default_rng(7)
        mine, theirs = np.abs(source.normal(size=(2, 200_000)))
        assert np.mean(HONEST * mine > FACTOR * theirs) == pytest.approx(2 / math.pi * math.atan(0.5), abs=0.005)
        assert self.row() < 6e-9

    def test_of_many_honest_doubts_none_is_confirmed(self) -> None:
        source = np.random.default_rng(11)
        for lanes in (1, 3):
            found = [decided(draws(source, HONEST, lanes, 1000.0))[0] for _ in range(3000)]
            assert BEYOND not in found


class TestWhatIsLessPrecise:
    @pytest.mark.parametrize("lanes", [64, 4096])
    def test_five_times_the_error_again_and_again(self, lanes: int) -> None:
        source = np.random.default_rng(3)
        found = [decided(draws(source, 12.0, lanes, 1000.0)) for _ in range(200)]
        assert all(state == BEYOND and count <= 1 + ROW for state, count in found)

    @pytest.mark.parametrize("lanes", [1, 3, 1000])
    def test_a_thousand_times_after_few_runs(self, lanes: int) -> None:
        source = np.random.default_rng(5)
        found = [decided(draws(source, 4000.0, lanes, 1.0)) for _ in range(200)]
        caught = [count for state, count in found if state == BEYOND]
        assert np.median(caught) <= 5
        assert len(caught) >= (195 if lanes > 1 else 150)  # of one value even a coarse one may be right

    def test_most_of_many_runs_are_enough(self) -> None:
        """An error that is beyond the original's budget in five runs of six, and never far."""
        first = run(5 * ULP, ULP / 2).errors
        assert first is not None
        runs = [run((3 if turn % 6 == 0 else 5) * ULP, ULP / 2) for turn in range(MOST)]
        assert [settled(first, runs[:count]).state for count in (16, 31, MOST)] == [OPEN, OPEN, BEYOND]

    def test_once_is_enough_where_the_original_is_known(self) -> None:
        """A loss that shows in one run only (some branch on a value) is none of the original's luck."""
        once = run(1e-4, ULP)
        assert once.errors is not None
        assert settled(once.errors, [run(0.0, ULP * (1 + turn % 3)) for turn in range(MOST)]).state == BEYOND


class TestWhatIsLuck:
    def test_an_original_that_errs_as_much_elsewhere(self) -> None:
        first = run(30 * ULP, ULP).errors
        assert first is not None
        assert settled(first, [run(0.0, 2 * ULP)]).state == OPEN
        found = settled(first, [run(0.0, 2 * ULP), run(0.0, 7 * ULP)])
        assert (found.state, found.own, found.runs) == (LUCK, 7 * ULP, 3)
        assert found.limit == 30 * ULP  # 4 * 7 + 2

    def test_errors_count_in_the_larger_of_two_scales(self) -> None:
        first = run(30 * ULP, ULP, scale=1.0).errors
        assert first is not None
        assert settled(first, [run(0.0, ULP, scale=7.0)]).own == 7 * ULP
        assert settled(first, [run(0.0, ULP, scale=0.1)]).own == ULP

    def test_results_that_are_right_by_chance_prove_little(self) -> None:
        """An original without any error in so many runs may still round once."""
        first = run(5 * ULP, 0.0).errors
        assert first is not None
        assert settled(first, [run(0.0, 0.0)] * MOST).state == OPEN
        assert settled(first, [run(0.0, ULP)]).state == LUCK

    def test_exact_is_asked_for_only_where_the_original_always_is(self) -> None:
        first = run(ULP, 0.0, exact=True).errors
        assert first is not None
        always = [run(0.0, 0.0, exact=True)] * MOST
        assert settled(first, always[:-1]).state == OPEN
        assert settled(first, always).state == BEYOND
        assert settled(first, [*always[:-1], run(0.0, ULP)]).state == LUCK


def test_one_doubt_of_a_kind_and_the_cheap_ones_first() -> None:
    cheap, dear = case({"n": 8}, "normal", 1), case({"n": 800}, "normal", 2)
    small, large = run(30 * ULP, ULP), run(90 * ULP, ULP)
    raised = [Doubt(dear, large, 10_000), Doubt(cheap, small, 100), Doubt(evolve(cheap, seed=3), large, 100)]
    assert [(item.case.seed, item.comparison) for item in gathered(raised)] == [(3, large), (2, large)]


ROWSUM = """
// cuda-lsp: workload
//   size     rows = 3, cols = 300
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   rowsum<<<rows, 32>>>(x, y, rows, cols)
__global__ void rowsum(const float* x, float* y, int rows, int cols) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) sum += x[blockIdx.x * cols + i];
    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
LOOP = "for (int i = threadIdx.x; i < cols; i += 32) sum += x[blockIdx.x * cols + i];"
BACKWARDS = "for (int i = cols - 1 - threadIdx.x; i >= 0; i -= 32) sum += x[blockIdx.x * cols + i];"


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    program, workload = original(ROWSUM)
    found = prepare(program, workload, setting(depth="screen"))
    assert isinstance(found, Prepared)
    return found


@pytest.fixture(scope="module")
def backwards(prepared: Prepared) -> Trial:
    """An honest rewrite that went through the gates before this one."""
    trial = Trial(prepared, rewrite(ROWSUM.replace(LOOP, BACKWARDS), prepared.original.plan), False, "plan")
    for item in gates():
        if item.order < REGISTERED["numerics"].order:
            ruling = item.run(trial)
            assert ruling.outcome not in ("failed", "undecided"), ruling.reason
            trial = ruling.trial
    return evolve(trial, comparisons=(*trial.comparisons, *(item.comparison for item in trial.doubts)), doubts=())


def doubting(trial: Trial, candidate: float, own: float) -> Trial:
    """With a doubt at the base size."""
    return evolve(trial, doubts=(Doubt(case(trial.prepared.contract.base, "normal", 5), run(candidate, own), 1),))


class TestTheGate:
    def test_luck_passes_and_says_so(self, backwards: Trial) -> None:
        found = numerics(doubting(backwards, 4 * ULP, 0.0))
        assert found.outcome == "passed"
        assert "the original was lucky in 1 of these runs" in found.reason
        assert all(item.grade == SAME for item in found.trial.comparisons) and not found.trial.doubts
        errors = found.trial.comparisons[-1].errors
        assert errors is not None and errors.candidate <= errors.limit

    def test_what_the_original_never_errs_by_is_less_precise(self, backwards: Trial) -> None:
        found = numerics(doubting(backwards, 1e-3, 0.0))
        assert (found.outcome, found.state) == ("failed", "less")
        assert "y[0] is off; the original errs by up to" in found.reason
        assert [item.grade for item in found.trial.comparisons].count(LESS) == 1

    def test_where_it_is_allowed_it_is_said(self, backwards: Trial) -> None:
        found = numerics(doubting(evolve(backwards, allow_lossy=True), 1e-3, 0.0))
        assert found.outcome == "passed" and "less precise, as allowed" in found.reason

    def test_without_time_a_doubt_stands(self, backwards: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(gate.SECONDS, "screen", -1.0)
        found = numerics(doubting(backwards, 1e-4, 0.0))
        assert (found.outcome, found.state) == ("failed", "less")
        assert "too few runs to call it luck" in found.reason

    def test_what_is_wrong_on_further_contents_is_wrong(
        self, backwards: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad = Comparison("y", "wrong", "y[1] is 0, expected 1")
        monkeypatch.setattr(gate, "further", lambda *given: iter([[bad]]))
        found = numerics(doubting(backwards, 1e-4, 0.0))
        assert (found.outcome, found.state) == ("failed", "wrong")
        assert "y[1] is 0, expected 1" in found.reason

    def test_further_contents_are_the_same_for_whoever_repeats_it(self, backwards: Trial) -> None:
        build, doubt = backwards.build, doubting(backwards, 1e-4, 0.0).doubts[0]
        assert build is not None

        def errors() -> list[Errors | None]:
            found = further(backwards.prepared.bench, build, backwards.candidate, doubt)
            return [next(found)[0].errors for _ in range(3)]

        seen = errors()
        assert seen == errors()
        assert len({item.scale for item in seen if item is not None}) == 3


class TestWrongByChance:
    """Of few values that cancel, half precision leaves little; beside what they are elsewhere it is no bug."""

    def test_beside_the_largest_scale(self) -> None:
        cancelled = evolve(run(0.19, 1e-5, scale=0.05), grade=WRONG)
        assert gross(cancelled, [run(0.0, 1e-7, scale=0.1)])
        assert not gross(cancelled, [run(0.0, 1e-7, scale=0.1), run(0.0, 1e-7, scale=20.0)])
        assert gross(Comparison("y", WRONG, "y[0] is NaN"), [run(0.0, 1e-7, scale=1e9)])
        assert not gross(run(1e-3, 1e-7), [])

    @pytest.mark.parametrize(
        ("error", "grade"), [(0.5, WRONG), (3e-3, LESS)], ids=["beyond any rounding", "as half precision errs"]
    )
    def test_the_originals_error_elsewhere(self, backwards: Trial, error: float, grade: str) -> None:
        """Of rows that sum to some 20 the original errs by a unit or so; here it happened to be exact."""
        assert backwards.build is not None
        doubt = Doubt(case(backwards.prepared.contract.base, "normal", 5), run(error, 0.0, scale=20.0), 1)
        assert doubt.comparison.grade == WRONG
        assert eased(backwards.prepared.bench, backwards.build, backwards.candidate, doubt).grade == grade


LARGE = """
// cuda-lsp: workload
//   size     n = 3000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.5f * x[i] + 0.25f;
}
"""


def test_a_loss_that_only_sampled_blocks_show() -> None:
    program, workload = original(LARGE)
    ready = prepare(program, workload, setting(depth="screen"))
    assert isinstance(ready, Prepared)
    text = LARGE.replace("// cuda-lsp: workload", "#include <cuda_fp16.h>\n// cuda-lsp: workload", 1).replace(
        "y[i] = 1.5f * x[i] + 0.25f;",
        "{ float v = 1.5f * x[i] + 0.25f; y[i] = gridDim.x / 64 * 64 > 10000 ? __half2float(__float2half(v)) : v; }",
    )
    found = judge(ready, rewrite(text, program.plan))
    assert (found.correctness.state, found.precision.state) == ("right", "less"), found.gates[-1]
    assert "such runs" in found.gates[-1].reason
    assert not found.shown


def test_a_tolerance_of_the_users_is_no_matter_of_luck() -> None:
    text = ROWSUM.replace("(x, y, rows, cols)\n__", "(x, y, rows, cols)\n//   compare  y numeric 1e-6\n__", 1)
    program, workload = original(text)
    ready = prepare(program, workload, setting(depth="screen"))
    assert isinstance(ready, Prepared)
    found = judge(ready, rewrite(text.replace("y[blockIdx.x] = sum;", "y[blockIdx.x] = 1.0001f * sum;"), program.plan))
    assert found.precision.state == "less"
    assert "such runs" not in found.gates[-1].reason
