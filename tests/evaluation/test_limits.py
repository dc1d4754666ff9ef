"""Past the declared sizes, and what no verdict checks."""

import re

import pytest
from attrs import evolve

from agent.evaluation.contents import aimed
from agent.evaluation.declared import TOO_LONG, Unsampled
from agent.evaluation.gates import correctness
from agent.evaluation.judge import judge
from agent.evaluation.limits import limits
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from tests.evaluation.kernels import SOFTMAX, original, rewrite, setting

ROWS = """
// cuda-lsp: workload
//   size     rows = 64
//   size     cols = 1024
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows] out
//   launch   sums<<<rows, 128>>>(x, y, cols)
__global__ void sums(const float* x, float* y, int cols) {
    __shared__ float row[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];
    row[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 128; i++) sum += row[i];
        y[blockIdx.x] = sum;
    }
}
"""


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    program, workload = original(ROWS)
    found = prepare(program, workload, setting(depth="full"))
    assert isinstance(found, Prepared), found
    return found


def judged(prepared: Prepared, old: str, new: str) -> Verdict:
    assert old in ROWS
    return judge(prepared, rewrite(ROWS.replace(old, new), prepared.original.plan))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for (int i = threadIdx.x; i < cols;", "for (int i = threadIdx.x; i < min(cols, 1024);"),
        ("__shared__ float row[128];", "__shared__ float row[1024]; for (int i = 1024; i < cols; i++) row[i] = 0.0f;"),
    ],
    ids=["clamped", "an array of the declared length"],
)
def test_what_holds_for_the_declared_size_only_is_wrong(prepared: Prepared, old: str, new: str) -> None:
    found = judged(prepared, old, new)
    assert found.correctness.state == "wrong"
    where = re.search(r"cols=(\d+)", found.correctness.reason)
    assert where is not None and int(where[1]) > 1024


def test_what_holds_above_says_so(prepared: Prepared) -> None:
    found = judged(prepared, "i < cols; i += 128", "i < cols; i += blockDim.x")
    assert found.correctness.state == "right"
    assert "rows=97 cols=1537" in found.correctness.sizes
    assert "sizes above the declared ones" not in found.evidence.not_checked
    assert not any("races" in words for words in found.evidence.not_checked)
    assert found.evidence.inexact == () and not any("last bits" in words for words in found.evidence.not_checked)


def test_a_screen_says_that_it_went_no_further(prepared: Prepared) -> None:
    screen = evolve(prepared, setting=evolve(prepared.setting, depth="screen"))
    found = judged(screen, "i < cols; i += 128", "i < cols; i += blockDim.x")
    assert "sizes above the declared ones" in found.evidence.not_checked


def test_a_range_that_nobody_stated_is_named() -> None:
    text = "// cuda-lsp: workload\n//   buffer a: i32[64] in{}\n//   buffer b: i32[64] out\n"
    text += "//   launch k<<<1, 64>>>(a, b)\n"
    kernel = "__global__ void k(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }\n"
    _, assumed = original(text.format("") + kernel)
    _, stated = original(text.format(" integers(0, 9)") + kernel)
    assert any("in a," in words for words in limits(assumed, beyond=True))
    assert not any("in a," in words for words in limits(stated, beyond=True))


def test_races_are_listed_where_nobody_looked_for_them() -> None:
    _, workload = original(ROWS)
    assert "races within a launch" in limits(workload, beyond=True, races=False)
    assert limits(workload, beyond=True, races=True) == ("sizes above the largest that ran",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\tmembar.gl;", True),
        ("\t@%p1 fence.acq_rel.gpu;", True),
        ("\tld.acquire.gpu.global.u32 \t%r1, [%rd1];", True),
        ("\tatom.global.add.u32 \t%r1, [%rd1], 1;", False),
        ("// membar.gl", False),
    ],
)
def test_one_interleaving_is_not_all_where_blocks_hand_over_data(line: str, said: bool) -> None:
    _, workload = original(ROWS)
    found = limits(workload, beyond=True, ptx=f".entry k()\n{{\n{line}\n\tret;\n}}")
    assert any("in another order" in words for words in found) is said


def test_what_a_card_may_round_otherwise_is_named() -> None:
    program, workload = original(SOFTMAX)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    other = SOFTMAX.replace("expf(in[i] - peak) / sum", "expf(in[i] - peak) * __frcp_rn(sum)")
    quick = SOFTMAX.replace("expf(in[i] - peak) / sum", "__fdividef(expf(in[i] - peak), sum)")
    plain, fast = (judge(found, rewrite(text, program.plan), allow_lossy=True) for text in (other, quick))
    assert plain.evidence.inexact == ("ex2.approx.ftz.f32",)
    assert fast.evidence.inexact == ("div.approx.f32", "ex2.approx.ftz.f32")
    words = "the last bits of a card: PTX leaves those of div.approx.f32, ex2.approx.ftz.f32 open, within an error"
    assert words in fast.evidence.not_checked


def test_of_many_opcodes_a_few_are_named() -> None:
    _, workload = original(ROWS)
    said = limits(workload, beyond=True, inexact=("a", "b", "c", "d", "e"))
    assert any("those of a, b, c, 2 more open" in words for words in said)


def test_what_is_not_checked_is_said_once_and_with_its_reason(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aimed, "BUDGET", {"screen": 0, "full": 0})
    monkeypatch.setattr(correctness, "_affordable", lambda trial: False)
    monkeypatch.setattr(correctness, "sample_at", lambda *asked: Unsampled(TOO_LONG))
    monkeypatch.setattr(Prepared, "sample_above", lambda self: Unsampled(TOO_LONG))
    same = "sum = cols > 3000 && blockIdx.x >= gridDim.x ? 1.0f : 0.0f;"
    found = judged(prepared, "sum = 0.0f;", same).evidence.not_checked
    above = [words for words in found if words.startswith("sizes above the declared ones")]
    assert above == ["sizes above the declared ones: too long to run in the emulator here"]
    pointed = [words for words in found if "a number of one of the two programs points to" in words]
    assert pointed and all(words.endswith(": too long to run in the emulator here") for words in pointed)
    assert any(re.match(r"the size rows=\d+ cols=3000, that", words) for words in pointed)
    assert len(set(found)) == len(found)
