"""What compute-sanitizer says decides, unless it says the same of the original. Its reports are the test's own."""

import pytest
from attrs import define, evolve, field

from agent.evaluation.gates import gates
from agent.evaluation.gates.sanitizer import sanitizer
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.trial import Ruling, Trial
from agent.execution.device import Fault, Request, Where
from agent.execution.sanitizing import TOOLS, Sanitized
from agent.workload.program import Program
from tests.evaluation.kernels import original, rewrite, setting

TEXT = """
// cuda-lsp: workload
//   size     n = 5000
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   twice<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
RACE = Fault("shared-memory race", "twice", Where("test.cu", 9, (0, 0, 0), (1, 0, 0)), "a race")
STRAY = Fault("out-of-bounds read", "twice", Where("test.cu", 9, (0, 0, 0), (1, 0, 0)), "1 byte past the end")


@define
class Card:
    """Says of the original and of the rewrite what the test wants."""

    original: dict[str, Sanitized] = field(factory=dict)
    candidate: dict[str, Sanitized] = field(factory=dict)
    first: object = None
    asked: list[tuple[bool, str]] = field(factory=list)
    name: str = "Test card"
    emulated: bool = False

    def sanitize(self, request: Request, tool: str) -> Sanitized:
        mine = request.build is self.first
        self.asked.append((mine, tool))
        assert not request.outputs and {image.name for image in request.images} == {"x", "y"}
        return (self.original if mine else self.candidate).get(tool, Sanitized("ok"))


@pytest.fixture(scope="module")
def side() -> tuple[Prepared, Program]:
    program, workload = original(TEXT)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    return found, program


def ruling(side: tuple[Prepared, Program], card: Card, depth: str = "full") -> Ruling:
    prepared, program = side
    trial = Trial(prepared, rewrite(TEXT.replace("2.0f * x[i]", "x[i] + x[i]"), program.plan), False, "plan")
    by_name = {gate.name: gate for gate in gates()}
    trial = by_name["compile"].run(by_name["source"].run(trial).trial).trial
    card.first = prepared.build
    return sanitizer(evolve(trial, prepared=evolve(prepared, setting=setting(device=card, depth=depth))))


def test_nothing_found(side: tuple[Prepared, Program]) -> None:
    card = Card()
    found = ruling(side, card)
    assert found.outcome == "passed" and "memcheck, racecheck, initcheck, synccheck" in found.reason
    assert sorted(card.asked) == sorted((False, tool) for tool in TOOLS), "the original is asked only where it matters"


def test_a_report_that_the_original_lacks(side: tuple[Prepared, Program]) -> None:
    found = ruling(side, Card(candidate={"memcheck": Sanitized("ok", (STRAY,))}))
    assert (found.outcome, found.state) == ("failed", "wrong")
    assert "memcheck: out-of-bounds read in twice, line 9" in found.reason


def test_what_the_original_does_as_well(side: tuple[Prepared, Program]) -> None:
    card = Card({"racecheck": Sanitized("ok", (RACE,))}, {"racecheck": Sanitized("ok", (RACE,))})
    assert ruling(side, card).outcome == "passed"
    assert (True, "racecheck") in card.asked and (True, "memcheck") not in card.asked


def test_what_is_missing_is_listed(side: tuple[Prepared, Program]) -> None:
    none = {tool: Sanitized("unavailable", message="not installed") for tool in TOOLS}
    found = ruling(side, Card(candidate=none))
    assert found.outcome == "not applicable" and found.reason == "not installed"
    assert found.trial.not_checked[-1] == (
        "memory and races on the card (memcheck, racecheck, initcheck, synccheck): not installed"
    )
    some = {"initcheck": Sanitized("unavailable", message="died")}
    found = ruling(side, Card(candidate=some))
    assert found.outcome == "passed" and "initcheck" not in found.reason
    assert found.trial.not_checked[-1] == "memory and races on the card (initcheck): died"


def test_without_the_original_a_report_proves_nothing(side: tuple[Prepared, Program]) -> None:
    card = Card({"memcheck": Sanitized("unavailable", message="died")}, {"memcheck": Sanitized("ok", (STRAY,))})
    found = ruling(side, card)
    assert found.outcome == "passed" and "of the original it gave no report" in found.trial.not_checked[-1]


def test_cancelled_and_screens(side: tuple[Prepared, Program]) -> None:
    assert ruling(side, Card(candidate={"memcheck": Sanitized("cancelled")})).outcome == "undecided"
    card = Card()
    assert ruling(side, card, "screen").outcome == "not applicable" and not card.asked
