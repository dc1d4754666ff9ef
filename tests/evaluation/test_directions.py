"""Pairs of kernels of which a card is known to prefer one: the estimate must too.

What is known is measured (docs/fixtures.md) or follows from what the hardware documents; no figure is asked for, only
which of two is faster, and by more than the model's own error where a card shows that clearly.
"""

import functools

import pytest

from agent.evaluation.estimates.counting import Recipe
from agent.evaluation.estimates.estimate import Estimate, estimate
from agent.evaluation.estimates.traffic import MODEL_ERROR
from agent.execution.compiler import build
from agent.execution.compiler.result import Build
from tests.evaluation.kernels import original, setting

CLEARLY = 1 + MODEL_ERROR

N = 4096
HEAD = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n * n] in normal
//   buffer   y: f32[n * n] inout normal
//   launch   k<<<{grid}, {block}>>>(x, y, n)
"""
SQUARE = HEAD.format(grid="dim3(n / 32, n / 32)", block="dim3(32, 8)")
ROWS = HEAD.format(grid="n / 256", block="256")
EACH = HEAD.format(grid="n * n / 256", block="256")
START = "__global__ void k({const}float* x, float* y, int n) {{ {body} }}"


def kernel(head: str, body: str, const: str = "const ") -> str:
    return head + START.format(const=const, body=body)


OUTER = "int c = blockIdx.x * 32, r = blockIdx.y * 32, t = threadIdx.x; for (int k = threadIdx.y; k < 32; k += 8)"
WRITES_DOWN_COLUMNS = kernel(SQUARE, f"{OUTER} y[(c + t) * n + r + k] = x[(r + k) * n + c + t];")
READS_DOWN_COLUMNS = kernel(SQUARE, f"{OUTER} y[(c + k) * n + r + t] = x[(r + t) * n + c + k];")
TILE = kernel(
    SQUARE,
    f"__shared__ float s[32][33]; {OUTER} s[k][t] = x[(r + k) * n + c + t]; __syncthreads();"
    " for (int k = threadIdx.y; k < 32; k += 8) y[(c + k) * n + r + t] = s[t][k];",
)
CONFLICTS = TILE.replace("[33]", "[32]")
ROW_A_THREAD = kernel(
    ROWS,
    "int i = blockIdx.x * 256 + threadIdx.x; float s = 0; for (int j = 0; j < 128; j++) s += x[i * n + j]; y[i] = s;",
)
COLUMN_A_THREAD = ROW_A_THREAD.replace("x[i * n + j]", "x[j * n + i]")
SUM_IN_MEMORY = kernel(
    ROWS, "int i = blockIdx.x * 256 + threadIdx.x; for (int j = 0; j < 128; j++) y[i] += x[j * n + i];", ""
)
SUM_IN_A_REGISTER = kernel(
    ROWS,
    "int i = blockIdx.x * 256 + threadIdx.x; float s = y[i]; for (int j = 0; j < 128; j++) s += x[j * n + i];"
    " y[i] = s;",
    "",
)
ATOMIC_A_THREAD = kernel(EACH, "atomicAdd(y, x[blockIdx.x * 256 + threadIdx.x]);")
ATOMIC_A_WARP = kernel(
    EACH,
    "float v = x[blockIdx.x * 256 + threadIdx.x]; for (int k = 16; k > 0; k /= 2)"
    " v += __shfl_down_sync(0xffffffff, v, k); if (threadIdx.x % 32 == 0) atomicAdd(y, v);",
)
STRIDED_RECORDS = kernel(
    HEAD.format(grid="n * n / 1024", block="256"),
    "int i = 4 * (blockIdx.x * 256 + threadIdx.x); for (int k = 0; k < 4; k++) y[i + k] = x[i + k];",
    "",
)
WHOLE_RECORDS = kernel(
    HEAD.format(grid="n * n / 1024", block="256"),
    "int i = blockIdx.x * 256 + threadIdx.x; ((float4*)y)[i] = ((const float4*)x)[i];",
)
SCALARS = kernel(EACH, "int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i];")
DIVIDES = kernel(
    EACH,
    "int i = blockIdx.x * 256 + threadIdx.x; float v = x[i]; for (int k = 1; k < 64; k++) v = v / (v + k); y[i] = v;",
)
DIVIDES_ROUGHLY = DIVIDES.replace("v / (v + k)", "__fdividef(v, v + k)")


@functools.cache
def found(text: str) -> Estimate:
    program, workload = original(text)
    built = build(program, setting().options)
    assert isinstance(built, Build), built
    counted = estimate(program, built, workload, setting(), [Recipe({"n": N}, ((1.0, {"n": N}),))])
    assert isinstance(counted, Estimate), counted
    return counted


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        (WRITES_DOWN_COLUMNS, READS_DOWN_COLUMNS),
        (READS_DOWN_COLUMNS, TILE),
        (CONFLICTS, TILE),
        (ROW_A_THREAD, COLUMN_A_THREAD),
        (SUM_IN_MEMORY, SUM_IN_A_REGISTER),
        (ATOMIC_A_THREAD, ATOMIC_A_WARP),
        (STRIDED_RECORDS, WHOLE_RECORDS),
        (DIVIDES, DIVIDES_ROUGHLY),
    ],
    ids=[
        "stores scatter, loads gather",
        "tile",
        "bank conflicts",
        "rows",
        "register",
        "atomics",
        "records",
        "divisions",
    ],
)
def test_what_a_card_prefers_is_clearly_faster(slower: str, faster: str) -> None:
    assert found(slower).seconds > CLEARLY * found(faster).seconds


def test_wide_accesses_gain_nothing_where_dram_is_the_limit() -> None:
    scalars, wide = found(SCALARS), found(WHOLE_RECORDS)
    assert wide.counts["requests"] == scalars.counts["requests"] / 4
    assert wide.limit == "DRAM bandwidth"
    assert scalars.seconds == pytest.approx(wide.seconds, rel=MODEL_ERROR)
