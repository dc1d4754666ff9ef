"""Operands in shared memory under the same launch."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, refusal, rewritten, run
from tests.ideas.test_register_blocking import FMA, inputs, matmul

NAME = "shared-tiles"
LAYOUTS = {
    "wide": ("dim3(32, 4)", "dim3((n + 31) / 32, (m + 3) / 4)"),
    "square": ("dim3(16, 16)", "dim3((n + 15) / 16, (m + 15) / 16)"),
    "odd": ("dim3(12, 10)", "dim3((n + 11) / 12, (m + 9) / 10)"),
}
INDEX = "int col = blockIdx.x * blockDim.x + threadIdx.x;\n    int row = blockIdx.y * blockDim.y + threadIdx.y;"
TURNED = "int row = blockIdx.x * blockDim.x + threadIdx.x;\n    int col = blockIdx.y * blockDim.y + threadIdx.y;"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", [16, 8, 32])
def test_a_product_stays_a_product(layout: str, step: int) -> None:
    block, grid = LAYOUTS[layout]
    request = ask(matmul(index=INDEX, launch=f"multiply<<<{grid}, {block}>>>(a, b, c, m, n, k)"), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    assert candidate.plan == request.plan
    tuned = retune(candidate, request, {"step": step})
    assert tuned is not None
    given = inputs(37, 41, 21)
    c = run(rewritten(request, tuned), request.workload, given, m=37, n=41, k=21)["c"]
    np.testing.assert_array_equal(c.reshape(37, 41), given["a"] @ given["b"])


def test_rows_along_x_become_columns_along_the_warp() -> None:
    launch = "multiply<<<dim3((m + 7) / 8, (n + 15) / 16), dim3(8, 16)>>>(a, b, c, m, n, k)"
    request = ask(matmul(index=TURNED, launch=launch), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    assert "own_row = thread / 16, own_col = thread % 16" in candidate.code
    given = inputs(19, 35, 40)
    c = run(rewritten(request, candidate), request.workload, given, m=19, n=35, k=40)["c"]
    np.testing.assert_array_equal(c.reshape(19, 35), given["a"] @ given["b"])


LAYERS = """\
// cuda-lsp: workload
//   size     batch = 3, m = 30, n = 20, k = 12
//   buffer   a: f32[batch * m * k] in
//   buffer   b: f32[k * n] in
//   buffer   c: f32[batch * m * n] out
//   launch   layers<<<dim3((n + 7) / 8, (m + 7) / 8, batch), dim3(8, 8)>>>(a, b, c, m, n, k)
__global__ void layers(const float* a, const float* b, float* c, int m, int n, int k) {
    const int z = blockIdx.z;
    const int layer = z;
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float total = b[0];
    for (int p = 1; p < k; p++) total += a[(layer * m + i) * k + p] * b[p * n + j];
    c[(z * m + i) * n + j] = total;
}
"""


def test_what_a_block_has_one_of_stays_as_it_is() -> None:
    request = ask(LAYERS)
    assert "the same index" in refusal(request, NAME)
    request = ask(LAYERS.replace("c[(z * m", "c[(layer * m"))
    (candidate,) = candidates(request, NAME)
    assert "const int z = blockIdx.z;" in candidate.code and "const int layer = z;" in candidate.code
    generator = np.random.default_rng(8)
    a, b = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 19, 11), (11, 13)))
    c = run(rewritten(request, candidate), request.workload, {"a": a, "b": b}, batch=2, m=19, n=13, k=11)["c"]
    np.testing.assert_array_equal(c.reshape(2, 19, 13), a[:, :, 1:] @ b[1:] + b[0, 0])


OPEN = "multiply<<<dim3((n + 15) / 16, (m + k) / (k + 1)), dim3(16, k + 1)>>>(a, b, c, m, n, k)"
FLAT = "multiply<<<dim3((n + 255) / 256, m), dim3(256, 1)>>>(a, b, c, m, n, k)"
NEAR = {
    "open block": ("two fixed numbers", {"launch": OPEN}),
    "short loop": ("too few to pay", {"sizes": "m = 200, n = 200, k = 5"}),
    "one row": ("shares too little", {"launch": FLAT}),
    "staged already": ("already", {"before": "float sum = 0;\n    __shared__ float s[4];\n    s[0] = 1.0f;"}),
    "no sharing": ("do not fall into two", {"update": FMA.replace("i * n + col", "row * n + i")}),
}


@pytest.mark.parametrize("near", NEAR)
def test_near_misses(near: str) -> None:
    words, changes = NEAR[near]
    assert words in refusal(ask(matmul(index=INDEX, **changes)), NAME)
