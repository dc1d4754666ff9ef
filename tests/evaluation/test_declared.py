"""The declared size on sampled blocks: what hangs on blocks that were left out is not compared."""

import pytest
from attrs import evolve

from agent.evaluation.gates import memory
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.sizes import Sizes
from agent.evaluation.trial import Trial
from agent.execution.compiler.result import Build
from agent.execution.device import Answer
from agent.workload.expression import Expression
from agent.workload.plan import Launch
from agent.workload.program import Program
from tests.evaluation.kernels import original, rewrite, setting

DIRECTIVE = """
// cuda-lsp: workload
//   size     n = 4000000
//   buffer   x: f32[n + 3000] in normal
//   buffer   y: f32[n + 3000] out
//   buffer   z: f32[n] out
//   launch   clipped<<<(n + 3000 + 255) / 256, 256>>>(x, y, n + 3000)
//   launch   peak<<<(n + 255) / 256, 256>>>(y, z, n)
"""

POOLED = f"""
__global__ void clipped(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}}
{DIRECTIVE}
__global__ void peak(const float* y, float* z, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = fmaxf(0.0f, fmaxf(y[i], y[i + 3000]));
}}
"""


def test_a_maximum_does_not_hide_a_block_that_was_left_out() -> None:
    """Half of what each z depends on is written by a block of the first launch that is far away. With larger blocks
    other parts are left out: both must be told from what is known."""
    program, workload = original(POOLED)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    one = Expression.parse("1")
    grid, block = (Expression.parse("(n + 3000 + 1023) / 1024"), one, one), (Expression.parse("1024"), one, one)
    wide = tuple(
        evolve(step, grid=grid, block=block) if isinstance(step, Launch) and step.kernel == "clipped" else step
        for step in program.plan.steps
    )
    verdict = judge(found, rewrite(POOLED, evolve(program.plan, steps=wide)), scope="relaunch")
    assert verdict.correctness.state == "right", verdict.correctness
    assert "n=4000000" in verdict.correctness.sampled


def test_a_check_that_takes_too_long_is_not_checked_rather_than_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks for races count every step, of unoptimised code too; what is endless was refused before them."""
    program, workload = original(POOLED)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    patient = memory._run

    def hasty(trial: Trial, program: Program, built: Build, sizes: Sizes) -> Answer:
        short = evolve(trial.prepared, setting=evolve(trial.prepared.setting, step_cap=100))
        return patient(evolve(trial, prepared=short), program, built, sizes)

    monkeypatch.setattr(memory, "_run", hasty)
    verdict = judge(found, rewrite(POOLED.replace("x[i], 0.0f", "0.0f, x[i]"), program.plan))
    assert verdict.correctness.state == "right", verdict.correctness
    assert any("memory and races" in note and "too long" in note for note in verdict.evidence.not_checked)


CHAIN = """
__global__ void halved(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * y[i] + 1.0f;
}

// cuda-lsp: workload
//   size     n = 4000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   doubled<<<(n + 255) / 256, 256>>>(x, y, n)
//   launch   halved<<<(n + 1023) / 1024, 1024>>>(y, n)
__global__ void doubled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


@pytest.mark.parametrize(("more", "state"), [("1.0f", "right"), ("2.0f", "wrong")])
def test_a_launch_less_is_not_wrong_for_what_the_original_left_undone(more: str, state: str) -> None:
    """Sampled blocks of the second launch change few of the elements that those of the first have written."""
    program, workload = original(CHAIN)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared)
    fused = CHAIN.replace("y[i] = 2.0f * x[i];", f"y[i] = 0.5f * (2.0f * x[i]) + {more};")
    plan = evolve(program.plan, steps=program.plan.steps[:1])
    assert judge(found, rewrite(fused, plan), scope="plan").correctness.state == state
