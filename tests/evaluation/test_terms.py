"""Each term of the estimate worked out by hand, from counters made up for it, on the H200's published figures."""

import pytest
from attrs import evolve

from agent.evaluation.estimates.counting import Recipe
from agent.evaluation.estimates.estimate import ARITHMETIC_FLOOR, MEMORY_FLOOR, Estimate, Headroom, headroom_of
from agent.evaluation.estimates.opcodes import steps
from agent.evaluation.estimates.traffic import Load, load
from agent.execution.compiler.result import Resources
from agent.execution.device import LaunchCounters, LineCounters
from agent.execution.targets import find_target

H200 = find_target("H200")
CLOCK = 1.98e9
SMS = 132
BLOCKS = 132 * 8 * 10
"""Ten waves of blocks of 256 threads, eight on an SM."""
SMALL = Resources(24, 0, 0, 0, 0, 0)
LINE = LineCounters(
    requests=8, sectors=32, ideal_sectors=32, load_sectors=32, instructions=80, cache_lines=8, waits=8
)  # fmt: skip
ONE = LaunchCounters("k", (1, 1, 1), (256, 1, 1), 1, {1: LINE}, {"load": 8}, {"x": 32}, {}, {"x": 32})
"""One block of eight warps: a coalesced load of four bytes a thread in each."""


def found(counted: LaunchCounters, resources: Resources = SMALL, shared: int = 0, **sizes: int) -> Load:
    return load(counted, BLOCKS, {"x": BLOCKS * 1024, **sizes}, resources, shared, H200)


def with_line(**changed: int) -> LaunchCounters:
    return evolve(ONE, lines={1: evolve(LINE, **changed)})


class TestL1:
    def test_each_line_of_a_request_takes_a_clock(self) -> None:
        rows = with_line(sectors=256, load_sectors=256, cache_lines=256)
        assert found(rows).terms["L1 throughput"] == pytest.approx(256 * BLOCKS / SMS / CLOCK)

    def test_wide_loads_take_as_long_for_the_same_bytes(self) -> None:
        wide = with_line(requests=2)
        assert found(wide).terms["L1 throughput"] == found(ONE).terms["L1 throughput"]

    def test_neighbours_hit_while_the_lines_of_all_resident_warps_fit(self) -> None:
        """64 warps with 8 lines each take 64 KB of 228: only the distinct 32 sectors a block come from L2. With 32
        lines each they take 256 KB, and 1 - (2 * 228 / 256 - 1) = 0.21875 of the further requests do."""
        eight = with_line(sectors=64, load_sectors=64, cache_lines=64)
        assert found(eight).terms["L2 bandwidth"] == pytest.approx(32 * BLOCKS * 32 / H200.l2_bytes_per_s)
        many = with_line(sectors=256, load_sectors=256, cache_lines=256)
        assert found(many).terms["L2 bandwidth"] == pytest.approx(
            (32 + 224 * 0.21875) * BLOCKS * 32 / H200.l2_bytes_per_s
        )

    def test_shared_memory_takes_its_part_of_l1(self) -> None:
        """27 KB a block on eight blocks leave 12 KB, which 64 KB of lines in use do not fit into."""
        eight = with_line(sectors=64, load_sectors=64, cache_lines=64)
        squeezed = found(eight, shared=27 * 1024)
        assert squeezed.terms["L2 bandwidth"] == pytest.approx(64 * BLOCKS * 32 / H200.l2_bytes_per_s)


