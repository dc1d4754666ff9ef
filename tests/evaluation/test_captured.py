"""Verdicts over contents that were captured: a walk over a linked list, which no generator would make."""

from collections.abc import Iterator

import numpy as np
import pytest

from agent.evaluation.judge import examine
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.record.making import record
from agent.workload import data
from tests.evaluation.kernels import original, rewrite, setting

COUNT = 256
WALK = """
// cuda-lsp: workload
//   const    n = 256
//   buffer   next: i32[256] in data(NEXT)
//   buffer   weight: f32[256] in data(WEIGHT)
//   buffer   sum: f32[256] out
//   launch   walk<<<2, 128>>>(next, weight, sum, n)
__global__ void walk(const int* next, const float* weight, float* sum, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    float total = 0.0f;
    for (int at = i; at >= 0; at = next[at]) total += weight[at];
    sum[i] = total;
}
"""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    place = tmp_path_factory.mktemp("walk")
    draw = np.random.default_rng(3)
    # lists of eight: each element knows the one that follows it, the last none
    following = np.where(np.arange(COUNT) % 8 == 7, -1, np.arange(1, COUNT + 1)).astype("<i4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place))
        text = WALK
        for name, values in (("NEXT", following), ("WEIGHT", draw.standard_normal(COUNT).astype("<f4"))):
            file = place / name
            file.write_bytes(values.tobytes())
            text = text.replace(name, data.keep(file))
        program, workload = original(text)
        found = prepare(program, workload, setting())
        assert isinstance(found, Prepared), found
        yield found


def test_the_original_keeps_its_contract_on_them(walk: Prepared) -> None:
    """Any other indices would lead it out of bounds, or round for ever."""
    assert not walk.contract.broken
    assert walk.selftest.families == ("captured",)


def test_that_contents_cannot_be_drawn_otherwise_is_no_sign_of_their_influencing_nothing(walk: Prepared) -> None:
    assert walk.selftest.silent == ()


@pytest.mark.parametrize(
    ("condition", "state"), [("at != -1", "right"), ("at >= 0 && at % 8 != 7", "wrong")], ids=["right", "wrong"]
)
def test_rewrites_are_judged_on_them(condition: str, state: str, walk: Prepared) -> None:
    text = walk.original.document.text.decode()
    candidate = rewrite(text.replace("at >= 0;", f"{condition};"), walk.original.plan)
    judged = examine(walk, candidate)
    assert judged.verdict.correctness.state == state, judged.verdict.correctness
    if state == "right":
        assert "contents of next, weight other than those captured" in judged.verdict.evidence.not_checked
        left = record(walk, candidate, judged).left_out
        assert "captured contents of next, weight: a replay needs them on its own machine" in left
