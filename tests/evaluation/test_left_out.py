"""Sampled blocks of a plan of several launches prove a fault, or a difference, where nothing left out can be its
cause."""

import pytest

from agent.evaluation.judge import judge
from agent.evaluation.left_out import comparable
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.sizes import bound_at
from agent.workload.plan import Plan
from tests.evaluation.kernels import original, rewrite, setting

LARGE = """
__global__ void again(const float* x, float* y) { if (blockIdx.x + threadIdx.x == 0) y[0] = 1.5f * x[0] + 0.25f; }
// cuda-lsp: workload
//   size     n = 100000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.5f * x[i] + 0.25f;
}
"""
BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
LAUNCH = "//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)\n"


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    found = prepare(*original(LARGE), setting())
    assert isinstance(found, Prepared), found
    return found


def plan(*more: str) -> Plan:
    lines = "".join(f"//   {line}\n" for line in more)
    return original(LARGE.replace(LAUNCH, LAUNCH + lines))[0].plan


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("if (i < n) y[n > 70000000 && i == 0 ? i - 1 : i] = 1.5f * x[i] + 0.25f;", "out-of-bounds write"),
        ("if (i < n) y[i] = n > 70000000 ? 0.0f : 1.5f * x[i] + 0.25f;", "expected"),
        (BODY, ""),
    ],
)
def test_a_second_launch_hides_nothing(prepared: Prepared, body: str, words: str) -> None:
    found = judge(prepared, rewrite(LARGE.replace(BODY, body), plan("launch again<<<1, 32>>>(x, y)")))
    assert found.correctness.state == ("wrong" if words else "right"), found.gates[-1]
    assert words in found.correctness.reason


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), True),
        (("launch again<<<3, 32>>>(x, y)",), True),
        (("launch again<<<4, 32>>>(x, y)",), False),
        (("fill y 0", "launch again<<<3, 32>>>(x, y)"), False),
        (("scratch z: f32[n] zeroed", "launch again<<<3, 32>>>(x, y)"), False),
        (("scratch z: f32[n]", "launch again<<<3, 32>>>(x, y)"), True),
    ],
)
def test_when_a_difference_tells(prepared: Prepared, more: tuple[str, ...], told: bool) -> None:
    own = bound_at(prepared.workload, prepared.original)
    other = bound_at(prepared.workload, rewrite(LARGE, plan(*more)))
    assert comparable(own, other, 3) == told
