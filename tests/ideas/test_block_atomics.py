"""Atomics gathered by block: histograms in shared memory, and one total a block; refused where a result is used or the
memory is touched otherwise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, refusal, rewritten, run

HISTOGRAM = "block-histogram"
TOTAL = "atomic-once-a-block"
BINS = 50
SIZES = (1, 300, 4097)


def kernel(body: str, *, launch: str = "<<<(n + 127) / 128, 128>>>", bins: str = "u32", type: str = "unsigned") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   data: i32[n] in integers(0, {BINS})
//   buffer   x: f32[n] in
//   buffer   bins: {bins}[{BINS}] inout zeros
//   buffer   out: f32[n] inout zeros
//   launch   gather{launch}(data, x, bins, out, n)
__global__ void gather(const int* data, const float* x, {type}* bins, float* out, int n) {{
    {body}
}}
"""


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    "
STRIDE = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
COUNT = "atomicAdd(&bins[data[i]], 1u);"


def given(n: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(n)
    return {
        "data": generator.integers(0, BINS, n).astype(np.int32),
        "x": generator.integers(-9, 10, n).astype(np.float32),
        "bins": np.arange(BINS, dtype=np.uint32),
        "out": np.zeros(n, np.float32),
    }


HISTOGRAMS = {
    "an if": (INDEX + f"if (i < n) {COUNT}", 1),
    "an if with braces": (INDEX + f"if (n > i) {{\n        {COUNT}\n    }}", 1),
    "an early return": (INDEX + "if (i >= n) return;\n    int b = data[i];\n    atomicAdd(bins + b, 2);  // twice", 2),
    "two returns": (
        "const " + INDEX + "if (i >= n) return;\n    if (x[i] > 100.0f) return;\n    out[i] = 1.0f;\n    " + COUNT, 1),
    "a loop over the grid": (STRIDE + f" {{\n        {COUNT}\n    }}", 1),
    "two updates": (INDEX + f"if (i < n) {{\n        {COUNT}\n        {COUNT}\n    }}", 2),
}  # fmt: skip


@pytest.mark.parametrize("case", HISTOGRAMS)
def test_histograms_count_as_numpy_does(case: str) -> None:
    body, each = HISTOGRAMS[case]
    request = ask(kernel(body))
    (first,) = candidates(request, HISTOGRAM)
    for copies in (1, 8, 32):
        candidate = retune(first, request, {"copies": copies, "blocks": 264})
        assert candidate is not None
        for n in SIZES:
            data = given(n)
            made = run(rewritten(request, candidate), request.workload, data, n=n)
            expected = np.arange(BINS) + each * np.bincount(data["data"], minlength=BINS)
            np.testing.assert_array_equal(made["bins"], expected)
            if case == "two returns":
                np.testing.assert_array_equal(made["out"], np.ones(n, np.float32))


def test_the_launch_has_few_blocks() -> None:
    (candidate,) = candidates(ask(kernel(HISTOGRAMS["an if"][0])), HISTOGRAM)
    grid = candidate.plan.launches()[0].grid[0]
    assert [grid.integer({"n": n}) for n in (128, 1000, 10**7)] == [1, 8, 1056]


NO_HISTOGRAM = {
    "result used": (INDEX + "if (i < n) out[i] = atomicAdd(&bins[data[i]], 1u);", "returns is used"),
    "read too": (INDEX + f"if (i < n) {{ {COUNT} out[i] = bins[0]; }}", "may touch what bins counts"),
    "a maximum": (INDEX + "if (i < n) atomicMax(&bins[data[i]], 7u);", "is not counted up"),
    "one address": (INDEX + "if (i < n) atomicAdd(&bins[3], 1u);", "or all update one"),
    "the thread index elsewhere": (INDEX + f"if (i < n) {{ {COUNT} out[i] = threadIdx.x; }}", "is used beside i"),
    "no bound": (INDEX + COUNT + "\n    out[i] = 0;", "no test of i"),
    "a bound of its own": (INDEX + f"if (i < data[i]) {COUNT}", "not the same for all threads"),
    "the block's number": (
        STRIDE + f" {{ {COUNT} }}\n    if (threadIdx.x == 0) out[blockIdx.x] = 1;", "more than the loop over"),
    "a barrier": (
        INDEX + f"if (i >= n) return;\n    {COUNT}\n    __syncwarp();\n    out[i] = 1;", "work together already"),
    "work behind": (INDEX + f"if (i < n) {COUNT}\n    out[0] = 1;", "no test of i"),
    "shared already": ("__shared__ int q[4];\n    " + INDEX + f"if (i < n) {{ {COUNT} q[0] = 1; }}", "share memory"),
    "return in a loop": (
        INDEX + "if (i >= n) return;\n    for (int k = 0; k < 3; ++k) if (x[k] > 5) return;\n    " + COUNT,
        "from inside a loop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_HISTOGRAM)
def test_it_says_why_it_cannot_count_in_shared_memory(case: str) -> None:
    body, words = NO_HISTOGRAM[case]
    assert words in refusal(ask(kernel(body)), HISTOGRAM)


def test_too_many_counters_or_an_open_number_of_them() -> None:
    text = kernel(HISTOGRAMS["an if"][0])
    assert "too many for shared memory" in refusal(ask(text.replace(f"u32[{BINS}]", "u32[20000]")), HISTOGRAM)
    assert "is not fixed" in refusal(ask(text.replace(f"u32[{BINS}]", "u32[n]")), HISTOGRAM)
    floats = kernel(INDEX + "if (i < n) atomicAdd(&bins[data[i]], 1.0f);", bins="f32", type="float")
    assert "no fast atomics" in refusal(ask(floats), HISTOGRAM)
    assert "needs relaunch" in refusal(ask(text, Scope.DROP_IN), HISTOGRAM)


TOTALS: dict[str, tuple[str, str, str, Callable[[dict[str, Any]], tuple[Any, Any]]]] = {
    "floats behind a return": (
        INDEX + "if (i >= n) return;\n    float v = x[i];\n    atomicAdd(&bins[2], v * v);",
        "float", "f32", lambda d: (2, (d["x"] ** 2).sum())),
    "ints in an if": (INDEX + "if (i < n) {\n        atomicAdd(bins, data[i]);\n    }", "int", "i32",
                      lambda d: (0, d["data"].sum())),
    "a maximum": (INDEX + "if (i < n) atomicMax(&bins[1], data[i]);", "int", "i32", lambda d: (1, d["data"].max())),
    "behind a loop of its own": (
        "float sum = 0;\n    " + STRIDE + " sum += x[i];\n    atomicAdd(bins, sum);",
        "float", "f32", lambda d: (0, d["x"].sum())),
    "an element of the row's own": (
        "const int row = blockIdx.y, first = 3 * row;\n    "
        "for (int i = threadIdx.x; i < n; i += 128) {\n        char v = data[i];\n"
        "        atomicAdd(bins + first + blockIdx.z, v);\n    }",
        "int", "i32", lambda d: ([0, 1, 3, 4], d["data"].sum())),
    "no bound at all": (
        "int t = threadIdx.x;\n    float v = 0;\n    for (int i = t; i < n; i += 128) v += x[i];\n"
        "    if (v > -1e9f) atomicAdd(bins, v);",
        "float", "f32", lambda d: (0, d["x"].sum())),
}  # fmt: skip


@pytest.mark.parametrize("case", TOTALS)
def test_totals_are_what_numpy_says(case: str) -> None:
    body, type_name, dtype, golden = TOTALS[case]
    whole = {"no bound at all": "<<<1, 128>>>", "an element of the row's own": "<<<dim3(1, 2, 2), 128>>>"}
    launch = whole.get(case) or "<<<(n + 127) / 128, 128>>>"
    request = ask(kernel(body, launch=launch, bins=dtype, type=type_name))
    kind = {"f32": np.float32, "i32": np.int32}[dtype]
    for candidate in candidates(request, TOTAL):
        for n in SIZES:
            data = {**given(n), "bins": np.zeros(BINS, kind)}
            made = run(rewritten(request, candidate), request.workload, data, n=n)["bins"]
            at, value = golden(data)
            expected = np.zeros(BINS, kind)
            expected[at] = value
            np.testing.assert_array_equal(made, expected)


NO_TOTAL = {
    "scattered": (INDEX + "if (i < n) atomicAdd(&bins[data[i]], 1u);", "differs from thread to thread"),
    "thread 0 alone": ("if (threadIdx.x == 0) atomicAdd(bins, 1u);", "one thread alone"),
    "lane 0 alone": ("if (threadIdx.x % 32 == 0) atomicAdd(bins, 1u);", "one thread alone"),
    "an exchange": (INDEX + "if (i < n) atomicExch(bins, 1u);", "no fold"),
    "result used": (INDEX + "if (i < n) out[i] = atomicAdd(bins, 1u);", "returns is used"),
    "two elements": (INDEX + "if (i < n) { atomicAdd(bins, 1u); atomicAdd(&bins[1], 1u); }", "more than one element"),
    "a local that changes": (
        "int k = 0;\n    for (int i = threadIdx.x; i < n; i += 128) {\n        k = blockIdx.x;\n"
        "        atomicAdd(&bins[k], 1u);\n    }",
        "differs from thread to thread",
    ),
    "a local inside": (
        "for (int i = threadIdx.x; i < n; i += 128) {\n        int k = blockIdx.x;\n"
        "        atomicAdd(&bins[k], 1u);\n    }",
        "hangs on the local `k`",
    ),
    "a local behind the guard": (
        INDEX + "if (i >= n) return;\n    int k = n / 2 - n / 2;\n    atomicAdd(&bins[k], 1u);",
        "hangs on the local `k`",
    ),
    "some leave": ("if (x[threadIdx.x] > 3) return;\n    atomicAdd(bins, 1u);", "not all threads come"),
}


@pytest.mark.parametrize("case", NO_TOTAL)
def test_it_says_why_no_block_can_add_up(case: str) -> None:
    body, words = NO_TOTAL[case]
    assert words in refusal(ask(kernel(body)), TOTAL)


def test_the_narrow_scope_keeps_the_launch() -> None:
    request = ask(kernel(TOTALS["ints in an if"][0], bins="i32", type="int"), Scope.DROP_IN)
    (candidate,) = candidates(request, TOTAL)
    assert candidate.plan == request.plan


@pytest.mark.parametrize("name", [HISTOGRAM, TOTAL])
def test_tabs_and_carriage_returns_stay(name: str) -> None:
    body = HISTOGRAMS["two returns"][0].replace(COUNT, COUNT + "\n    atomicAdd(out + 3, x[i]);").replace(
        "out[i] = 1.0f;", "float q = 1.0f;") if name == HISTOGRAM else TOTALS["floats behind a return"][0]  # fmt: skip
    bins = ("u32", "unsigned") if name == HISTOGRAM else ("f32", "float")
    text = kernel(body, bins=bins[0], type=bins[1]).replace("    ", "\t").replace("\n", "\r\n")
    request = ask(text)
    for candidate in candidates(request, name):
        written = rewritten(request, candidate).document.text
        assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
        assert not any(line != line.rstrip() for line in written.decode().split("\r\n"))
