"""Additions of floats in shared memory, one a warp where all lanes come together; left alone elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ideas.running import after, ask, candidates, refusal, rewritten, run

NAME = "atomic-once-a-warp"


def kernel(body: str, *, float_: str = "float", dtype: str = "f32", block: str = "64") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 300
//   buffer   x: {dtype}[n] in integers(-9, 9)
//   buffer   y: {dtype}[8 * ((n + 63) / 64)] inout zeros
//   launch   gather<<<(n + 63) / 64, {block}>>>(x, y, n)
__global__ void gather(const {float_}* x, {float_}* y, int n) {{
    __shared__ {float_} total, parts[4];
    __shared__ {float_}2 both;
    __shared__ int count;
    int i = blockIdx.x * 64 + threadIdx.x;
    {float_} v = i < n ? x[i] : 0;
    if (threadIdx.x < 4) parts[threadIdx.x] = 0;
    if (threadIdx.x == 0) {{
        total = both.x = both.y = 0;
        count = 0;
    }}
    __syncthreads();
    {body}
    __syncthreads();
    if (threadIdx.x == 0) {{
        y[8 * blockIdx.x] = total;
        y[8 * blockIdx.x + 1] = both.x;
        y[8 * blockIdx.x + 2] = both.y;
        y[8 * blockIdx.x + 3] = parts[2];
        y[8 * blockIdx.x + 4] = count;
    }}
}}
"""


MADE: dict[str, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    "one variable": ("atomicAdd(&total, v);", lambda x: (x.sum(), 0, 0, 0)),
    "parts of a vector": (
        "atomicAdd(&both.x, v);\n    atomicAdd(&both.y, 2 * v);", lambda x: (0, x.sum(), 2 * x.sum(), 0)),
    "an element": ("const int at = 2;\n    atomicAdd(&parts[at], v);", lambda x: (0, 0, 0, x.sum())),
    "under a test": ("if (v > 0 && i < n) atomicAdd(&total, v);", lambda x: (np.maximum(x, 0).sum(), 0, 0, 0)),
    "under a test with braces": ("if (v > 0) {\n        atomicAdd(parts + 2, v + 1);\n    }",
                                 lambda x: (0, 0, 0, (x + 1)[x > 0].sum())),
    "in turns that all threads take": ("for (int k = 0; k < 3; ++k) {\n        atomicAdd(&total, k * v);\n    }",
                                       lambda x: (3 * x.sum(), 0, 0, 0)),
    "where the whole block goes": ("if (n > 100) {\n        atomicAdd(&total, v);\n    }",
                                   lambda x: (x.sum() if x.size > 64 else 0, 0, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("case", MADE)
def test_a_warp_sends_its_sum(case: str, dtype: str) -> None:
    body, golden = MADE[case]
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    request = ask(kernel(body, float_={"f32": "float", "f64": "double"}[dtype], dtype=dtype))
    (candidate,) = candidates(request, NAME)
    for n in (64, 300) if case != "where the whole block goes" else (300,):
        x = np.random.default_rng(n).integers(-9, 9, n).astype(kind)
        blocks = -(-n // 64)
        given = {"x": x, "y": np.zeros(8 * blocks, kind)}
        made = run(rewritten(request, candidate), request.workload, given, n=n)["y"].reshape(blocks, 8)
        for block in range(blocks):
            own = x[64 * block : 64 * block + 64]
            expected = golden(np.concatenate([own, np.zeros(64 - own.size, kind)]))
            if case == "where the whole block goes":
                expected = (own.sum(), 0, 0, 0)
            np.testing.assert_array_equal(made[block, :4], expected)
    assert "one thread alone" in refusal(after(request, candidate), NAME)


NOT = {
    "integers": ("atomicAdd(&count, 1);", "does not add to one float"),
    "an element of the thread's own": ("atomicAdd(&parts[threadIdx.x % 4], v);", "does not add to one float"),
    "global memory": ("atomicAdd(&y[6], v);", "does not add to one float"),
    "a result that is used": ("float was = atomicAdd(&total, v);", "returns is used"),
    "some have left": ("if (i >= n) return;\n    atomicAdd(&total, v);", "not all lanes come"),
    "turns of its own": (
        "for (int k = 0; k < threadIdx.x; ++k) {\n        atomicAdd(&total, v);\n    }", "not all lanes come"),
    "as often as it likes": (
        "do {\n        atomicAdd(&total, v);\n        v -= 1;\n    } while (v > 0);", "not all lanes come"),
    "a turn that ends early": (
        "for (int k = 0; k < 3; ++k) {\n        if (k > v) break;\n        atomicAdd(&total, v);\n    }",
        "not all lanes come"),
    "under a test with more in it": (
        "if (v > 0) {\n        v += 1;\n        atomicAdd(&total, v);\n    }", "not all lanes come"),
    "under a test with another way": (
        "if (v > 0) {\n        atomicAdd(&total, v);\n    } else {\n        v = 1;\n    }", "not all lanes come"),
    "thread 0 alone": ("if (threadIdx.x == 0) atomicAdd(&total, v);", "one thread alone"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT)
def test_it_says_why_every_lane_sends_its_own(case: str) -> None:
    body, words = NOT[case]
    assert words in refusal(ask(kernel(body)), NAME)


def test_blocks_that_are_no_whole_warps() -> None:
    assert "whole number of warps" in refusal(ask(kernel("atomicAdd(&total, v);", block="dim3(8, 8)")), NAME)
