"""Traffic worked out by hand from the kernels' texts and the H200's published figures."""

import pytest
from attrs import evolve

from agent.evaluation.estimates.counting import Recipe
from agent.evaluation.estimates.estimate import Estimate, estimate, headroom, speed
from agent.evaluation.estimates.traffic import LAUNCH_SECONDS, load
from agent.evaluation.prepare import Prepared, prepare
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Resources
from agent.execution.device import LaunchCounters, LineCounters
from agent.execution.targets import find_target
from tests.evaluation.kernels import SOFTMAX, original, setting

H200 = find_target("H200")
SMALL = Resources(24, 0, 0, 0, 0, 0)
MIX = {"load": 8, "store": 8, "int": 32, "other": 8}


def counters(
    lines: dict[int, LineCounters], touched: dict[str, int], written: dict[str, int], blocks: int = 1
) -> LaunchCounters:
    """Of ``blocks`` blocks of 256 threads that share nothing."""
    own = {name: touched.get(name, 0) + written.get(name, 0) for name in touched | written}
    return LaunchCounters("k", (1, 1, 1), (256, 1, 1), blocks, lines, MIX, touched, written, own)


COPY_LINE = LineCounters(
    requests=16,
    sectors=64,
    ideal_sectors=64,
    load_sectors=32,
    store_sectors=32,
    instructions=56,
    waits=8,
    cache_lines=16,
)  # fmt: skip
BLOCKS = 262144
BUFFERS = {"x": 2**28, "y": 2**28}


class TestCopy:
    """Each block reads and writes 1024 bytes: 32 sectors each way, in 8 requests each way of 4 sectors."""

    def found(self) -> object:
        return load(counters({5: COPY_LINE}, {"x": 32}, {"y": 32}), BLOCKS, BUFFERS, SMALL, 0, H200)

    def test_every_byte_crosses_dram_once(self) -> None:
        found = self.found()
        assert found.dram_bytes == found.compulsory_bytes == 2 * 2**28

    def test_time_is_bytes_over_bandwidth(self) -> None:
        found = self.found()
        assert found.limit == "DRAM bandwidth"
        assert found.seconds == pytest.approx(2 * 2**28 / 4.8e12 + LAUNCH_SECONDS, rel=1e-12)

    def test_l1_takes_a_clock_for_each_line(self) -> None:
        # 16 requests a block, 262144 blocks over 132 SMs at 1.98 GHz
        assert self.found().terms["L1 throughput"] == pytest.approx(16 * 262144 / 132 / 1.98e9, rel=1e-12)

    def test_issue_is_four_instructions_a_clock(self) -> None:
        assert self.found().terms["instruction issue"] == pytest.approx(56 * 262144 / 132 / 4 / 1.98e9, rel=1e-12)

    def test_integers_use_their_own_lanes(self) -> None:
        # 32 warp instructions of 32 lanes on 64 lanes
        assert self.found().terms["integer throughput"] == pytest.approx(
            32 * 32 / 64 * 262144 / 132 / 1.98e9, rel=1e-12
        )

    def test_latency_is_the_chain_of_one_warp_times_the_waves(self) -> None:
        # 8 warps a block: 7 instructions of 3 clocks and one wait for a load of 600;
        # 8 blocks of 256 threads fit an SM, so 262144 blocks come in ceil(262144 / 1056) = 249 waves
        assert self.found().terms["latency"] == pytest.approx((7 * 3 + 600) * 249 / 1.98e9, rel=1e-12)

    def test_scaling_is_linear_in_the_blocks_that_ran(self) -> None:
        twice = evolve(
            COPY_LINE, requests=32, sectors=128, load_sectors=64, store_sectors=64, instructions=112, waits=16,
            cache_lines=32,
        )  # fmt: skip
        two = load(counters({5: twice}, {"x": 64}, {"y": 64}, 2), BLOCKS, BUFFERS, SMALL, 0, H200)
        assert two.dram_bytes == self.found().dram_bytes
        assert two.terms["L2 bandwidth"] == self.found().terms["L2 bandwidth"]


ROW = 8192
"""Sectors of a row of 65536 floats."""


def passes(rows: int, cache_row: int = ROW) -> object:
    """A softmax of three passes, 4096 rows, a block a row: x is read on three lines, y written on the third."""
    requests = cache_row // 4
    walk = LineCounters(
        requests=requests, sectors=cache_row, load_sectors=cache_row, instructions=requests * 8, cache_lines=requests
    )
    last = evolve(walk, requests=2 * requests, sectors=2 * cache_row, store_sectors=cache_row, cache_lines=2 * requests)
    found = counters({10: walk, 20: walk, 30: last}, {"x": cache_row}, {"y": cache_row})
    nbytes = rows * cache_row * 32
    return load(found, rows, {"x": nbytes, "y": nbytes}, SMALL, 0, H200)


def test_three_passes_over_long_rows_come_from_dram_each_time() -> None:
    # 8 blocks an SM x 132 SMs x 512 KB are far beyond L2: 3 reads and a write of 1 GiB; needed are one of each
    found = passes(4096)
    assert found.dram_bytes == 4 * 2**30
    assert found.compulsory_bytes == 2 * 2**30
    assert found.limit == "DRAM bandwidth"


