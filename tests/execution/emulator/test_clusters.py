"""Clusters of blocks: shape, barrier, one another's shared memory, and what goes wrong with them."""

import numpy as np
import pytest

from agent.execution.device import Answer
from agent.execution.emulator.cluster_barrier import ENDED
from agent.execution.emulator.cluster_shape import clusters_of
from agent.execution.emulator.races import phases as race_phases
from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "initialised", "barriers"})
RNG = np.random.default_rng(11)

PLACES = """extern "C" __global__ void __cluster_dims__(2, 3, 1) k(unsigned* y) {
    unsigned v[12];
#define READ(i, r) asm("mov.u32 %0, %%" r ";" : "=r"(v[i]))
    READ(0, "cluster_ctaid.x"); READ(1, "cluster_ctaid.y"); READ(2, "cluster_ctaid.z"); READ(3, "cluster_ctarank");
    READ(4, "cluster_nctaid.x"); READ(5, "cluster_nctaid.y"); READ(6, "cluster_nctarank");
    READ(7, "clusterid.x"); READ(8, "clusterid.y"); READ(9, "clusterid.z"); READ(10, "nclusterid.x");
    asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(v[11]));
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (int i = 0; i < 12; i++) y[block * 12 + i] = v[i];
}"""


def test_each_block_knows_its_place() -> None:
    grid = (4, 6, 2)
    answer, out = run(build(PLACES), launch("k", grid, 1, "y"), {"y": np.zeros((48, 12), np.uint32)}, checks=CHECKS)
    assert answer.status == "ok", answer
    for number, found in enumerate(out["y"].tolist()):
        x, y, z = number % 4, number // 4 % 6, number // 24
        assert found == [x % 2, y % 3, 0, x % 2 + y % 3 * 2, 2, 3, 6, x // 2, y // 3, z, 2, 1]


def test_blocks_that_are_left_out_take_no_part_unless_their_cluster_does() -> None:
    y = np.full((48, 12), 99, np.uint32)
    step = launch("k", (4, 6, 2), 1, "y")
    answer, out = run(build(PLACES), step, {"y": y}, blocks=lambda total: (0, 43), count=True)
    assert answer.status == "ok" and not answer.complete and answer.counters[0].blocks_run == 12
    ran = np.flatnonzero(out["y"][:, 6] == 6).tolist()
    assert ran == [0, 1, 4, 5, 8, 9, 38, 39, 42, 43, 46, 47]


@pytest.mark.parametrize(
    ("dims", "grid", "words"),
    [("3, 1, 1", 4, "no multiple"), ("16, 1, 1", 16, "clusters of 16 blocks"), ("3, 3, 1", 9, "clusters of 9 blocks")],
)
def test_clusters_that_no_card_would_launch_are_refused(dims: str, grid: int, words: str) -> None:
    built = build(PLACES.replace("2, 3, 1", dims))
    answer, _ = run(built, launch("k", grid, 1, "y"), {"y": np.zeros((48, 12), np.uint32)})
    assert answer.status == "refused" and words in answer.message


HEAD = """
__device__ __forceinline__ unsigned rank() {
    unsigned rank; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); return rank; }
__device__ __forceinline__ void sync() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
template <class T> __device__ __forceinline__ T* map(T* place, unsigned rank) {
    T* there; asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(place), "r"(rank)); return there; }
"""
RING = (
    HEAD
    + """extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const int* x, int* y) {
    __shared__ int s[48];
    s[threadIdx.x] = x[blockIdx.x * 48 + threadIdx.x];
    FIRST
    int* theirs = map(s, (rank() + 1) % 4);
    y[blockIdx.x * 48 + threadIdx.x] = theirs[47 - threadIdx.x];
    LAST
}"""
)
SYNC, BLOCK = "sync();", "__syncthreads();"
WRITES, READS = (RING[: RING.index(text)].count("\n") + 1 for text in ("s[threadIdx", "= theirs"))


def ring(first: str, last: str, optimised: bool = True, source: str = RING) -> tuple[Answer, np.ndarray, np.ndarray]:
    x = RNG.integers(-999, 999, (8, 48)).astype(np.int32)
    built = build(source.replace("FIRST", first).replace("LAST", last), *(() if optimised else ("-G",)))
    answer, out = run(built, launch("k", 8, 48, "x", "y"), {"x": x, "y": np.zeros_like(x)}, checks=CHECKS)
    block = np.arange(8)
    return answer, out["y"], x[block // 4 * 4 + (block + 1) % 4][:, ::-1]


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
def test_each_block_reads_its_neighbour(optimised: bool) -> None:
    answer, found, wanted = ring(SYNC, SYNC, optimised)
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("first", ["", BLOCK, "asm volatile('barrier.cluster.arrive.relaxed;');"], ids=str)
def test_what_no_barrier_of_the_cluster_orders_is_a_race(first: str) -> None:
    relaxed = first.startswith("asm")
    if relaxed:
        first = first.replace("'", '"') + 'asm volatile("barrier.cluster.wait;");'
    answer, _, _ = ring(first, SYNC)
    (fault,) = answer.faults
    assert fault.kind == "shared-memory race" and fault.where.line == READS and fault.where.block == (0, 0, 0)
    assert fault.other is not None and fault.other.block == (1, 0, 0) and fault.other.line == WRITES
    assert "of block (1, 0, 0)" in fault.message


def test_a_fence_before_an_arrival_that_orders_nothing_by_itself() -> None:
    first = """asm volatile("fence.acq_rel.cluster;" ::: "memory");
        asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");"""
    answer, found, wanted = ring(first.replace("\n", " "), SYNC)
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("last", ["", BLOCK], ids=str)
def test_a_block_may_end_while_others_read_its_memory(last: str) -> None:
    answer, _, _ = ring(SYNC, last)
    assert {fault.kind for fault in answer.faults} == {ENDED}
    assert {fault.where.line for fault in answer.faults} == {READS}


def test_a_block_that_has_ended_has_no_shared_memory() -> None:
    source = RING.replace("FIRST", 'sync(); if (rank() == 2) asm volatile("exit;");').replace("LAST", "")
    x = np.zeros((8, 48), np.int32)
    answer, _ = run(build(source), launch("k", 8, 48, "x", "y"), {"x": x, "y": x})
    (fault,) = answer.faults
    assert fault.kind == ENDED and fault.where.block == (1, 0, 0) and "all threads of which have left" in fault.message


def test_past_the_end_of_a_neighbours_array_and_beyond_the_cluster() -> None:
    answer, _, _ = ring(SYNC, SYNC, source=RING.replace("theirs[47 -", "theirs[48 -"))
    (fault,) = answer.faults
    assert (
        fault.kind == "out-of-bounds read" and fault.where.thread == (0, 0, 0) and "1s', which has 192" in fault.message
    )
    answer, _, _ = ring(SYNC, SYNC, source=RING.replace("% 4", ""))
    fault = answer.faults[0]
    assert fault.kind == "out-of-bounds read" and fault.where.block == (3, 0, 0)
    assert fault.message == "asks for another block in a cluster of 4 blocks"


HISTOGRAM = (
    HEAD
    + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[32];
    if (threadIdx.x < 32) own[threadIdx.x] = 0;
    sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(map(own, x[i] / 32 % 2) + x[i] % 32, 1u);
    sync();
    if (threadIdx.x < 32) atomicAdd(bins + rank() * 32 + threadIdx.x, own[threadIdx.x]);
}"""
)


def test_bins_spread_over_a_cluster() -> None:
    x = RNG.integers(0, 64, 3000).astype(np.uint8)
    buffers = {"x": x, "bins": np.zeros(64, np.uint32)}
    for flags in ((), ("-G",)):
        answer, out = run(build(HISTOGRAM, *flags), launch("k", 6, 64, "x", "bins", len(x)), buffers, checks=CHECKS)
        assert answer.status == "ok" and not answer.faults, answer
        np.testing.assert_array_equal(out["bins"], np.bincount(x, minlength=64))


REMOTE = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const int* x, int* y) {
    __shared__ unsigned long long bar; __shared__ int s[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar), mine = (unsigned)__cvta_generic_to_shared(s), rank, far, to;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
    asm volatile("barrier.cluster.wait;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(at), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(mine + 4 * threadIdx.x), "r"(rank ^ 1));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(to), "r"(x[blockIdx.x * 64 + threadIdx.x]) : "memory");
    ARRIVE
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                     "selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    y[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}"""
ARRIVE = 'asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far) : "memory");'


def test_arrivals_at_a_neighbours_barrier_hand_over_what_was_written_there() -> None:
    x = RNG.integers(-999, 999, (6, 64)).astype(np.int32)
    answer, out = run(
        build(REMOTE.replace("ARRIVE", ARRIVE)), launch("k", 6, 64, "x", "y"), {"x": x, "y": x * 0}, checks=CHECKS
    )
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(out["y"], x[np.arange(6) ^ 1][:, ::-1])


def test_arrivals_at_the_own_barrier_hand_over_nothing_of_the_neighbour() -> None:
    x = RNG.integers(-999, 999, (2, 64)).astype(np.int32)
    built = build(REMOTE.replace("ARRIVE", ARRIVE.replace('"r"(far)', '"r"(at)')))
    answer, _ = run(built, launch("k", 2, 64, "x", "y"), {"x": x, "y": x * 0}, checks=CHECKS)
    assert "shared-memory race" in {fault.kind for fault in answer.faults}


def test_global_memory_is_ordered_by_the_barrier_of_the_cluster_and_for_nobody_else() -> None:
    source = (
        HEAD
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* x, int* y) {
        x[blockIdx.x * 32 + threadIdx.x] = threadIdx.x;
        sync();
        y[blockIdx.x * 32 + threadIdx.x] = x[(blockIdx.x ^ WHO) * 32 + threadIdx.x];
    }"""
    )
    buffers = {"x": np.zeros(128, np.int32), "y": np.zeros(128, np.int32)}
    answer, _ = run(build(source.replace("WHO", "1")), launch("k", 4, 32, "x", "y"), buffers, checks=CHECKS)
    assert answer.status == "ok" and not answer.faults, answer
    answer, _ = run(build(source.replace("WHO", "2")), launch("k", 4, 32, "x", "y"), buffers, checks=CHECKS)
    assert {fault.kind for fault in answer.faults if not fault.benign} == {"global-memory race"}


WAITS = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y) {
    BODY
    y[blockIdx.x * 64 + threadIdx.x] = 1;
}"""
CLUSTER_ARRIVE, CLUSTER_WAIT = (f'asm volatile("barrier.cluster.{word};" ::: "memory");' for word in ("arrive", "wait"))


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (f"if (blockIdx.x == 1) {CLUSTER_ARRIVE} {CLUSTER_WAIT}", "divergent barrier", "without having arrived"),
        (f"{CLUSTER_ARRIVE} {CLUSTER_ARRIVE} {CLUSTER_WAIT}", "divergent barrier", "before it has waited"),
        (
            f'if (blockIdx.x == 1 && threadIdx.x == 5) asm("bar.sync 1, 64;"); {CLUSTER_ARRIVE} {CLUSTER_WAIT}',
            "divergent barrier",
            "some threads wait for ever at line 2, others",
        ),
    ],
    ids=["no arrival", "two arrivals", "an arrival that never comes"],
)
def test_barriers_of_a_cluster_that_are_misused(body: str, kind: str, words: str) -> None:
    answer, _ = run(build(WAITS.replace("BODY", body)), launch("k", 2, 64, "y"), {"y": 512}, checks=CHECKS)
    fault = next(fault for fault in answer.faults if fault.kind == kind and words in fault.message)
    assert fault.where.line > 0 and answer.status == "fault"