class TestStores:
    def stores(self, **changed: int) -> Load:
        """Of one block: 32 sectors of 8 lines, in 8 requests."""
        line = LineCounters(requests=8, sectors=32, store_sectors=32, instructions=80, cache_lines=8)
        counted = evolve(ONE, lines={1: evolve(line, **changed)}, touched_read={}, touched_written={"x": 32})
        return found(counted)

    def test_a_mask_of_bytes_takes_a_sector_s_time_for_each_line(self) -> None:
        assert self.stores().terms["L2 bandwidth"] == pytest.approx(32 * BLOCKS * 32 / H200.l2_bytes_per_s)
        masked = self.stores(partial_sectors=32, partial_lines=8)
        assert masked.terms["L2 bandwidth"] == pytest.approx((32 + 8) * BLOCKS * 32 / H200.l2_bytes_per_s)

    def test_what_l2_puts_together_reaches_dram_once(self) -> None:
        """Each sector in three parts, by three requests for three lines each: L2 takes all of them, DRAM one."""
        parts = self.stores(
            requests=24, sectors=96, store_sectors=96, cache_lines=24, partial_sectors=96, partial_lines=24
        )
        assert parts.terms["L2 bandwidth"] == pytest.approx((96 + 24) * BLOCKS * 32 / H200.l2_bytes_per_s)
        assert parts.dram_bytes == self.stores().dram_bytes == BLOCKS * 1024

    def test_lanes_that_write_a_line_each_pay_for_each(self) -> None:
        """As in a naive transposition: 32 sectors on 32 lines, with as many masks."""
        down = self.stores(sectors=256, store_sectors=256, cache_lines=256, partial_sectors=256, partial_lines=256)
        assert down.terms["L2 bandwidth"] == pytest.approx(2 * 256 * BLOCKS * 32 / H200.l2_bytes_per_s)


class TestLocalMemory:
    """A block of 256 threads writes and reads a word of each thread's array: 64 sectors; 8 blocks on each SM."""

    def of(self, frame: int) -> Load:
        return found(with_line(local_requests=16, local_sectors=64), evolve(SMALL, stack=frame))

    def test_what_fits_into_l1_takes_lines_of_it_alone(self) -> None:
        """64 bytes of each of 2,048 threads are 128 KB of 228."""
        near = self.of(64)
        assert near.terms["L1 throughput"] == pytest.approx((8 + 64 / 4) * BLOCKS / SMS / CLOCK)
        assert near.terms["L2 bandwidth"] == found(ONE).terms["L2 bandwidth"]
        assert (near.moved.local_l2, near.moved.local_dram) == (0, 0)

    def test_what_fits_into_l2_crosses_to_it(self) -> None:
        """224 bytes of 2,048 threads are 448 KB, near twice what L1 has; 57 MB on 132 SMs, of 60."""
        assert self.of(224).moved.local_l2 == pytest.approx(64 * BLOCKS * (2 - 2 * 228 / 448))
        assert self.of(224).moved.local_dram == 0

    def test_the_rest_goes_to_dram(self) -> None:
        """16,000 bytes of each resident thread are 4.3 GB."""
        far = self.of(16_000)
        assert far.moved.local_l2 == far.moved.local_dram == 64 * BLOCKS
        assert far.dram_bytes == (64 + 32) * BLOCKS * 32
        assert far.terms["DRAM bandwidth"] == pytest.approx((64 + 32) * BLOCKS * 32 / 4.8e12)


class TestLatency:
    """The chain of one warp: 10 instructions of 3 clocks, and its waits; ten waves of blocks."""

    def clocks(self, counted: LaunchCounters, resources: Resources = SMALL) -> float:
        return found(counted, resources).terms["latency"] * CLOCK / 10

    def test_one_wait_for_dram(self) -> None:
        assert self.clocks(ONE) == pytest.approx(30 + 600)

    def test_four_loads_under_way_together_are_waited_for_once(self) -> None:
        four = evolve(with_line(requests=32, sectors=128, load_sectors=128, cache_lines=32), mix={"load": 32})
        four = evolve(four, touched_read={"x": 128}, block_touched={"x": 128})
        together = load(four, BLOCKS, {"x": BLOCKS * 4096}, SMALL, 0, H200).terms["latency"]
        assert together * CLOCK / 10 == pytest.approx(30 + 600)

    def test_four_that_wait_one_by_one_take_four_times_as_long(self) -> None:
        apart = evolve(
            with_line(requests=32, sectors=128, load_sectors=128, cache_lines=32, waits=32), mix={"load": 32}
        )
        apart = evolve(apart, touched_read={"x": 128}, block_touched={"x": 128})
        one_by_one = load(apart, BLOCKS, {"x": BLOCKS * 4096}, SMALL, 0, H200).terms["latency"]
        assert one_by_one * CLOCK / 10 == pytest.approx(30 + 4 * 600)

    def test_a_group_waits_for_the_slowest(self) -> None:
        """Two loads together, half of whose sectors come from DRAM and half hit L1: three groups in four have one that
        goes all the way."""
        two = evolve(with_line(requests=16, sectors=64, load_sectors=64, cache_lines=16), mix={"load": 16})
        assert self.clocks(two) == pytest.approx(30 + 35 + 565 * 0.75)

    def test_one_large_block_is_waited_for_as_often_as_it_waits(self) -> None:
        """A block of 1024 threads and 200 KB of shared memory is alone on its SM: as many waves as blocks to each."""
        large = evolve(ONE, block=(1024, 1, 1), lines={1: evolve(LINE, instructions=320, waits=32)})
        alone = load(large, SMS * 10, {"x": BLOCKS * 1024}, SMALL, 200 * 1024, H200)
        assert alone.terms["latency"] * CLOCK / 10 == pytest.approx(30 + 600)


