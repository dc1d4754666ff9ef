"""Secret numbers can be drawn again from their root, and only from it."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from agent.evaluation.draws import draw_between, draw_seed, drawing, fresh_root
from agent.evaluation.judge import Judged, examine
from agent.evaluation.prepare import Prepared, prepare
from tests.evaluation.kernels import original, rewrite, setting

ADD = """
// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   add<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
"""


def test_a_stream_is_a_keyed_hash_of_stage_and_count():
    root = "00112233445566778899aabbccddeeff"
    with drawing(root, "contract"):
        drawn = [draw_seed(), draw_seed()]
    key = bytes.fromhex(root)
    wide = [hashlib.blake2b(f"contract\0{i}".encode(), digest_size=16, key=key).digest() for i in (0, 1)]
    assert drawn == [int.from_bytes(one[:8], "big") >> 1 for one in wide]


def test_one_stage_moves_no_other_and_nesting_comes_back():
    root = fresh_root()
    with drawing(root, "a"):
        first, second = draw_seed(), draw_seed()
    with drawing(root, "a"):
        again = draw_seed()
        with drawing(root, "b"):
            other = draw_seed()
        assert (again, draw_seed()) == (first, second)
    assert other not in (first, second)


def test_outside_and_under_other_roots_numbers_are_others():
    roots = [fresh_root() for _ in range(3)]
    assert len(set(roots)) == 3
    found = []
    for root in roots:
        with drawing(root, "a"):
            found.append(draw_seed())
    found += [draw_seed(), draw_seed()]
    assert len(set(found)) == 5
    assert all(0 <= seed < 2**63 for seed in found)


@given(st.integers(-100, 100), st.integers(0, 1000), st.booleans())
def test_numbers_between_stay_between(low: int, more: int, inside: bool):
    if not inside:
        assert low <= draw_between(low, low + more) <= low + more
        return
    with drawing("00" * 16, "a"):
        assert low <= draw_between(low, low + more) <= low + more


def _by_contents(found: Judged):
    return {(run.sizes, run.family, run.inputs): run for run in found.runs}


def test_the_same_roots_give_the_same_runs_and_fresh_ones_others():
    program, workload = original(ADD)
    changed = rewrite(ADD.replace("x[i] + 1.0f", "1.0f + x[i]"), program.plan)

    def runs(secret: str, own: str):
        prepared = prepare(program, workload, setting(secret=secret, depth="full"))
        assert isinstance(prepared, Prepared)
        return examine(prepared, changed, secret=own)

    one, own = fresh_root(), fresh_root()
    first, second, third = runs(one, own), runs(one, own), runs(one, fresh_root())
    assert first.verdict.correctness.state == "right"
    assert len(first.runs) > 10
    one_run, same_run = _by_contents(first), _by_contents(second)
    both = one_run.keys() & same_run.keys()  # a machine that is slow for a moment leaves some out
    assert len(both) > 10 and all(one_run[key] == same_run[key] for key in both)
    assert first.secret == own != third.secret
    normal = [{run.inputs for run in found.runs if run.family == "normal"} for found in (first, third)]
    assert normal[0] and normal[1] and not normal[0] & normal[1]
    for seen in (seen for run in first.runs for seen in run.outputs):
        assert seen.original == seen.candidate != ""
