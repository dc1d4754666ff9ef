"""Atomics that stay with one address while a loop runs become one behind it; others stay as they are."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, refusal, rewritten, run

NAME = "atomic-once-a-thread"
BINS = 130
ROW = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    "
EACH = "for (int c = 0; c < m; ++c) "


def kernel(body: str, *, bins: str = "f32", type: str = "float", launch: str = "<<<(n + 63) / 64, 64>>>") -> str:
    return f"""\
#define PLACE (i % 7 + c)
// cuda-lsp: workload
//   size     n = 1000
//   size     m = 4
//   buffer   data: i32[n * m] in integers(0, {BINS})
//   buffer   bins: {bins}[{BINS}] inout zeros
//   buffer   out: f32[n] inout zeros
//   launch   gather{launch}(data, bins, out, n, m)
__global__ void gather(const int* data, {type}* bins, float* out, int n, int m) {{
    {body}
}}
"""


def expected(data: np.ndarray, n: int, m: int, case: str) -> np.ndarray:
    rows = data.reshape(n, m).astype(float)
    made = np.zeros(BINS)
    if case == "a row's own":
        np.add.at(made, data.reshape(n, m)[:, 0], rows.sum(1))
    elif case == "two of them":
        np.add.at(made, np.arange(n) % 64, 3 * rows.sum(1))
        np.add.at(made, np.arange(n) % 64 + 64, np.full(n, float(m)))
    elif case == "the largest":
        np.maximum.at(made, np.arange(n) % 64, rows.max(1, initial=0))
    elif case == "up to a break":
        np.add.at(made, np.arange(n) % 64, np.where(rows > 60, 0, rows)[:, :1].sum(1))
    return made


MADE = {
    "a row's own": (ROW + "const int k = data[i * m];\n    " + EACH + "atomicAdd(&bins[k], data[i * m + c]);",
                    "f32", "float"),
    "two of them": (
        ROW + EACH + "{\n        atomicAdd(bins + threadIdx.x, data[i * m + c]);\n"
        "        atomicAdd(bins + threadIdx.x, 2 * data[i * m + c]);\n"
        "        atomicAdd(&bins[threadIdx.x + 64], 1);\n    }", "i32", "int"),
    "the largest": (
        ROW + "#pragma unroll 2\n    " + EACH + "if (c >= 0) atomicMax(&bins[threadIdx.x], data[i * m + c]);",
        "i32", "int"),
    "up to a break": (
        ROW + EACH + "{\n        if (data[i * m + c] > 60 || c > 0) break;\n"
        "        atomicAdd(&bins[threadIdx.x], data[i * m + c]);\n    }", "f32", "float"),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE)
def test_each_thread_sends_one(case: str) -> None:
    body, dtype, type_name = MADE[case]
    request = ask(kernel(body, bins=dtype, type=type_name))
    (candidate,) = candidates(request, NAME)
    assert candidate.scope is Scope.DROP_IN
    for n, m in ((1, 1), (65, 3), (300, 4)):
        data = np.random.default_rng(n).integers(0, BINS, n * m).astype(np.int32)
        given = {"data": data, "bins": np.zeros(BINS, {"f32": np.float32, "i32": np.int32}[dtype])}
        made = run(rewritten(request, candidate), request.workload, given, n=n, m=m)["bins"]
        np.testing.assert_array_equal(made, expected(data, n, m, case))


def test_a_thread_without_a_turn_sends_none() -> None:
    body = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)\n        "
    body += "atomicAdd(&bins[threadIdx.x], 1.0f);"
    request = ask(kernel(body, launch="<<<(n + 255) / 256, 256>>>"))
    made = candidates(request, NAME)
    assert [one.scope for one in made] == [Scope.RELAUNCH, Scope.DROP_IN]
    few = retune(made[0], request, {"blocks": 264})
    assert few is not None and few.plan.launches()[0].grid[0].integer({"n": 10**6, "m": 1}) == 264
    # threads from 100 on have no element, and their address lies behind the buffer
    for candidate in (few, made[1]):
        given = {"data": np.zeros(100, np.int32), "bins": np.zeros(BINS, np.float32)}
        bins = run(rewritten(request, candidate), request.workload, given, n=100, m=1)["bins"]
        np.testing.assert_array_equal(bins, np.arange(BINS) < 100)


NOT = {
    "another address each turn": (ROW + EACH + "atomicAdd(&bins[data[i * m + c]], 1.0f);", "another address in each"),
    "no loop": (ROW + "atomicAdd(&bins[data[i]], 1.0f);", "stands in no loop"),
    "a result that is used": (ROW + EACH + "out[i] = atomicAdd(&bins[i % 64], 1.0f);", "returns is used"),
    "read in between": (ROW + EACH + "{ atomicAdd(&bins[i % 64], 1.0f); out[i] = bins[0]; }", "may touch what bins"),
    "an address that is written": (
        ROW + EACH + "{ atomicAdd(&bins[(int)out[i]], 1.0f); out[i] += 1.0f; }", "another address in each"),
    "a local of the turn": (
        ROW + EACH + "{\n        int k = i % 64;\n        atomicAdd(&bins[k], 1.0f);\n    }", "another address in"),
    "a pointer that moves": (
        ROW + "float* p = bins;\n    " + EACH + "{ atomicAdd(p, 1.0f); p += 1; }", "another address in each"),
    "a macro": (ROW + EACH + "atomicAdd(&bins[PLACE], 1.0f);", "another address in each"),
    "a thread that leaves": (
        ROW + EACH + "{ if (data[i] > 9) return; atomicAdd(&bins[i % 64], 1.0f); }", "no one place behind the loop"),
    "an exchange": (ROW + EACH + "atomicExch(&bins[i % 64], 1.0f);", "no fold"),
    "one address for all": (ROW + EACH + "atomicAdd(bins, 1.0f);", "the block can add up first"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT)
def test_it_says_why_every_turn_sends_one(case: str) -> None:
    body, words = NOT[case]
    assert words in refusal(ask(kernel(body)), NAME)


def test_a_value_becomes_what_the_cell_is_before_it_is_added() -> None:
    """atomicAdd on an int adds 0 for -0.75f, and 3 for 3.9f; so does a thread for itself."""
    body = ROW + EACH + "atomicAdd(&bins[threadIdx.x], data[i * m + c] > 60 ? -0.75f : 3.9f);"
    request = ask(kernel(body, bins="i32", type="int"))
    made = candidates(request, NAME)[0]
    assert "(int)(data[i * m + c] > 60 ? -0.75f : 3.9f)" in made.code
    n, m = 200, 4
    data = np.random.default_rng(3).integers(0, BINS, n * m).astype(np.int32)
    given = {"data": data, "bins": np.zeros(BINS, np.int32), "out": np.zeros(n, np.float32)}
    found = run(rewritten(request, made), request.workload, given, n=n, m=m)["bins"]
    wanted = np.zeros(BINS, np.int64)
    np.add.at(wanted, np.arange(n) % 64, np.where(data.reshape(n, m) > 60, 0, 3).sum(1))
    np.testing.assert_array_equal(found, wanted)
