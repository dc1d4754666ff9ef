"""Cooperative groups: tiles, reductions over them, and the threads that happen to be together."""

import numpy as np
import pytest

from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from tests.execution.emulator.building import build, launch, run, with_headers
from tests.execution.slices import HandSlice

SOURCE = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* x, int* y, int n) {
    cg::thread_block b = cg::this_thread_block(); __shared__ int s[32];
    auto w = cg::tiled_partition<32>(b); auto h = cg::tiled_partition<8>(b);
    int i = b.group_index().x * b.size() + b.thread_rank(), v = i < n ? x[i] : 0;
    int r = cg::reduce(w, v, cg::plus<int>());
    if (w.thread_rank() == 0) s[w.meta_group_rank()] = r;
    cg::sync(b);
    int total = 0;
    for (int k = 0; k < w.meta_group_size(); k++) total += s[k];
    int most = cg::reduce(h, v, cg::greater<int>()), together = 0;
    if (v % 3 == 0) { auto a = cg::coalesced_threads(); together = a.size() * 100 + a.thread_rank(); a.sync(); }
    if (i < n) { y[i * 3] = total; y[i * 3 + 1] = most; y[i * 3 + 2] = together; }
}"""


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
def test_tiles_reduce_and_coalesced_threads_are_counted(optimised: bool) -> None:
    built = compile_slice(HandSlice(SOURCE, ("k",)), Options(optimised=optimised))
    assert isinstance(built, Build), built
    n = 500
    x = np.random.default_rng(0).integers(-100, 100, n).astype(np.int32)
    step = launch("k", 4, 128, "x", "y", n)
    checks = frozenset({"races", "initialised", "barriers"})
    answer, out = run(built, step, {"x": x, "y": np.zeros((n, 3), np.int32)}, checks=checks)
    assert answer.status == "ok", answer
    padded = np.zeros(512, np.int32)
    padded[:n] = x
    np.testing.assert_array_equal(out["y"][:, 0], np.repeat(padded.reshape(4, 128).sum(1), 128)[:n])
    np.testing.assert_array_equal(out["y"][:, 1], np.repeat(padded.reshape(-1, 8).max(1), 8)[:n])
    chosen = (padded % 3 == 0).reshape(-1, 32)
    rank = chosen.cumsum(1) - 1
    wanted = np.where(chosen, chosen.sum(1)[:, None] * 100 + rank, 0).reshape(-1)[:n]
    np.testing.assert_array_equal(out["y"][:, 2], wanted)


GRID = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* x, int* y, int* z, int n) {
    auto grid = cg::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * 3;
    SYNC
    z[i] = y[n - 1 - i];
    SYNC
    y[i] = z[(i * 7) % n] + 1;
}"""


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
def test_blocks_meet_at_the_grid_s_barrier(optimised: bool) -> None:
    """More blocks than one batch takes, so that batches wait for each other."""
    built = with_headers(GRID.replace("SYNC", "grid.sync();"), optimised)
    n = 40 * 512
    x = np.arange(n, dtype=np.int32)
    zeros = np.zeros(n, np.int32)
    checks = frozenset({"races", "barriers"})
    answer, out = run(built, launch("k", 40, 512, *"xyz", n), {"x": x, "y": zeros, "z": zeros}, checks=checks)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["z"], 3 * x[::-1])
    np.testing.assert_array_equal(out["y"], 3 * x[::-1][(np.arange(n) * 7) % n] + 1)


def test_without_it_blocks_race_and_with_blocks_left_out_it_is_refused() -> None:
    n = 256
    x = np.arange(n, dtype=np.int32)
    zeros, step = np.zeros(n, np.int32), launch("k", 4, 64, *"xyz", n)
    buffers = {"x": x, "y": zeros, "z": zeros}
    answer, _ = run(with_headers(GRID.replace("SYNC", "")), step, buffers, checks=frozenset({"races"}))
    assert {fault.kind for fault in answer.faults} == {"global-memory race"}
    answer, _ = run(with_headers(GRID.replace("SYNC", "grid.sync();")), step, buffers, blocks=lambda total: (0, 1))
    assert answer.status == "refused" and "whole grid" in answer.message


CLUSTER = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void SIZE k(const int* x, int* y, int far) {
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = x[threadIdx.x];
    cluster.sync();
    int* theirs = cluster.map_shared_rank(s, cluster.block_rank() + far);
    y[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x] * 10 + cluster.num_blocks();
    cluster.sync();
}"""


def test_a_cluster_is_one_block_unless_the_kernel_asks_for_more() -> None:
    x = np.arange(64, dtype=np.int32)
    buffers, checks = {"x": x, "y": np.zeros(128, np.int32)}, frozenset({"races", "initialised", "barriers"})
    built = with_headers(CLUSTER.replace("SIZE", ""))
    answer, out = run(built, launch("k", 2, 64, "x", "y", 0), buffers, checks=checks)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.tile(x[::-1] * 10 + 1, 2))
    answer, _ = run(built, launch("k", 2, 64, "x", "y", 1), buffers, checks=checks)
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds read" and "cluster of one" in fault.message
    larger = with_headers(CLUSTER.replace("SIZE", "__cluster_dims__(2, 1, 1)").replace("rank() + far", "rank() ^ far"))
    answer, out = run(larger, launch("k", 2, 64, "x", "y", 1), buffers, checks=checks)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.tile(x[::-1] * 10 + 2, 2))


def test_one_lane_of_those_named_is_elected_and_what_has_no_effect_here_has_none() -> None:
    built = build("""extern "C" __global__ void k(unsigned* y) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
        if (threadIdx.x % 32 >= 5 && threadIdx.x % 3 != 1) {
            unsigned lead, who, mask = __activemask();
            asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.b32 %1, 1, 0, p; }"
                         : "=r"(lead), "=r"(who) : "r"(mask));
            y[threadIdx.x] = lead * 2 + who; }
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }""")
    answer, out = run(
        built, launch("k", 1, 64, "y"), {"y": np.full(64, 999, np.uint32)}, checks=frozenset({"barriers"})
    )
    assert answer.status == "ok", answer
    chosen = [lane for lane in range(64) if lane % 32 >= 5 and lane % 3 != 1]
    first = [min(lane for lane in chosen if lane // 32 == warp) % 32 for warp in range(2)]
    wanted = np.full(64, 999)
    for lane in chosen:
        wanted[lane] = first[lane // 32] * 2 + (lane % 32 == first[lane // 32])
    np.testing.assert_array_equal(out["y"], wanted)
