"""Packs where a loop counts, where an array is seen through a cast, and where threads work together out of sight."""

import numpy as np
import pytest

from agent.ideas import source
from tests.ideas.running import ask, candidates, refusal, rewritten, run
from tests.ideas.test_vector_access import NAME, scale

GRID = "for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x)"
COUNTED = """\
__device__ void add_up(int& mine) {
    __shared__ int all[64];
    all[threadIdx.x] = mine;
    __syncthreads();
    mine = 0;
    for (int k = 0; k < 64; ++k) mine += all[k];
}
// cuda-lsp: workload
//   size     rows = 5, cols = 512
//   buffer   x: f32[rows * cols] in integers(-9, 9)
//   buffer   y: i32[rows] out
//   launch   count<<<rows, 64>>>(x, y, cols)
__global__ void count(const float* x, int* y, int cols) {
    int above = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        if (x[blockIdx.x * cols + c] > 0.0f) LINE;
    }
    add_up(above);
    if (threadIdx.x == 0) y[blockIdx.x] = above;
}
"""


@pytest.mark.parametrize("line", ["++above", "above++", "above += 1"])
def test_a_count_that_a_function_takes_by_reference_afterwards(line: str) -> None:
    request = ask(COUNTED.replace("LINE", line))
    (candidate,) = candidates(request, NAME)
    for cols in (1, 63, 512, 514):
        x = np.random.default_rng(cols).integers(-9, 9, 5 * cols).astype(np.float32)
        made = run(rewritten(request, candidate), request.workload, {"x": x}, rows=5, cols=cols)["y"]
        np.testing.assert_array_equal(made, (x.reshape(5, cols) > 0).sum(1))


@pytest.mark.parametrize(
    "line",
    ["y[blockIdx.x] = above++", "{ int& other = above; ++other; }", "add_up(above)", "{ int* p = &above; ++*p; }"],
)
def test_a_count_that_the_loop_uses_or_gives_away(line: str) -> None:
    assert NAME not in [idea.name for idea in source.propose(ask(COUNTED.replace("LINE", line))).ideas]


RECAST = """\
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[4 * n] in normal
//   buffer   y: f32[4 * n] out
//   launch   twice<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void twice(const float* x, float* y, int n) {
    POINTERS
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = FROM[i];
    v.x *= 2.0f;
    TO[i] = v;
}
"""


@pytest.mark.parametrize(
    ("pointers", "loaded", "stored"),
    [
        ("", "((const float4*)x)", "reinterpret_cast<float4*>(y)"),
        ("const float4* p = (const float4*)x;\n    float4* q = reinterpret_cast<float4*>(y);", "p", "q"),
    ],
)
def test_what_is_moved_as_another_type_already(pointers: str, loaded: str, stored: str) -> None:
    text = RECAST.replace("POINTERS", pointers).replace("FROM", loaded).replace("TO", stored)
    assert "is moved as another type than x is declared with" in refusal(ask(text), NAME)


def test_threads_that_work_together_in_what_they_call() -> None:
    body = "if (i >= n) return;\n    y[i] = around(x[i]);"
    helper = "__device__ float around(float v) {\n    __shared__ float all[128];\n    return v + all[0];\n}\n"
    text = helper + scale(body)
    assert "looks at the thread index by itself" in refusal(ask(text), NAME)
    shared = scale("__shared__ float all[128];\n    " + body.replace("around(x[i])", "x[i] + all[0]"))
    assert "work together already (`all`)" in refusal(ask(shared), NAME)


def test_what_is_worked_out_from_a_threads_own_share_and_stored() -> None:
    body = (
        "float s = 0.0f;\n    for (int j = threadIdx.x; j < n; j += blockDim.x) s += x[j];\n"
        "    const float twice = 2.0f * s, more = twice + 1.0f;\n    y[threadIdx.x] = more;"
    )
    assert "what it makes of them is stored" in refusal(ask(scale(body, "<<<1, 128>>>(x, y, n)", index="")), NAME)


@pytest.mark.parametrize("spelled", ["blockIdx.x", "b"])
def test_the_block_s_number_in_a_loop_over_the_grid(spelled: str) -> None:
    body = f"int b = blockIdx.x;\n    {GRID} y[j] = x[j] + {spelled};"
    assert "depends on the thread" in refusal(ask(scale(body, "<<<3, 128>>>(x, y, n)", index="")), NAME)
