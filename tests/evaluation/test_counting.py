"""At which sizes a program is counted, and what kernels of several launches and odd lengths make of it."""

from collections.abc import Iterator

import pytest

from agent.evaluation.estimates import counting
from agent.evaluation.estimates.counting import Recipe, recipes
from agent.evaluation.estimates.estimate import Estimate, estimate, headroom_of, speed
from agent.evaluation.prepare import Prepared, prepare
from agent.execution.compiler import build
from agent.execution.compiler.result import Build
from cuda_lsp.terminal.render import speed_text
from tests.evaluation.kernels import original, rewrite, setting

ROWS = """
// cuda-lsp: workload
//   size     rows = 65536, cols = 1000
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   sums<<<rows / 256, 256>>>(x, y, cols)
__global__ void sums(const float* x, float* y, int cols) {
    int row = blockIdx.x * 256 + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < cols; i++) sum += x[(size_t)row * cols + i];
    y[row] = sum;
}
"""
BY_WARPS = """
__global__ void sums(const float* x, float* y, int cols) {
    for (int row = blockIdx.x * 256 + threadIdx.x / 32; row < blockIdx.x * 256 + 256; row += 8) {
        float sum = 0.0f;
        for (int i = threadIdx.x % 32; i < cols; i += 32) sum += x[(size_t)row * cols + i];
        for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(0xffffffff, sum, k);
        if (threadIdx.x % 32 == 0) y[row] = sum;
    }
}
"""

STEPS = """
// cuda-lsp: workload
//   size     n = 65536, steps = 1000
//   buffer   a: f32[n] inout normal
//   buffer   b: f32[n] inout normal
//   repeat   steps {
//     launch smooth<<<n / 256, 256>>>(a, b, n)
//     swap   a b
//   }
__global__ void smooth(const float* a, float* b, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    b[i] = 0.5f * (a[i] + a[(i + 1) % n]);
}
"""


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """Which recipe works out hangs on time, and a machine may be busy: there is as much as it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "SECONDS", 120.0)
        patch.setattr(counting, "PATIENT", 120.0)
        yield


@pytest.fixture(scope="module")
def rows() -> Prepared:
    program, workload = original(ROWS)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    return found


def choices(prepared: Prepared, slow: bool) -> list[Recipe]:
    return recipes(prepared.bench, prepared.contract, slow)


def test_loops_end_with_the_same_remainder_at_all_points(rows: Prepared) -> None:
    """Of 1000 elements 104 are left over by steps of 128 (32 lanes, unrolled by four)."""
    line = choices(rows, slow=True)[0]
    assert {sizes["cols"] % 128 for _, sizes in line.points} == {1000 % 128}
    assert [part for part, _ in line.points] == sorted(part for part, _ in line.points)


def test_a_row_shared_by_a_warp_is_extrapolated_from_the_same_points(rows: Prepared) -> None:
    """Counted at the declared size and on the line: 1000 elements are 31.25 turns of a warp, and the line through 104,
    232 and 488 of them gives the same within two per cent."""
    program = rewrite(ROWS[: ROWS.index("__global__")] + BY_WARPS, rows.original.plan)
    built = build(program, setting().options)
    assert isinstance(built, Build), built
    drawn, whole = choices(rows, slow=True)[:1], choices(rows, slow=False)[:1]
    line = estimate(program, built, rows.workload, setting(), drawn)
    truth = estimate(program, built, rows.workload, setting(), whole)
    assert isinstance(line, Estimate), line
    assert isinstance(truth, Estimate), truth
    assert "extrapolated" in line.note
    assert line.counts["sectors"] == pytest.approx(truth.counts["sectors"], rel=0.02)
    assert line.counts["instructions"] == pytest.approx(truth.counts["instructions"], rel=0.02)


def test_only_figures_of_other_sizes_than_the_declared_ones_name_theirs(rows: Prepared) -> None:
    found = choices(rows, slow=False)
    top = {size.name: size.value for size in rows.workload.sizes}
    assert found[0].at == "" and dict(found[0].target) == top
    drawn = [recipe for recipe in found if recipe.note.startswith("extrapolated")]
    assert drawn and all(recipe.at == "" for recipe in drawn if dict(recipe.target) == top)
    base = found[-1]
    assert dict(base.target) == dict(rows.contract.base) != top
    assert base.at == " ".join(f"{name}={value}" for name, value in base.target.items())
    small = estimate(rows.original, rows.build, rows.workload, setting(), [base])
    assert isinstance(small, Estimate), small
    assert speed(small, small, setting()).at == base.at == headroom_of(small, setting().target).at
    assert speed_text(speed(small, small, setting())) == f"est. 1.00x on H200 at {base.at}, not measured"


@pytest.mark.parametrize("slow", [False, True])
def test_a_time_loop_is_counted_at_its_declared_number_of_steps(slow: bool) -> None:
    program, workload = original(STEPS)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared), found
    recipe = choices(found, slow)[0]
    assert recipe.target["steps"] == 1000
    counted = estimate(program, found.build, workload, setting(), [recipe])
    assert isinstance(counted, Estimate), counted
    # each step loads n elements twice and stores them once, 32 to a request
    assert counted.counts["requests"] == pytest.approx(1000 * 3 * 65536 / 32, rel=0.01)


def test_a_row_for_each_warp_is_estimated_faster(rows: Prepared) -> None:
    program = rewrite(ROWS[: ROWS.index("__global__")] + BY_WARPS, rows.original.plan)
    built = build(program, setting().options)
    assert isinstance(built, Build), built
    known = rows.original_estimate
    assert isinstance(known, Estimate), known
    ratio = speed(known, estimate(program, built, rows.workload, setting(), [known.recipe]), setting()).ratio
    assert ratio is not None
    assert ratio > 1.5
