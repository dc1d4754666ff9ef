"""What one kernel takes at least, against figures by hand; and counts that are reached from smaller sizes."""

import pytest

from agent.evaluation.estimates.estimate import ARITHMETIC_FLOOR, MEMORY_FLOOR
from agent.evaluation.estimates.kernel_cost import extrapolated
from agent.evaluation.estimates.kernel_floor import LAUNCH_FLOOR, KernelFloor, kernel_floor
from agent.evaluation.estimates.traffic import MODEL_ERROR
from agent.evaluation.lines.profile import Profile, profile
from agent.evaluation.setting import Setting
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.source.document import Document, parse
from agent.workload.find import find_workload
from agent.workload.program import Program
from agent.workload.workload import Workload

H200 = find_target("H200")
GAP = 2e-6
"""Seconds between two launches."""

COPY = """
// cuda-lsp: workload
//   size     n = {n}, steps = {steps}
//   buffer   a: f32[n] inout normal
//   buffer   b: f32[n] inout normal
//   repeat   steps {{
//     launch k<<<n / 256, 256>>>(a, b)
//     swap   a b
//   }}
__global__ void k(const float* a, float* b) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    b[i] = a[i];
}}
"""

FUSED = """
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   y: f32[n] inout normal
//   launch   k<<<n / 256, 256>>>(y)
__global__ void k(float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = y[i];
    for (int turn = 0; turn < 1024; turn++) v = fmaf(v, 0.5f, 1.5f);
    y[i] = v;
}
"""

ROWS = """
// cuda-lsp: workload
//   size     rows = 65536, cols = 1024
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   k<<<rows / 256, 256>>>(x, y, cols)
__global__ void k(const float* x, float* y, int cols) {
    int row = blockIdx.x * 256 + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < cols; i++) sum += x[(size_t)row * cols + i];
    y[row] = sum;
}
"""

SQUARES = ROWS.replace("cols; i++", "cols * cols; i += 16").replace("(size_t)row * cols + i", "i % cols")


def counted(text: str, seconds: float = 120.0) -> tuple[Document, Workload, Setting, Profile, Build]:
    document = parse(text.encode(), "k.cu")
    workload = find_workload(document, document.kernels[0])
    setting = Setting(Emulator(), H200, Options("sm_90"))
    found = profile(document, document.kernels[0], workload, setting, seconds=seconds)
    assert isinstance(found, tuple), found
    return document, workload, setting, *found


def floor_of(text: str) -> KernelFloor:
    return kernel_floor(counted(text)[3].launches, H200)


def test_a_copy_moves_each_byte_once_at_each_launch() -> None:
    floor = floor_of(COPY.format(n=1 << 24, steps=3))
    moved = 3 * 2 * 4 * (1 << 24) / 4.8e12
    assert floor.memory == pytest.approx(moved) and floor.name == MEMORY_FLOOR
    assert floor.seconds == pytest.approx(moved) and floor.launching == pytest.approx(3 * GAP)


def test_where_little_is_done_the_gaps_between_launches_are_the_floor() -> None:
    floor = floor_of(COPY.format(n=1024, steps=40))
    assert floor.name == LAUNCH_FLOOR and floor.seconds == pytest.approx(40 * GAP)
    assert floor.memory == pytest.approx(40 * 2 * 4 * 1024 / 4.8e12)


def test_arithmetic_takes_its_time_on_all_lanes_of_the_card() -> None:
    floor = floor_of(FUSED)
    # 132 multiprocessors of 128 lanes at 1.98 GHz, 1024 multiply-adds for each of 2^20 elements
    assert floor.arithmetic == pytest.approx(1024 * (1 << 20) / (132 * 128 * 1.98e9), rel=0.02)
    assert (floor.name, floor.kind, floor.seconds) == (ARITHMETIC_FLOOR, "fp32 throughput", floor.arithmetic)


def test_counts_from_three_small_sizes_come_out_as_at_the_declared_one() -> None:
    document, workload, setting, direct, built = counted(ROWS)
    assert direct.declared
    found = extrapolated(document, document.kernels[0], workload, setting, built, 120.0)
    assert found is not None
    (launch,), how = found
    assert how.startswith("extrapolated from rows=65536 cols=")
    assert launch.grid == direct.launches[0].grid and launch.limit == direct.launches[0].limit
    for name in ("instruction issue", "L1 throughput"):
        assert launch.terms[name] == pytest.approx(direct.launches[0].terms[name], rel=0.03)
    assert launch.seconds == pytest.approx(direct.launches[0].seconds, rel=MODEL_ERROR)
    assert kernel_floor([launch], H200).seconds == pytest.approx(65536 * 1025 * 4 / 4.8e12, rel=0.01)


def test_nothing_is_claimed_where_counts_do_not_lie_on_a_line() -> None:
    document = parse(SQUARES.encode(), "k.cu")
    kernel, setting = document.kernels[0], Setting(Emulator(), H200, Options("sm_90"))
    workload = find_workload(document, kernel)
    built = build(Program(document, workload.plan, kernel.name), setting.options)
    assert isinstance(built, Build)
    assert extrapolated(document, kernel, workload, setting, built, 120.0) is None
