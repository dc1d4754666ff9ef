"""The whole file through nvcc, with a compiler of the test's own: what it says decides, and only where it can."""

import pytest
from attrs import evolve

from agent.evaluation.gates import gates
from agent.evaluation.gates.compile import compile_
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.trial import Ruling, Trial
from agent.execution.compiler.result import CompileFailure, Diagnostic, Options
from agent.source.document import Document
from agent.workload.expression import number
from agent.workload.plan import Plan
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


@pytest.fixture(scope="module")
def side() -> tuple[Prepared, Program]:
    program, workload = original(TEXT)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    return evolve(found, setting=evolve(found.setting, depth="full")), program


def ruling(side: tuple[Prepared, Program], candidate: Program) -> Ruling:
    trial = Trial(side[0], candidate, False, "plan")
    (source,) = (gate for gate in gates() if gate.name == "source")
    return compile_(source.run(trial).trial)


Answer = tuple[Diagnostic, ...] | CompileFailure


def nvcc(patch: pytest.MonkeyPatch, of_original: Answer, of_candidate: Answer) -> None:
    def check_file(document: Document, options: Options, **more: object) -> Answer:
        return of_original if document.text == TEXT.encode() else of_candidate

    patch.setattr("agent.evaluation.gates.compile.check_file", check_file)


BAD = CompileFailure("source", "line 9: the whole file does not compile")
CHANGED = TEXT.replace("2.0f * x[i]", "x[i] + x[i]")


def test_it_compiles(side: tuple[Prepared, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc(monkeypatch, (), ())
    found = ruling(side, rewrite(CHANGED, side[1].plan))
    assert found.outcome == "passed"
    assert "nvcc for the whole file" in found.reason
    assert found.trial.not_checked == ()


def test_it_does_not(side: tuple[Prepared, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc(monkeypatch, (), BAD)
    found = ruling(side, rewrite(CHANGED, side[1].plan))
    assert (found.outcome, found.state) == ("failed", "wrong")
    assert "line 9" in found.reason


@pytest.mark.parametrize(
    ("of_original", "of_candidate", "words"),
    [
        (BAD, BAD, "the original's does not compile there either"),
        ((), CompileFailure("unavailable", "no nvcc here"), "no nvcc here"),
    ],
)
def test_what_proves_nothing_is_listed(
    side: tuple[Prepared, Program],
    monkeypatch: pytest.MonkeyPatch,
    of_original: Answer,
    of_candidate: Answer,
    words: str,
) -> None:
    nvcc(monkeypatch, of_original, of_candidate)
    found = ruling(side, rewrite(CHANGED, side[1].plan))
    assert found.outcome == "passed"
    assert words in found.trial.not_checked[0]


def test_other_launches_than_the_files_own(side: tuple[Prepared, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc(monkeypatch, (), BAD)
    other, _ = original(TEXT.replace("(n + 255) / 256, 256", "(n + 127) / 128, 128"))
    found = ruling(side, rewrite(CHANGED.replace("* 256", "* 128"), other.plan))
    assert found.outcome == "passed"
    assert "launch sites" in found.trial.not_checked[0]


def test_another_architecture_that_refuses_the_code(side: tuple[Prepared, Program]) -> None:
    prepared, program = side
    both = evolve(prepared, setting=evolve(prepared.setting, depth="screen", architectures=("sm_75",)))
    text = TEXT.replace("2.0f", "__reduce_add_sync(0xffffffffu, 1u) * 0.0625f").replace("if (i < n) ", "")
    found = ruling((both, program), rewrite(text, program.plan))
    assert found.outcome == "failed"
    assert "sm_75" in found.reason


def test_a_launch_that_does_not_fit(side: tuple[Prepared, Program]) -> None:
    shared = "__shared__ float s[11000]; s[threadIdx.x * 40] = x[0]; int i ="
    text = TEXT.replace("int i =", shared).replace("2.0f", "s[7]")
    plan, _ = original(TEXT.replace("256, 256>>>", "256, 256, 220 * 1024>>>"))
    found = ruling(side, rewrite(text, plan.plan))
    assert found.outcome == "failed"
    assert "does not launch" in found.reason


MAIN = """
int main() {
    int n = 5000;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float)), cudaMalloc(&y, n * sizeof(float));
    twice<<<(n + 255) / 256, 256, 60000>>>(x, y, n);
}
"""
RAISE = "    cudaFuncSetAttribute(twice, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000);\n    twice<<<"


def test_shared_memory_that_the_host_does_not_ask_for(side: tuple[Prepared, Program]) -> None:
    """The plan alone would launch it: what the user's program does with the launch decides."""
    (launch,) = side[1].plan.launches()
    plan = Plan((evolve(launch, shared=number(60000)),))
    found = ruling(side, rewrite(CHANGED + MAIN, plan))
    assert found.outcome == "failed"
    assert "`twice` at line 16 fails on a card: it asks for 60000 bytes" in found.reason
    asked = ruling(side, rewrite(CHANGED + MAIN.replace("    twice<<<", RAISE), plan))
    assert asked.outcome == "passed"
    unseen = ruling(side, rewrite(CHANGED, plan))
    assert unseen.outcome == "passed"
    assert any("lets twice have 60000 bytes" in one for one in unseen.trial.not_checked)
