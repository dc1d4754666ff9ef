"""The emulator's shadow as the oracle of numerics: for half kernels, beside the promoted original, where it fails."""

import numpy as np
import pytest
from attrs import evolve

from agent.evaluation import runs
from agent.evaluation.comparators import Expected
from agent.evaluation.declared import Sample
from agent.evaluation.judge import judge
from agent.evaluation.oracles import shadows
from agent.evaluation.oracles.shadows import as_oracle, disagreement, shadowed, wide_of
from agent.evaluation.oracles.truth import Truth, truth
from agent.evaluation.prepare import PROMOTED, SHADOW, Prepared, prepare
from agent.evaluation.values import to_floats
from agent.evaluation.verdict import Verdict
from agent.execution.device import Answer, Recipe, Request
from tests.evaluation.kernels import original, rewrite, setting

HALF_ROWSUM = """#include <cuda_fp16.h>
// cuda-lsp: workload
//   size     rows = 40, cols = 1000
//   buffer   x: f16[rows * cols] in uniform(0.505, 0.52)
//   buffer   y: f16[rows] out
//   launch   rowsum<<<(rows + 31) / 32, 32>>>(x, y, rows, cols)
__global__ void rowsum(const __half* x, __half* y, int rows, int cols) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) sum += __half2float(x[(size_t)row * cols + i]);
    y[row] = __float2half(sum);
}
"""
IN_HALF = HALF_ROWSUM.replace("float sum = 0.0f;", "__half sum = __float2half(0.0f);")
IN_HALF = IN_HALF.replace(
    "sum += __half2float(x[(size_t)row * cols + i]);", "sum = __hadd(sum, x[(size_t)row * cols + i]);"
)
IN_HALF = IN_HALF.replace("__float2half(sum);", "sum;")

BITS = """
// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in uniform(1, 2)
//   buffer   y: f32[n] out
//   launch   flip<<<(n + 63) / 64, 64>>>(x, y, n)
__global__ void flip(const float* x, float* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = __int_as_float(__float_as_int(x[i] * 0.1f) ^ 0x80000000) + 0.3f;
}
"""


def prepared(text: str) -> Prepared:
    program, workload = original(text)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    return found


@pytest.fixture(scope="module")
def halves() -> Prepared:
    return prepared(HALF_ROWSUM)


def _verdict(of: Prepared, text: str) -> Verdict:
    return judge(of, rewrite(text, of.original.plan))


def test_a_half_kernel_has_an_oracle_and_the_verdict_names_it(halves: Prepared) -> None:
    assert halves.oracle.startswith(SHADOW) and "narrower" in halves.oracle
    unrolled = HALF_ROWSUM.replace("    for (int i", "    #pragma unroll 4\n    for (int i")
    found = _verdict(halves, unrolled)
    assert (found.correctness.state, found.precision.state) == ("right", "same"), found
    assert found.precision.oracle == halves.oracle and found.precision.original_error is not None


def test_half_sums_for_float_sums_are_less_precise(halves: Prepared) -> None:
    """Each sum in halves rounds 0.51 to 0.5 once it is large."""
    found = _verdict(halves, IN_HALF).precision
    assert found.state == "less"
    assert found.candidate_error is not None and found.original_error is not None
    assert found.candidate_error > 10 * found.original_error


def test_the_oracle_of_halves_is_numpy_s_sum(halves: Prepared) -> None:
    first = next(iter(halves.cache.truths.values()))
    (expected,) = first.expected
    x = to_floats(first.before.given["x"], "f16")
    rows = len(expected.original) // 2
    assert expected.oracle is not None
    np.testing.assert_allclose(expected.oracle, x.reshape(rows, -1).sum(axis=1), rtol=1e-13)


def test_what_works_on_the_bits_of_a_float_is_judged_by_the_shadow() -> None:
    found = prepared(BITS)
    assert found.oracle.startswith(SHADOW) and "bits of a float" in found.oracle
    worse = BITS.replace("x[i] * 0.1f", "(float)(__half)x[i] * 0.1f").replace("\n//", "#include <cuda_fp16.h>\n//", 1)
    assert _verdict(found, worse).precision.state == "less"