def test_threads_that_have_left_are_not_waited_for() -> None:
    body = f"if (threadIdx.x >= 40) return; {CLUSTER_ARRIVE} {CLUSTER_WAIT}"
    answer, out = run(build(WAITS.replace("BODY", body)), launch("k", 4, 64, "y"), {"y": np.zeros((4, 64), np.int32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.tile(np.arange(64) < 40, (4, 1)))


def test_a_shadow_of_a_cluster_is_refused_by_name() -> None:
    answer, _ = run(build(WAITS.replace("BODY", "")), launch("k", 2, 64, "y"), {"y": 512}, shadow=True)
    assert answer.status == "refused" and "clusters of 2 blocks" in answer.message


def test_many_phases_end_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """More arrivals than there are arrays kept for what they hand on."""
    monkeypatch.setattr(race_phases, "MOST_ARRAYS", 64)
    source = (
        HEAD
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y, int n) {
        __shared__ int s[2];
        int* theirs = map(s, rank() ^ 1);
        if (threadIdx.x == 0) s[0] = s[1] = blockIdx.x;
        sync();
        for (int i = 0; i < n; i++) {
            int got = theirs[i & 1];
            sync();
            if (threadIdx.x == 0) s[~i & 1] = got + 1;
            sync();
        }
        if (threadIdx.x == 0) y[blockIdx.x] = s[n & 1];
    }"""
    )
    answer, out = run(build(source), launch("k", 2, 32, "y", 90), {"y": np.zeros(2, np.int32)}, checks=CHECKS)
    assert answer.status == "ok" and not answer.faults, answer
    state = [[0, 0], [1, 1]]
    for i in range(90):
        got = [state[1][i & 1], state[0][i & 1]]
        for block in range(2):
            state[block][~i & 1] = got[block] + 1
    assert out["y"].tolist() == [state[0][0], state[1][0]]


def test_of_a_grid_that_is_huge_only_the_clusters_that_run_are_laid_out() -> None:
    grid = (2 * 40_000, 3 * 10_000, 1)
    clusters, numbers = clusters_of("k", (2, 3, 1), grid), np.array([1, 2_399_999_999])
    assert clusters.order(numbers).tolist() == [
        y * grid[0] + x
        for x0, y0 in ((0, 0), (grid[0] - 2, grid[1] - 3))
        for y in range(y0, y0 + 3)
        for x in (x0, x0 + 1)
    ]
