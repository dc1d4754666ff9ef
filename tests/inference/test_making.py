"""Launches that are made up: a kernel runs on them, they say what they are, and nothing is judged on them.

What is expected is worked out by hand from each kernel."""

import pytest
from attrs import evolve

from agent.evaluation.prepare import Failure, prepare
from agent.evaluation.setting import Setting
from agent.execution.compiler import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.inference.making import MadeUp, at_other_numbers, invented, make_up, plausible
from agent.inference.probing import Limits, Stopped
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch
from agent.workload.describe import origin
from agent.workload.program import Program
from agent.workload.workload import MADE_UP, Access, Workload

I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"  # noqa: E741
SCALE = f"__global__ void k(const float* x, float* y, float a, int n) {{ {I} if (i < n) y[i] = a * x[i]; }}"
STENCIL = """__global__ void k(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const float* at = in + y * width + x;
    out[y * width + x] = at[-1] + at[1] + at[-width] + at[width];
}"""
GATHER = f"__global__ void k(const float* x, const int* at, float* y, int n) {{ {I} if (i < n) y[i] = x[n * at[i]]; }}"
BEHIND = f"__global__ void k(const float* x, float* y, int n) {{ {I} if (i < n) y[i] = x[i] - x[i - 3]; }}"
TILED = """template <int T> __global__ void k(const float* x, float* y) {
    __shared__ float s[T];
    s[threadIdx.x] = x[blockIdx.x * T + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * T + threadIdx.x] = s[T - 1 - threadIdx.x];
}"""
OPAQUE = f"""struct Hidden;
__global__ void k(const void* x, Hidden* h, int n) {{ {I} if (i < n) ((int*)h)[i] = ((const int*)x)[i]; }}"""
NARROW = f"__global__ void k(float2* v, int pitch) {{ {I} float2* r = (float2*)((char*)v + i * pitch); r->x = i; }}"


def made(text: str, seconds: float = 60.0) -> MadeUp:
    document = parse(text.encode(), "k.cu")
    return make_up(document, document.kernels[0], None, Limits(seconds))


@pytest.mark.parametrize(
    "text", [SCALE, STENCIL, GATHER, BEHIND, TILED, OPAQUE],
    ids=["elements", "stencil", "indices in memory", "before the pointer", "template", "types out of sight"],
)  # fmt: skip
def test_a_kernel_runs_on_several_blocks_and_says_that_all_of_it_is_made_up(text: str) -> None:
    found = made(text)
    assert found.whole and found.blocks >= 2 and found.faults == ()
    assert found.workload.origin.kind == MADE_UP and origin(found.workload).startswith("made up")
    assert {buffer.origin.kind for buffer in found.workload.buffers} == {MADE_UP}
    assert any("made up" in note for note in found.workload.notes)


def test_roles_are_those_that_were_seen_and_buffers_hold_all_that_is_touched() -> None:
    workload = made(STENCIL).workload
    assert {one.name: one.access for one in workload.buffers} == {"in": Access.IN, "out": Access.OUT}
    bound = bind(workload, workload.plan, None, parse(STENCIL.encode(), "k.cu"))
    (launch,) = [step for step in bound.steps if isinstance(step, BoundLaunch)]
    columns, rows = (launch.grid[at] * launch.block[at] for at in (0, 1))
    width = next(size.value for size in workload.sizes if size.name == "width")
    height = next(size.value for size in workload.sizes if size.name == "height")
    last = (min(rows, height - 1) - 1) * width + min(columns, width - 1) - 1
    assert all(buffer.nbytes >= 4 * (last + 1) for buffer in bound.buffers)


def test_a_template_that_nothing_fixes_says_what_stands_in() -> None:
    assert any("stand in" in note for note in made(TILED).workload.notes)


def test_a_pointer_whose_elements_must_be_aligned_gets_sizes_that_keep_them_so() -> None:
    found = made(NARROW)
    (pitch,) = [size.value for size in found.workload.sizes if size.name == "pitch"]
    assert not found.broken and pitch % 8 == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__global__ void k(float** rows, int n) { rows[0][threadIdx.x] = n; }", "pointer to pointers"),
        ("__global__ void k(float* x) { x[threadIdx.x] = missing; }", "cannot be compiled"),
        (
            f"__global__ void k(float* x) {{ {I} while (true) x[i] += 1; }}",
            "not end|more than|used up",
        ),
        ("__global__ void k(int* x) { x[threadIdx.x] = 1; __trap(); }", "without a fault|traps|trap"),
    ],
    ids=["pointers to pointers", "does not compile", "does not end", "traps"],
)
def test_why_none_can_be_made_up_is_said(text: str, reason: str) -> None:
    with pytest.raises(Stopped, match=reason):
        made(text, 3.0)


