"""Structs by value on a real card: timed, with every output checked."""

import pytest

from agent.evaluation.measures.measuring import check_outputs
from agent.execution.gpu import Gpu
from tests.gpu.racing import entry, race

pytestmark = pytest.mark.gpu

SOURCE = """
struct Row { const float* at; short step; };
struct P { char tag; double scale; Row row; float* out; int n; float3 v; };
// cuda-lsp: workload
//   size     n = 1 << 20
//   buffer   x: f32[2 * n + 16] in
//   buffer   y: f32[n] out
//   launch   k<<<(n + 255) / 256, 256>>>({.tag = 3, .scale = 0.5, .row = {x + 16, 2}, .out = y, .n = n, .v = {.z = 4}})
__global__ void k(P p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.out[i] = p.scale * p.row.at[i * p.row.step] + p.v.z + p.tag;
}
"""


def test_timed_calls_get_their_struct(card: Gpu) -> None:
    one, family = entry(SOURCE, card)
    timed = card.race(race(one, one, family))
    assert timed.status == "ok", timed.message
    assert check_outputs(card, race(one, one, family), timed) == ""