def test_a_promoted_original_must_agree_with_the_shadow() -> None:
    found = prepared(BITS.replace("__int_as_float(__float_as_int(x[i] * 0.1f) ^ 0x80000000)", "-x[i] * 0.1f"))
    assert found.oracle == PROMOTED
    case = next(iter(found.cache.truths))
    known = truth(found.bench, case)
    assert isinstance(known, Truth)
    answer = shadowed(found.setting, found.build, known.before)
    assert answer is not None
    expected = {item.name: item for item in known.expected}
    assert disagreement(answer, expected) == ""
    oracle = expected["y"].oracle
    assert oracle is not None
    off = {"y": evolve(expected["y"], oracle=oracle * (1 + 1e-5))}
    assert "y" in disagreement(answer, off)
    stray = oracle.copy()
    stray[0] += 1.0  # one lane took another branch
    assert disagreement(answer, {"y": evolve(expected["y"], oracle=stray)}) == ""


def test_where_the_shadow_could_not_follow_the_original_stands_or_there_is_no_oracle() -> None:
    found = prepared(BITS)
    known = truth(found.bench, next(iter(found.cache.truths)))
    assert isinstance(known, Truth)
    answer = shadowed(found.setting, found.build, known.before)
    assert answer is not None and answer.shadows is not None
    original_bytes = answer.outputs["y"]
    lanes = np.ones(len(original_bytes) // 4, np.bool_)
    plain = wide_of(answer, "y", "f32")
    assert plain is not None and plain.known.all()
    answer.shadows.outputs["y"].flags[0] = 1
    some = as_oracle(answer, "y", "f32", original_bytes, lanes)
    assert some is not None and some.value[0] == to_floats(original_bytes, "f32")[0] and not some.known[0]
    np.testing.assert_array_equal(some.value[1:], plain.value[1:])
    answer.shadows.outputs["y"].flags[: len(lanes)] = 2
    assert as_oracle(answer, "y", "f32", original_bytes, lanes) is None
    assert wide_of(answer, "y", "i32") is None and wide_of(answer, "y", "f64") is None


HALF_SCALE = """#include <cuda_fp16.h>
// cuda-lsp: workload
//   size     n = 60000000
//   buffer   x: f16[n] in normal
//   buffer   y: f16[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const __half* x, __half* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = __float2half(__half2float(x[i]) * 0.3f);
}
"""


def test_the_declared_size_has_it_on_the_blocks_that_run() -> None:
    found = prepared(HALF_SCALE).sample()
    assert isinstance(found, Sample)
    (known,) = found.known
    assert known.oracle is not None and known.places is not None and known.places[-1] > 59_000_000
    given = found.before.given["x"]
    assert isinstance(given, Recipe)
    x = [to_floats(given.make(2 * place, 2 * place + 2), "f16")[0] for place in known.places.tolist()]
    np.testing.assert_allclose(known.oracle, np.array(x) * float(np.float32(0.3)), rtol=1e-14)


class Card:
    """A card as far as anybody asks here."""

    name, emulated = "a card", False

    def run(self, request: Request) -> Answer:
        raise AssertionError("the shadow is the emulator's")


def test_on_a_card_small_contents_have_a_shadow_and_large_ones_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = prepared(BITS)
    before = next(iter(found.cache.truths.values())).before
    on_a_card = evolve(found.setting, device=Card())
    assert shadowed(on_a_card, found.build, before) is not None
    monkeypatch.setattr(shadows, "MOST_ON_A_CARD", 100)
    assert shadowed(on_a_card, found.build, before) is None
    assert shadowed(found.setting, found.build, before) is not None


def test_a_shadow_that_takes_too_long_is_none() -> None:
    found = prepared(BITS)
    before = next(iter(found.cache.truths.values())).before
    assert shadowed(evolve(found.setting, step_cap=10), found.build, before) is None
    assert runs.run(found.setting, found.build, before).shadows is None
    assert isinstance(known := next(iter(found.cache.truths.values())).expected[0], Expected) and known.name == "y"
