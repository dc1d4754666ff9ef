"""Buffers that lie where the original allows: no answer hangs on an address; what a rewrite no longer takes is said."""

import pytest

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from agent.workload.program import Program
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.test_cards import Card

TEXT = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
BODY = "if (i < n) y[i] = 2.0f * x[i];"
UNALIGNED = "buffers that are not aligned as cudaMalloc aligns them: the original takes them, this does not"
IN_PLACE = "y in the place of x: the original can be called so, this cannot"

Side = tuple[Prepared, Program]


def side(text: str, **more: object) -> Side:
    program, workload = original(text)
    prepared = prepare(program, workload, setting(depth="full", **more))
    assert isinstance(prepared, Prepared)
    return prepared, program


@pytest.fixture(scope="module", params=["emulator", "card"])
def plain(request: pytest.FixtureRequest) -> Side:
    return side(TEXT, **({"device": Card()} if request.param == "card" else {}))


def verdict(found: Side, body: str, old: str = BODY, text: str = TEXT) -> Verdict:
    prepared, program = found
    assert old in text
    return judge(prepared, rewrite(text.replace(old, body), program.plan))


def test_an_honest_rewrite_takes_what_the_original_takes(plain: Side) -> None:
    found = verdict(plain, "if (i < n) y[i] = x[i] + x[i];")
    assert found.correctness.state == "right", found.gates[-1]
    assert not {UNALIGNED, IN_PLACE} & set(found.evidence.not_checked)


def test_vectors_need_aligned_addresses_and_that_is_said(plain: Side) -> None:
    vectors = """if (4 * i + 3 < n) {
        float4 v = ((const float4*)x)[i];
        ((float4*)y)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    } else for (int k = 4 * i; k < n; k++) y[k] = 2.0f * x[k];"""
    found = verdict(plain, vectors)
    assert found.correctness.state == "right", found.gates[-1]
    assert UNALIGNED in found.evidence.not_checked and IN_PLACE not in found.evidence.not_checked


def test_an_answer_that_hangs_on_the_address_is_wrong(plain: Side) -> None:
    found = verdict(plain, "if (i < n) y[i] = ((unsigned long long)x & 255) ? 0.0f : 2.0f * x[i];")
    assert found.correctness.state == "wrong" and found.gates[-1].gate in ("memory", "correctness")
    if found.gates[-1].gate == "memory":
        assert "buffers 4 bytes past an aligned address" in found.correctness.reason


SUM = """
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in normal
//   buffer   y: f32[1] out
//   launch   total<<<1, 1>>>(x, y, n)
__global__ void total(const float* x, float* y, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += x[i];
    y[0] = s;
}
"""


def test_who_begins_with_vectors_elsewhere_may_sum_in_another_order() -> None:
    """Four partial sums, begun at the next address that vectors can be read from: other last bits, and right."""
    peeled = """float s = 0.0f; int i = 0;
    for (; i < n && ((unsigned long long)(x + i) & 15); i++) s += x[i];
    float4 t = make_float4(0, 0, 0, 0);
    for (; i + 3 < n; i += 4) {
        float4 v = *(const float4*)(x + i);
        t.x += v.x; t.y += v.y; t.z += v.z; t.w += v.w;
    }
    s += (t.x + t.y) + (t.z + t.w);
    for (; i < n; i++) s += x[i];"""
    old = "float s = 0.0f;\n    for (int i = 0; i < n; i++) s += x[i];"
    found = verdict(side(SUM), peeled, old, SUM)
    assert found.correctness.state == "right", found.gates[-1]
    assert UNALIGNED not in found.evidence.not_checked


def test_one_that_reads_again_what_it_has_written_cannot_be_called_in_place(plain: Side) -> None:
    found = verdict(plain, "if (i < n) { y[i] = 0.0f; y[i] += 2.0f * x[i]; }")
    assert found.correctness.state == "right", found.gates[-1]
    assert IN_PLACE in found.evidence.not_checked


def test_where_the_original_cannot_either_nothing_is_said() -> None:
    """Its neighbour may have been overwritten by then: a race, whatever comes out."""
    text = TEXT.replace(BODY, "if (i < n) y[i] = x[i] + x[(i + 1) % n];")
    found = verdict(side(text), "x[(i + 1) % n] + x[i]", "x[i] + x[(i + 1) % n]", text)
    assert found.correctness.state == "right", found.gates[-1]
    assert IN_PLACE not in found.evidence.not_checked