class TestQueues:
    def test_all_threads_to_one_address_go_one_by_one(self) -> None:
        counted = evolve(ONE, queued={"c": 256}, queued_at_one={"c": 256})
        assert found(counted, c=4).terms["atomics in one place"] == pytest.approx(256 * BLOCKS / CLOCK)

    def test_a_place_for_each_block_is_no_queue(self) -> None:
        counted = evolve(ONE, queued={"c": 256}, queued_at_one={"c": 0})
        spread = found(counted, c=BLOCKS * 32).terms["atomics in one place"]
        assert spread == pytest.approx(256 / CLOCK)

    def test_a_histogram_queues_in_its_few_sectors(self) -> None:
        counted = evolve(ONE, queued={"c": 256}, queued_at_one={"c": 0})
        assert found(counted, c=1024).terms["atomics in one place"] == pytest.approx(256 * BLOCKS / 32 / CLOCK)

    def test_barriers_pass_sixteen_threads_a_clock(self) -> None:
        counted = evolve(ONE, mix={"barrier": 80, "shuffle": 40})
        assert found(counted).terms["barriers"] == pytest.approx(80 * 2 * BLOCKS / SMS / CLOCK)
        assert found(counted).terms["warp shuffles"] == pytest.approx(40 * BLOCKS / SMS / CLOCK)


def test_divisions_cost_what_they_become() -> None:
    """80 instructions, 8 of them divisions of 7 more each."""
    found_with = found(evolve(ONE, mix={"special": 8}, compound={"div.rn.f32": 8})).terms
    assert found_with["instruction issue"] == pytest.approx((80 + 56) / 4 * BLOCKS / SMS / CLOCK)
    assert found_with["fp32 throughput"] == pytest.approx(56 * 32 / 128 * BLOCKS / SMS / CLOCK)


@pytest.mark.parametrize(
    ("opcode", "halves"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 4096),
        ("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32", 4096),
        ("wmma.mma.sync.aligned.col.row.m16n16k8.f32.tf32.tf32.f32", 2 * 2048),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2048),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 16 * 256),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", 2048),
        ("div.rn.f32", 0),
    ],
)
def test_tensor_cores_multiply_at_the_rate_of_their_type(opcode: str, halves: int) -> None:
    """An H200's SM makes 2048 products of halves a clock: 989 TFLOPS over 132 SMs, 1830 MHz and two operations each."""
    terms = found(evolve(ONE, mix={"tensor": 8}, compound={opcode: 8})).terms
    assert terms["tensor cores"] == pytest.approx(8 * halves * BLOCKS / 2048 / SMS / CLOCK)
    assert terms["special functions"] == 0


def test_addresses_are_no_part_of_the_arithmetic_floor() -> None:
    """16 multiplications of addresses share the pipe of 32 of numbers, which alone are needed. A grid of half as many
    blocks as SMs takes as long, and could take half as long on all of them."""
    counted = evolve(ONE, mix={"fp32": 32, "multiply": 16})
    assert found(counted).terms["fp32 throughput"] == pytest.approx(48 * 32 / 128 * BLOCKS / SMS / CLOCK)
    assert found(counted).arithmetic["fp32 throughput"] == pytest.approx(32 * 32 / 128 * BLOCKS / SMS / CLOCK)
    few = load(counted, 66, {"x": BLOCKS * 1024}, SMALL, 0, H200)
    assert few.terms["fp32 throughput"] == pytest.approx(48 * 32 / 128 / CLOCK)
    assert few.arithmetic["fp32 throughput"] == pytest.approx(32 * 32 / 128 / 2 / CLOCK)


