"""The same gates on a device that is no emulator: it tells nothing of what was written and counts nothing."""

from collections.abc import Iterator

import pytest
from attrs import evolve, frozen

from agent.evaluation.estimates.estimate import headroom
from agent.evaluation.gates.correctness import not_ok
from agent.evaluation.judge import judge
from agent.evaluation.oracles.truth import Truth, patient
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.trial import Trial
from agent.execution.device import Answer, Request
from agent.execution.emulator import Emulator
from agent.workload.program import Program
from tests.evaluation.kernels import original, rewrite, setting

SUMS = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   pairs<<<(n / 2 + 255) / 256, 256>>>(x, y, n)
__global__ void pairs(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (2 * i + 1 < n) y[i] = x[2 * i] + x[2 * i + 1];
}
"""


@frozen
class Card:
    """Runs everything whole, as a card does, and gives back bytes alone."""

    name: str = "Test card"
    emulated: bool = False

    def run(self, request: Request) -> Answer:
        answer = Emulator().run(evolve(request, blocks=None, checks=frozenset(), count=False))
        return evolve(answer, written=None, counters=())


@pytest.fixture(scope="module")
def side() -> Iterator[tuple[Prepared, Program]]:
    program, workload = original(SUMS)
    prepared = prepare(program, workload, setting(device=Card()))
    assert isinstance(prepared, Prepared)
    yield prepared, program


def test_right_and_no_word_on_speed(side: tuple[Prepared, Program]) -> None:
    prepared, program = side
    found = judge(prepared, rewrite(SUMS, program.plan))
    assert (found.correctness.state, found.precision.state) == ("right", "same")
    assert found.correctness.device == "Test card"
    assert "n=20000" in found.correctness.sizes
    assert found.correctness.sampled == ""
    assert (found.speed.state, found.speed.low, found.speed.high) == ("timing not verified", None, None)


def test_headroom_is_counted_in_the_emulator_all_the_same(side: tuple[Prepared, Program]) -> None:
    room = headroom(side[0])
    assert room.ratio is not None
    assert room.needed == pytest.approx(4 * 20000 + 4 * 10000, rel=0.03)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x[2 * i + 1];", "x[2 * i];", "expected"),
        ("if (2 * i + 1 < n) y[i]", "if (i < n) y[i] = 0.0f;\n    if (2 * i + 1 < n) y[i]", "leaves alone"),
        ("if (2 * i + 1 < n) y[i]", "if (2 * i + 3 < n) y[i]", "unwritten"),
        ("y[i] = x", "((float*)x)[2 * i] = x[0], y[i] = x", "a read-only input"),
        ("y[i] = x[2 * i]", "y[i] = n > 10000 ? 0.0f : x[2 * i]", "expected"),
    ],
    ids=["wrong", "writes beyond the written set", "tail missing", "writes its input", "branch on the size"],
)
def test_wrong(side: tuple[Prepared, Program], old: str, new: str, words: str) -> None:
    prepared, program = side
    assert old in SUMS
    found = judge(prepared, rewrite(SUMS.replace(old, new), program.plan))
    assert found.correctness.state == "wrong"
    assert found.gates[-1].gate == "correctness" and words in found.gates[-1].reason


def test_a_run_that_does_not_end_is_held_against_the_time_of_the_original(side: tuple[Prepared, Program]) -> None:
    prepared, program = side
    known = prepared.cache.truths[prepared.cases[0]]
    assert isinstance(known, Truth)
    assert patient(prepared.setting, evolve(known, answer=evolve(known.answer, seconds=0.001))).seconds == 20.0
    assert patient(prepared.setting, evolve(known, answer=evolve(known.answer, seconds=0.2))).seconds == 40.0
    late = Answer("timeout", {}, None, (), (), "the run did not end within 20 s", 20.0, complete=False)
    ruling = not_ok(
        Trial(prepared, program, False, "plan"), late, "n=4", evolve(known, answer=evolve(known.answer, seconds=0.001))
    )
    assert ruling.outcome == "undecided" and "the original ends after 0.001 s" in ruling.reason
