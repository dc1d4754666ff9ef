"""A table that is the same for all threads is filled once a block; one that is not, or may not be, stays."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from tests.ideas.running import Array, ask, candidates, diff, refusal, rewritten, run

NAME = "block-table"

FILLED = """\
float level = 0.0f;
    float ramp[32];
    for (int k = 0; k < 32; ++k) {
        level += 0.5f * k;
        ramp[k] = level;
    }"""
OWN = """\
float ramp[32];
    float level = 0.0f;
    for (int k = 0; k < 32; ++k) {
        level += 0.5f * k;
        ramp[k] = level;
    }"""
RAMP = np.cumsum(0.5 * np.arange(32)).astype(np.float32)


def kernel(fill: str, read: str = "y[i] = ramp[x[i]];", block: str = "96", above: str = "", more: str = "") -> str:
    threads = block if block.isdigit() else "64"
    return f"""\
#define STEP 0.5f
{above}
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: i32[n] in integers(0, 31)
//   buffer   y: f32[n] out
//   launch   shade<<<(n + {threads} - 1) / {threads}, {block}>>>(x, y, n, 0.5)
__global__ void shade(const int* x, float* y, int n, float step) {{
    int i = blockIdx.x * {threads} + {more}threadIdx.x;
    if (i >= n) return;
    {fill}
    {read}
}}
"""


def given(n: int) -> Array:
    return np.random.default_rng(n).integers(0, 32, n).astype(np.int32)


@pytest.mark.parametrize(
    "fill", [FILLED, OWN, OWN.replace("0.5f * k", "step * k"), OWN.replace("0.5f * k", "k * STEP")]
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_of_the_kernel(fill: str, line_end: str) -> None:
    request = ask(kernel(fill).replace("\n", line_end))
    (made,) = candidates(request, NAME)
    assert made.scope is Scope.DROP_IN
    for n in (1, 95, 1000):
        found = run(rewritten(request, made), request.workload, {"x": given(n)}, n=n)["y"]
        np.testing.assert_array_equal(found, RAMP[given(n)])
    added = [line for line in diff(request, made).split("\n") if line.startswith("+")]
    assert "+    __shared__ float ramp[32];" in [line.rstrip() for line in added]
    assert "+    if (threadIdx.x == 0) {" in [line.rstrip() for line in added]


@pytest.mark.parametrize("together", ["    ", ""])
def test_a_table_before_all_else(together: str) -> None:
    """What is put at the kernel's beginning and what goes from there are one change."""
    text = kernel(OWN)
    table = "    " + OWN + "\n"
    above = text.replace(table, "").replace(
        "float step) {\n", "float step) {" + ("\n" + table if together else " " + OWN + "\n")
    )
    request = ask(above)
    (made,) = candidates(request, NAME)
    for n in (1, 95, 1000):
        found = run(rewritten(request, made), request.workload, {"x": given(n)}, n=n)["y"]
        np.testing.assert_array_equal(found, RAMP[given(n)])
    lines = made.code.split("\n")
    assert "    __shared__ float ramp[32];" in lines or not together


DEVICE = """\
__device__ void store(float to[][2], int at, float value) {
    to[at][0] = value;
    to[at][1] = -value;
}
__host__ __device__ inline float look(int at, float scale) {
    float pair[16][2];  // both signs
    int k;
    for (k = 0; k < 16; ++k) store(pair, k, STEP * k);

    return scale * pair[at / 2][at % 2];
}
"""


def test_of_a_device_function_that_is_called_twice_by_blocks_of_two_dimensions() -> None:
    read = "float pair = 1.0f;\n    y[i] = look(x[i], 2.0f) + look(31 - x[i], pair);"
    text = kernel("", read, "dim3(32, 2)", DEVICE, "threadIdx.y * 32 + ")
    request = ask(text)
    (made,) = candidates(request, NAME)
    values = np.stack([0.5 * np.arange(16), -0.5 * np.arange(16)], 1).reshape(-1).astype(np.float32)
    for n in (1, 64, 1000):
        x = given(n)
        found = run(rewritten(request, made), request.workload, {"x": x}, n=n)["y"]
        np.testing.assert_array_equal(found, 2 * values[x] + values[31 - x])
    code = made.code
    assert "__device__ inline float look_with_pair(const float (*pair)[2], int at, float scale) {\n    return" in code
    assert "if (threadIdx.x == 0 && threadIdx.y == 0) {\n        int k;\n        for (k = 0;" in code
    # the kernel has a `pair` of its own
    assert "__shared__ float pair_2[16][2];" in code and "store(pair_2, k, STEP * k);" in code
    assert "look_with_pair(pair_2, x[i], 2.0f) + look_with_pair(pair_2, 31 - x[i], pair)" in code


REFUSED = {
    FILLED.replace("level = 0.0f", "level = x[i]"): "which need not be the same for every thread",
    OWN.replace("0.5f * k", "0.5f * i"): "which need not be the same for every thread",
    OWN.replace("0.5f * k", "y[k]"): "which need not be the same for every thread",
    OWN.replace("0.5f * k", "threadIdx.x"): "filled from `threadIdx.x`",
    OWN.replace("0.5f * k", "clock()"): "whose effects are not known",
    OWN.replace("level += 0.5f * k;", "if (k > n) return;"): "`return;` stands in the filling",
    OWN.replace("32", "4"): "so small",
    OWN.replace("32", "4096"): "more than a block should give",
    OWN + "\n    ramp[x[i]] = 1.0f;": "which need not be the same for every thread",
    OWN + "\n    float* at = ramp;": "used by more than subscripts",
    OWN + "\n    float& at = ramp[x[i]]; at = 2.0f;": "used by more than subscripts",
    OWN + "\n    auto&& at = (i > 7 ? ramp[x[i]] : ramp[0]);": "used by more than subscripts",
    OWN + "\n    (i > 7 ? ramp[x[i]] : ramp[0]) = 3.0f;": "used by more than subscripts",
    OWN + "\n    level += 1.0f;\n    y[i] = level;": "is used after ramp was filled",
    "float ramp[32] = {1.0f};": "no thread fills an array",
}


@pytest.mark.parametrize("fill", REFUSED)
def test_what_is_left_alone(fill: str) -> None:
    assert REFUSED[fill] in refusal(ask(kernel(fill)), NAME)


def test_indices_that_the_compiler_knows() -> None:
    read = "for (int k = 0; k < 32; ++k) y[i] += ramp[k];"
    assert "keeps it in registers" in refusal(ask(kernel(OWN, read)), NAME)


FUNCTIONS = {
    DEVICE.replace("to[at][1] = -value;", "to[at][1] = -value * threadIdx.x;"): "whose effects are not known",
    DEVICE.replace("STEP * k", "scale * k"): "filled from scale",
    DEVICE.replace("__host__ __device__ inline", "template <int N> __device__"): "no thread fills an array",
}


@pytest.mark.parametrize("above", FUNCTIONS)
def test_functions_that_are_left_alone(above: str) -> None:
    called = "look<1>" if "template" in above else "look"
    text = kernel("", f"y[i] = {called}(x[i], 2.0f);", above=above)
    assert FUNCTIONS[above] in refusal(ask(text), NAME)
