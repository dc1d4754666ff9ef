"""Lanes that share an element add up what one thread added up; other loops are left alone."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, refusal, rewritten, run

NAME = "pairs-over-lanes"


def pairs(**changes: str) -> str:
    parts = {
        "index": "int i = blockIdx.x * blockDim.x + threadIdx.x;",
        "guard": "if (i >= n) return;",
        "before": "float sum = 0.0f;",
        "head": "for (int j = 0; j < n; ++j)",
        "body": "if (j == i) continue;\n        sum += (x[j] - x[i]) * x[j];",
        "after": "y[i] = sum;",
        "launch": "<<<(n + 63) / 64, 64>>>",
        "n": "2000",
        **changes,
    }
    return """\
// cuda-lsp: workload
//   size     n = {n}
//   buffer   x: f32[n] in
//   buffer   y: f32[n] inout
//   launch   all_pairs{launch}(x, y, n)
__global__ void all_pairs(const float* x, float* y, int n) {{
    {index}
    {guard}
    {before}
    {head} {{
        {body}
    }}
    {after}
}}
""".format(**parts)


def numbers(n: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(n)
    return generator.integers(-9, 10, n).astype(np.float32), generator.integers(-9, 10, n).astype(np.float32)


@pytest.mark.parametrize("lanes", [2, 8, 32])
@pytest.mark.parametrize("n", [1, 31, 100, 257])
def test_sums_over_all_others(lanes: int, n: int) -> None:
    request = ask(pairs())
    (candidate,) = candidates(request, NAME)
    tuned = retune(candidate, request, {"lanes": lanes})
    assert tuned is not None
    (launch,) = tuned.plan.launches()
    assert str(launch.grid[0]) == f"(n + 63) / 64 * {lanes}"
    x, y = numbers(n)
    answer = run(rewritten(request, tuned), request.workload, {"x": x, "y": y}, n=n)["y"]
    np.testing.assert_array_equal(answer, ((x[None, :] - x[:, None]) * x[None, :]).sum(axis=1))


def test_what_the_sum_starts_from_counts_once_and_stores_happen_once() -> None:
    text = pairs(
        guard="if (i < n)",
        before="{\n    float sum = x[i], most = -1e30f;",
        head="for (int j = 1; j <= n - 1; j++)",
        body="sum -= x[j];\n        most = fmaxf(most, x[j] * x[i]);",
        after="y[i] += sum + most;\n    }",
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    x, y = numbers(90)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=90)["y"]
    most = (x[None, 1:] * x[:, None]).max(axis=1)
    np.testing.assert_array_equal(answer, y + x - x[1:].sum() + most)


def test_a_smallest_value_by_comparison() -> None:
    request = ask(pairs(before="float sum = 1e30f;", body="float d = fabsf(x[j] - x[i]) + (j == i ? 99.0f : 0.0f);\n"
                        "        if (d < sum) sum = d;"))  # fmt: skip
    (candidate,) = candidates(request, NAME)
    x, y = numbers(70)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=70)["y"]
    apart = np.abs(x[:, None] - x[None, :]) + np.where(np.eye(70), 99, 0)
    np.testing.assert_array_equal(answer, apart.min(axis=1).astype(np.float32))


def test_a_variable_that_each_turn_sets_anew_is_no_total() -> None:
    request = ask(pairs(before="float sum = 0.0f, d;", body="d = x[j] - x[i];\n        sum += d * d;"))
    (candidate,) = candidates(request, NAME)
    x, y = numbers(75)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=75)["y"]
    np.testing.assert_array_equal(answer, ((x[None, :] - x[:, None]) ** 2).sum(axis=1))


MEMBERS = """\
// cuda-lsp: workload
//   size     n = 1500
//   buffer   at: f32x4[n] in
//   buffer   pull: f32x2[n] out
//   launch   pulls<<<(n + 127) / 128, 128>>>(at, pull, n)
__global__ void pulls(const float4* at, float2* pull, int n) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i >= n) return;
    const float4 own = at[i];
    float2 total = {0.0f, 0.0f};
    for (int j = 0; j < n; ++j) {
        const float4 other = at[j];
        const float mass = other.w;
        total.x += mass * (other.x - own.x);
        total.y += mass * (other.y - own.y);
    }
    pull[i] = total;
}
"""


def test_members_of_a_vector() -> None:
    request = ask(MEMBERS)
    (candidate,) = candidates(request, NAME)
    at = np.random.default_rng(5).integers(-5, 6, (77, 4)).astype(np.float32)
    answer = run(rewritten(request, candidate), request.workload, {"at": at}, n=77)["pull"]
    apart = at[None, :, :2] - at[:, None, :2]
    expected = (at[None, :, 3:] * apart).sum(axis=1)
    np.testing.assert_array_equal(answer.view(np.float32).reshape(77, 2), expected)


REFUSED = {
    "enough threads": ("enough to hide", {"n": "200000"}),
    "few turns": ("too few to be shared", {"n": "20"}),
    "own elements": ("not the same for all threads", {"body": "sum += x[j * n + i];"}),
    "own range": ("depends on the thread", {"head": "for (int j = 0; j < i; ++j)"}),
    "read on the way": ("while it is added up", {"body": "sum += x[j] * sum;"}),
    "not a fold": ("does not just fold", {"body": "sum = 0.5f * sum + x[j];"}),
    "stored on the way": ("writes to memory", {"body": "y[i] += x[j];"}),
    "left early": ("header alone", {"body": "if (x[j] > 3) break;\n sum += x[j];"}),
    "open block": ("fixed number of whole warps", {"launch": "<<<(n + 47) / 48, 48>>>"}),
    "stored before": ("stored before the loop", {"before": "float sum = 0.0f;\n y[i] = 1.0f;"}),
    "kept for the next turn": (
        "does not just fold",
        {"before": "float sum = 0, d = 0;", "body": "sum += d * x[j];\n d = x[j];"},
    ),
    "kept for later": (
        "does not just fold",
        {"before": "float sum = 0, d = 0;", "body": "d = x[j];\n sum += d;", "after": "y[i] = sum + d;"},
    ),
    "a product": ("does not just fold", {"body": "sum *= x[j];"}),
    "left behind": ("leave behind the loop", {"after": "if (sum < 0) return;\n y[i] = sum;"}),
    "a counter as well": ("does not just fold", {"before": "float sum = 0, c = 0;", "body": "sum += x[j]; c++;"}),
}  # fmt: skip


@pytest.mark.parametrize("near", REFUSED)
def test_near_misses(near: str) -> None:
    words, changes = REFUSED[near]
    assert words in refusal(ask(pairs(**changes)), NAME)


def test_it_needs_more_blocks() -> None:
    assert "relaunch" in refusal(ask(pairs(), Scope.DROP_IN), NAME)


def test_line_ends_are_kept() -> None:
    request = ask(pairs().replace("    ", "\t").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    text = rewritten(request, candidate).document.text
    assert not text.replace(b"\r\n", b"").count(b"\n") and b"\r\n\tconst int lane" in text
