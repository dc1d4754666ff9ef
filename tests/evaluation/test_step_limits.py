"""A limit of steps that is our own says nothing about a rewrite; one that the original's work sets ends the endless."""

import pytest
from attrs import evolve

from agent.evaluation import declared
from agent.evaluation.contracts.contract import at
from agent.evaluation.gates import memory
from agent.evaluation.judge import judge
from agent.evaluation.oracles import truth
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.sizes import Sizes
from agent.evaluation.trial import Trial
from agent.evaluation.verdict import Correctness
from agent.execution.compiler.result import Build
from agent.execution.device import NOWHERE, Answer, Fault, Where
from agent.workload.expression import Expression
from agent.workload.plan import Launch
from agent.workload.program import Program
from tests.evaluation.kernels import original, rewrite, setting

DIRECTIVE = """
// cuda-lsp: workload
//   size     n = 8000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   cubed<<<(n + 63) / 64, 64>>>(x, y, n)
"""
PLAIN = f"""{DIRECTIVE}__global__ void cubed(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] * x[i];
}}
"""
LONG = f"""{DIRECTIVE}__global__ void cubed(const float* x, float* y, int n) {{
    for (int k = threadIdx.x; k < 4096; k += 64) {{
        int i = blockIdx.x * 4096 + k;
        if (i < n) y[i] = x[i] * x[i] * x[i];
    }}
}}
"""


def _prepared(text: str = PLAIN, **more: object) -> tuple[Prepared, Program]:
    program, workload = original(text)
    found = prepare(program, workload, setting(**more))
    assert isinstance(found, Prepared)
    return found, program


def _with_grid(program: Program, grid: str) -> Program:
    x = (Expression.parse(grid), Expression.parse("1"), Expression.parse("1"))
    steps = tuple(evolve(step, grid=x) if isinstance(step, Launch) else step for step in program.plan.steps)
    return rewrite(LONG, evolve(program.plan, steps=steps))


def test_blocks_that_do_the_work_of_many_are_not_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run may take at all is set below what the rewrite's blocks need: each does 64 times the original's."""
    found, program = _prepared(step_cap=300_000)
    monkeypatch.setattr(truth, "LEAST_STEPS", 1_000)
    monkeypatch.setattr(declared, "LEAST_STEPS", 1_000)
    verdict = judge(found, _with_grid(program, "(n + 4095) / 4096"), scope="relaunch")
    assert verdict.correctness.state == "right", verdict.correctness
    assert "n=8000000" in verdict.correctness.sampled


def test_of_blocks_that_do_too_much_fewer_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found, program = _prepared()
    monkeypatch.setattr(declared, "MOST_STEPS", 100_000)
    verdict = judge(found, _with_grid(program, "(n + 4095) / 4096"), scope="relaunch")
    assert verdict.correctness.state == "right", verdict.correctness
    assert verdict.correctness.sampled == "3 blocks at n=8000000"


def _judged(found: Prepared, text: str, program: Program) -> Correctness:
    return judge(found, rewrite(text, program.plan)).correctness


def test_a_loop_without_an_end_at_the_declared_size_alone_is_wrong() -> None:
    found, program = _prepared()
    endless = PLAIN.replace("if (i < n)", "while (n > 7999998 && n < 8000002 && i < 64) n = 8000000; if (i < n)")
    told = _judged(found, endless, program)
    assert told.state == "wrong" and "step limit in cubed" in told.reason, told
    assert "the original ends after" in told.reason


def test_a_block_that_waits_for_one_that_was_left_out_is_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a scan in one pass, where each block waits for the one before it: on sampled blocks that never comes."""
    found, program = _prepared()
    monkeypatch.setattr(declared, "LEAST_STEPS", 1_000)
    monkeypatch.setattr(declared, "PATIENCE", 3)
    waits = """if (n > 100000 && threadIdx.x == 0) while (((volatile unsigned*)y)[n / 3] == 0x4B4B4B4Bu) ;
    if (i < n)"""
    verdict = judge(found, rewrite(PLAIN.replace("if (i < n)", waits), program.plan))
    assert verdict.correctness.state == "right", verdict.correctness
    assert any("thread-instructions" in note for note in verdict.evidence.not_checked), verdict


def test_a_hazard_counts_though_the_checks_ran_out_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks for races count every step; what they have found by then is true."""
    found, program = _prepared()
    patient = memory._run

    def hasty(trial: Trial, program: Program, built: Build, sizes: Sizes) -> Answer:
        answer = patient(trial, program, built, sizes)
        if program is trial.prepared.original:
            return answer
        race = Fault("global-memory race", "cubed", Where("", 9, (0, 0, 0), (1, 0, 0)), "y[0]")
        limit = Fault("step limit", "cubed", Where("", 9, (0, 0, 0), (1, 0, 0)), "still running")
        return evolve(answer, status="fault", faults=(race, limit))

    monkeypatch.setattr(memory, "_run", hasty)
    told = _judged(found, PLAIN.replace("x[i] * x[i] * x[i]", "x[i] * (x[i] * x[i])"), program)
    assert told.state == "wrong" and "global-memory race" in told.reason, told


def test_a_large_tile_at_a_small_size_is_not_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended at the first size; where the original has nearly nothing to do, padding is most of its work."""
    found, program = _prepared()
    monkeypatch.setattr(truth, "PATIENCE", 1)
    monkeypatch.setattr(truth, "LEAST_STEPS", 60_000)
    padding = "for (int k = 0; k < (n < 90 ? 2000 : 1); ++k) n += __any_sync(~0u, i < -k); if (i < n)"
    told = _judged(found, PLAIN.replace("if (i < n)", padding), program)
    assert told.state == "right", told


def test_a_fault_that_a_card_cannot_place_names_no_place() -> None:
    beside = Fault("out-of-bounds write", "clipped or peak", NOWHERE, "y was written outside its bounds")
    assert at(beside) == "out-of-bounds write in clipped or peak: y was written outside its bounds"
    nameless = evolve(beside, kernel="")
    assert at(nameless) == "out-of-bounds write: y was written outside its bounds"
    seen = evolve(beside, kernel="k", where=Where("a.cu", 3, (0, 0, 0), (1, 0, 0)))
    assert at(seen).startswith("out-of-bounds write in k: line 3, block (0,0,0), thread (1,0,0): y was written")