@pytest.mark.parametrize("opcode", ["rsqrt.approx.f32", "rcp.approx.ftz.f32", "ex2.approx.ftz.f32", "mad.lo.s32"])
def test_what_is_one_instruction_is_one(opcode: str) -> None:
    assert steps(opcode).total == 0


def test_exact_costs_more_than_approximate_and_double_more_than_single() -> None:
    assert steps("div.rn.f32").total > steps("div.full.f32").total > 0
    assert steps("div.rn.f64").total > steps("div.rn.f32").total
    assert steps("div.s64").total > steps("rem.u32").total > 0


NEAR = Estimate(
    seconds=1.03e-3, limit="DRAM bandwidth", dram_bytes=4.8e9, needed_bytes=4.8e9,
    counts={"sectors": 1.5e8, "ideal sectors": 1.5e8, "shared passes": 0.0, "shared requests": 0.0},
    recipe=Recipe({}, ()), terms={"DRAM bandwidth": 1.028e-3, "L1 throughput": 0.2e-3},
)  # fmt: skip
"""4.8 GB take a millisecond at 4.8 TB/s."""


class TestHeadroom:
    def test_near_the_memory_floor_nothing_is_left(self) -> None:
        found = headroom_of(NEAR, H200)
        assert (found.floor, found.exhausted) == (MEMORY_FLOOR, True)
        assert found.ratio == pytest.approx(1.03)

    @pytest.mark.parametrize(
        "changed",
        [
            {"counts": {**NEAR.counts, "sectors": 3 * 1.5e8}},
            {"counts": {**NEAR.counts, "shared passes": 4e8, "shared requests": 1e8}},
            {"terms": {**NEAR.terms, "atomics in one place": 0.9e-3}},
            {"terms": {**NEAR.terms, "barriers": 0.8e-3}},
        ],
        ids=["sectors", "bank conflicts", "atomics", "barriers"],
    )
    def test_unless_another_resource_is_far_from_ideal(self, changed: dict[str, dict[str, float]]) -> None:
        found = headroom_of(evolve(NEAR, **changed), H200)
        assert not found.exhausted
        assert "near the floor by estimate, but" in found.note

    def test_the_nearer_floor_is_shown(self) -> None:
        """Traffic of a millisecond, arithmetic of ten, in twenty: 2x to the arithmetic floor, not 20x to the other.
        That another algorithm may need less keeps the search going."""
        computing = evolve(NEAR, seconds=20e-3, arithmetic="fp32 throughput", arithmetic_seconds=10e-3)
        found = headroom_of(computing, H200)
        assert found.floor == ARITHMETIC_FLOOR
        assert found.ratio == pytest.approx(2.0)
        assert not headroom_of(evolve(computing, seconds=10.1e-3), H200).exhausted

    def test_figures_of_another_size_name_it(self) -> None:
        """Half a microsecond of traffic: at n=768, which says nothing of a declared n=5000."""
        recipe = Recipe({"n": 768}, (), "counted at n=768", "n=768")
        found = headroom_of(evolve(NEAR, seconds=300e-6, needed_bytes=2.4e6, recipe=recipe), H200)
        assert found.at == "n=768"
        assert "the declared size could not be counted here, so all of this is for n=768" in found.note
        assert "n=768 is so small that a launch takes longer than the work" in found.note
        assert "counted at" not in found.note
        own = headroom_of(evolve(NEAR, seconds=300e-6, needed_bytes=2.4e6), H200)
        assert own.at == "" and "; so small that a launch takes longer than the work" in own.note

    def test_without_an_estimate_a_search_goes_on(self) -> None:
        assert not Headroom(None, 0, 0, "no counts").exhausted