def test_nothing_is_judged_on_a_launch_that_was_made_up() -> None:
    document = parse(SCALE.encode(), "k.cu")
    workload = make_up(document, document.kernels[0]).workload
    setting = Setting(Emulator(), find_target("H200"), Options())
    refused = prepare(Program(document, workload.plan, "original"), workload, setting)
    assert isinstance(refused, Failure) and "made up" in refused.message


@pytest.mark.parametrize(
    ("body", "varies", "all_of_it"),
    [
        ("x[i] = 7;", False, True),
        ("x[i] = i & 1;", True, True),
        ("atomicAdd(x, i);", True, True),
        ("x[0] = 0;", False, True),
        ("if (n == 123457) { x[i] = clock(); for (int k = 0; k < i; ++k) x[k] += clock(); } x[i] = i;", True, False),
    ],
    ids=["the same everywhere", "two values", "one element", "one zero", "a branch that no number takes"],
)
def test_what_a_launch_came_to_is_told(body: str, varies: bool, all_of_it: bool) -> None:
    found = made(f"__global__ void k(int* x, int n) {{ {I} {body} }}")
    assert found.varies is varies and (found.reached == 1) is all_of_it


COLUMNS = f"""__global__ void k(const float* x, float* y, int n, int w, int stride, float a) {{ {I}
    if (i < n) y[i] = a * x[i % w * n + i * stride]; }}"""


def numbers(workload: Workload) -> dict[str, int | float | None]:
    return {one.name: one.value.constant for one in workload.constants} | {
        one.name: one.value for one in workload.sizes
    }


def test_the_same_kernel_runs_on_other_numbers_each_of_them_another_than_before() -> None:
    document, first = parse(COLUMNS.encode(), "k.cu"), made(COLUMNS).workload
    others = list(at_other_numbers(document, document.kernels[0], first))
    tried = [numbers(one) for one in (first, *others)]
    assert len(others) == 2 and all(plausible(one) for one in (first, *others))
    assert all(len({one[name] for one in tried}) == 3 for name in ("n", "w", "stride"))
    assert tried[2]["n"] != tried[2]["w"], "sizes that are alike may hide what only one of them does"
    assert {one.plan.launches()[0].block for one in others} == {first.plan.launches()[0].block}
    assert invented(document, document.kernels[0], first) == {"n", "w", "stride", "a"}


def test_what_the_launch_tells_stays_and_where_it_tells_all_there_is_nothing_else_to_try() -> None:
    host = "void run(float* x, float* y, int n) {{ k<<<3, 128>>>(x, y, {}, 64, 1, 2.0f); }}"
    for argument, free in (("n", {"n"}), ("300", set())):
        document = parse(f"{COLUMNS}\n{host.format(argument)}\n".encode(), "k.cu")
        first = make_up(document, document.kernels[0], None, Limits(60.0)).workload
        assert invented(document, document.kernels[0], first) == free
        others = [numbers(one) for one in at_other_numbers(document, document.kernels[0], first)]
        assert len(others) == 2 * len(free) and all((one["w"], one["stride"]) == (64, 1) for one in others)


def test_a_row_shorter_than_a_warp_is_not_plausible() -> None:
    workload = made(COLUMNS).workload
    short = tuple(evolve(one, value=17) if one.name == "w" else one for one in workload.sizes)
    assert not plausible(evolve(workload, sizes=short))


def test_where_no_block_is_told_that_has_two_sides_others_of_as_many_threads_are_tried() -> None:
    text = STENCIL
    document, first = parse(text.encode(), "k.cu"), made(text).workload
    blocks = [tuple(str(side) for side in one.plan.launches()[0].block) for one in
              (first, *at_other_numbers(document, document.kernels[0], first))]  # fmt: skip
    assert len(blocks) == len(set(blocks)) == 3
    assert len({int(x) * int(y) * int(z) for x, y, z in blocks}) == 1
    host = "void run(float* x, float* y, int w, int h) { k<<<dim3(2, 2), dim3(16, 4)>>>(x, y, w, h); }"
    document = parse(f"{text}\n{host}\n".encode(), "k.cu")
    first = make_up(document, document.kernels[0], None, Limits(60.0)).workload
    told = [one.plan.launches()[0].block for one in at_other_numbers(document, document.kernels[0], first)]
    assert told == [first.plan.launches()[0].block] * 2