def test_three_passes_over_short_rows_stay_in_l1() -> None:
    # 1024 bytes a block in and out, 8 blocks an SM: 16 KB of the SM's 228
    found = passes(4096, 32)
    assert found.dram_bytes == found.compulsory_bytes


def test_strided_reads_cost_passes_not_dram() -> None:
    """A warp that reads 32 rows at once: 32 lines a request, each sector used again by the next seven loads."""
    lines = {
        5: LineCounters(
            requests=64, sectors=64 * 32, load_sectors=64 * 32, instructions=640, cache_lines=64 * 32, waits=64
        )
    }
    found = load(counters(lines, {"x": 256}, {}), 10000, {"x": 10000 * 256 * 32}, SMALL, 0, H200)
    assert found.dram_bytes == 10000 * 256 * 32
    assert found.terms["L1 throughput"] == pytest.approx(64 * 32 * 10000 / 132 / 1.98e9, rel=1e-12)


def test_what_all_blocks_share_is_counted_once() -> None:
    lines = {5: LineCounters(requests=16, sectors=64, load_sectors=64, instructions=64)}
    found = load(counters(lines, {"w": 64}, {}), 100000, {"w": 2048}, SMALL, 0, H200)
    assert found.compulsory_bytes == found.dram_bytes == 2048


COPY = """
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   copy<<<n / 256, 256>>>(x, y)
__global__ void copy(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = x[i];
}
"""

STRIDED = COPY.replace("y[i] = x[i]", "y[i] = x[(i % 1024) * 1024 + i / 1024]")


def counted(text: str) -> Estimate:
    program, workload = original(text)
    built = build(program, setting().options)
    assert isinstance(built, Build)
    found = estimate(program, built, workload, setting(), [Recipe({"n": 1048576}, ((1.0, {"n": 1048576}),))])
    assert isinstance(found, Estimate), found
    return found


def test_a_copy_counted_in_the_emulator() -> None:
    found = counted(COPY)
    assert found.dram_bytes == found.needed_bytes == 2 * 4 * 1048576
    assert found.counts["sectors"] == 2 * 1048576 / 8
    assert found.counts["requests"] == 2 * 1048576 / 32


def test_a_strided_copy_is_estimated_slower() -> None:
    plain, strided = counted(COPY), counted(STRIDED)
    assert strided.counts["sectors"] > 4 * plain.counts["sectors"]
    found = speed(strided, plain, setting())
    assert found.state == "estimated"
    assert found.ratio is not None
    assert found.ratio > 1.2
    assert found.low is None
    assert found.high is None


def test_a_small_difference_is_said_to_be_within_the_models_error() -> None:
    found = speed(counted(COPY), counted(COPY), setting())
    assert found.ratio == 1.0
    assert "within the model's own error" in found.note


def test_counts_extrapolated_from_smaller_sizes_are_those_of_the_declared_size() -> None:
    """Of a loop over columns, which the threads of a block walk together."""
    text = SOFTMAX.replace("rows = 512, cols = 4096", "rows = 2000, cols = 8192")
    program, workload = original(text)
    built = build(program, setting().options)
    assert isinstance(built, Build)
    top = {"rows": 2000, "cols": 8192}
    points = tuple((1 / part, {"rows": 2000, "cols": 8192 // part}) for part in (16, 8, 4))
    whole = estimate(program, built, workload, setting(), [Recipe(top, ((1.0, top),))])
    drawn = estimate(program, built, workload, setting(), [Recipe(top, points)])
    assert isinstance(whole, Estimate), whole
    assert isinstance(drawn, Estimate), drawn
    assert drawn.dram_bytes == pytest.approx(whole.dram_bytes, rel=1e-3)
    assert drawn.seconds == pytest.approx(whole.seconds, rel=1e-2)
    assert drawn.limit == whole.limit


def test_counts_that_bend_are_not_extrapolated() -> None:
    """A loop whose length is the square of the size."""
    text = COPY.replace("y[i] = x[i];", "for (int k = 0; k < n / 4096 * (n / 4096); ++k) y[(i + k) % n] = x[i];")
    text = text.replace("(x, y)", "(x, y, n)").replace("float* y)", "float* y, int n)")
    program, workload = original(text)
    built = build(program, setting().options)
    assert isinstance(built, Build)
    points = tuple((1 / part, {"n": 1048576 // part}) for part in (64, 32, 16))
    found = estimate(program, built, workload, setting(), [Recipe({"n": 1048576}, points)])
    assert isinstance(found, str)
    assert "do not grow linearly" in found


def test_no_estimate_is_no_ratio() -> None:
    found = speed("the plan is too long", counted(COPY), setting())
    assert (found.state, found.ratio) == ("none", None)
    assert "too long" in found.note


def test_headroom_of_three_passes() -> None:
    program, workload = original(SOFTMAX.replace("rows = 512, cols = 4096", "rows = 4096, cols = 65536"))
    prepared = prepare(program, workload, setting())
    assert isinstance(prepared, Prepared)
    room = headroom(prepared)
    assert room.needed == 2 * 4 * 4096 * 65536
    assert room.counted == 4 * 4 * 4096 * 65536
    assert room.ratio is not None
    assert room.ratio >= 2.0
