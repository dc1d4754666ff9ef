"""Bulk copies as kernels write them by hand: rings of tiles, several blocks at once, reductions; and their misuse."""

import numpy as np
import pytest

from agent.execution.device import Answer
from agent.execution.emulator.bulk import UNAWAITED
from agent.execution.emulator.cluster_barrier import ENDED
from tests.execution.emulator.building import build, launch, run

CHECKS = frozenset({"races", "initialised", "barriers"})
RNG = np.random.default_rng(12)

# An assembly statement stands on one line: of several, editions of NVRTC name the first or the last.
HEAD = """
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64* bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void expect(u64* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(bar)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void arrive(u64* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory"); }
__device__ __forceinline__ void wait(u64* bar, int parity) {
    int done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;" \
        " selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory"); }
__device__ __forceinline__ void load(void* to, const void* from, int bytes, u64* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
        :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(bar)) : "memory"); }
__device__ __forceinline__ void store(void* to, const void* from, int bytes) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" \
        :: "l"(to), "r"(at(from)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void sync() {
    asm volatile("barrier.cluster.arrive;" ::: "memory"); asm volatile("barrier.cluster.wait;" ::: "memory"); }
__device__ __forceinline__ void drain() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
"""

AWAIT = "drain();"

RING = (
    HEAD
    + """extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ alignas(128) float tile[2][64];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) for (int i = 0; i < 2; i++) { init(&full[i], 1); init(&empty[i], 64); }
    __syncthreads();
    if (threadIdx.x >= 64) {
        if (threadIdx.x == 64) for (int t = 0; t < n; t++) {
            if (t >= 2) { REFILL }
            expect(&full[t & 1], 256);
            load(tile[t & 1], x + t * 64, 256, &full[t & 1]);
        }
        return;
    }
    float sum = 0;
    for (int t = 0; t < n; t++) {
        FULL
        sum += tile[t & 1][63 - threadIdx.x];
        arrive(&empty[t & 1]);
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}"""
)
REFILL, FULL = "wait(&empty[t & 1], (t / 2 - 1) & 1);", "wait(&full[t & 1], t / 2 & 1);"


def line(source: str, text: str) -> int:
    """Of the last place where ``text`` is."""
    return source[: source.rindex(text)].count("\n") + 1


def ring(refill: str, full: str, *flags: str) -> tuple[Answer, np.ndarray, np.ndarray]:
    x = RNG.standard_normal((7, 64)).astype(np.float32)
    source = RING.replace("REFILL", refill).replace("FULL", full)
    buffers = {"x": x, "y": np.zeros((3, 64), np.float32)}
    answer, out = run(build(source, *flags), launch("k", 3, 96, "x", "y", len(x)), buffers, checks=CHECKS)
    wanted = np.zeros(64, np.float32)
    for row in x:
        wanted = wanted + row[::-1]
    return answer, out["y"], np.tile(wanted, (3, 1))


@pytest.mark.parametrize("flags", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_one_warp_fills_a_ring_of_tiles_that_others_drain(flags: tuple[str, ...]) -> None:
    answer, found, wanted = ring(REFILL, FULL, *flags)
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(found, wanted)


def test_a_tile_that_is_filled_again_while_it_is_read_and_one_that_is_not_waited_for() -> None:
    answer, _, _ = ring("", FULL)
    assert "shared-memory race" in {fault.kind for fault in answer.faults}
    answer, found, wanted = ring("if (0)" + REFILL, "")
    assert {"uninitialised read", ENDED} <= {fault.kind for fault in answer.faults}
    assert not np.array_equal(found, wanted)


ONE = (
    HEAD
    + """extern "C" __global__ void k(const char* x, int* y) {
    __shared__ alignas(128) char tile[512];
    __shared__ u64 bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 7) {
        expect(&bar, 256 + MORE);
        load(tile + TO, x + FROM, 256, &bar);
    }
    wait(&bar, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}"""
)


def one(more: str = "0", to: str = "0", start: str = "0", size: str = "256") -> tuple[str, Answer, np.ndarray]:
    source = ONE.replace("MORE", more).replace("TO", to).replace("FROM", start).replace("x + 0, 256", f"x + 0, {size}")
    x = np.arange(512).astype(np.int8)
    answer, out = run(build(source), launch("k", 1, 96, "x", "y"), {"x": x, "y": np.zeros(96, np.int32)}, checks=CHECKS)
    return source, answer, out["y"]


def test_one_copy() -> None:
    _, answer, found = one()
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(found, np.arange(96))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"to": "8"}, "copies to address"),
        ({"start": "4"}, "copies from address"),
        ({"size": "264"}, "copies 264 bytes"),
    ],
    ids=["target", "source", "size"],
)
def test_what_is_no_multiple_of_16_is_reported_where_it_is_asked_for(how: dict[str, str], words: str) -> None:
    _, answer, _ = one(more="8" if "size" in how else "0", **how)
    fault = next(fault for fault in answer.faults if fault.kind == "misaligned access")
    assert fault.message.startswith(words) and fault.message.endswith("no multiple of 16")
    assert fault.where.line == line(HEAD, "cp.async.bulk.shared")
    assert fault.where.thread == (7, 0, 0) and "deadlock" not in {fault.kind for fault in answer.faults}


@pytest.mark.parametrize("blocks", [1, 200])
def test_a_wait_for_bytes_that_never_come_ends_in_a_report(blocks: int) -> None:
    source = ONE.replace("MORE", "128").replace("TO", "0").replace("FROM", "0")
    buffers = {"x": np.zeros(512, np.int8), "y": np.zeros(96, np.int32)}
    answer, _ = run(build(source), launch("k", blocks, 96, "x", "y"), buffers, checks=frozenset({"barriers"}))
    fault = next(fault for fault in answer.faults if fault.kind == "deadlock")
    assert "0 of 1 arrivals and 128 bytes are missing" in fault.message and fault.count == blocks * 96
    assert fault.where.line in (line(source, "wait(&bar"), line(HEAD, "while (!done)"))


def test_a_wait_for_a_thread_that_waits_elsewhere() -> None:
    source = ONE.replace("MORE", "0").replace("TO", "0").replace("FROM", "0")
    source = source.replace("if (threadIdx.x == 7) {", "if (threadIdx.x == 7) { __syncthreads();")
    buffers = {"x": np.zeros(512, np.int8), "y": np.zeros(96, np.int32)}
    answer, _ = run(build(source), launch("k", 1, 96, "x", "y"), buffers)
    assert "deadlock" in {fault.kind for fault in answer.faults}
    assert any("1 of 1 arrivals are missing" in fault.message for fault in answer.faults)


CAST = (
    HEAD
    + """extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const int* x, int* y) {
    __shared__ alignas(128) int tile[128];
    __shared__ u64 bar;
    unsigned rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) { init(&bar, 1); expect(&bar, 512); }
    sync();
    if (threadIdx.x == 0 && rank % 2 == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1], 256, [%2], %3;" :: "r"(at(tile + rank * 32)), "l"(x + blockIdx.x * 64), "r"(at(&bar)),
            "h"((unsigned short)0xf) : "memory");
    wait(&bar, 0);
    y[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x];
    LAST
}"""
)


def test_one_copy_to_all_blocks_of_a_cluster() -> None:
    x = RNG.integers(-99, 99, (8, 64)).astype(np.int32)
    built = build(CAST.replace("LAST", "sync();"))
    answer, out = run(built, launch("k", 8, 128, "x", "y"), {"x": x, "y": np.zeros((8, 128), np.int32)}, checks=CHECKS)
    assert answer.status == "ok" and not answer.faults, answer
    for block in range(8):
        first = block // 4 * 4
        np.testing.assert_array_equal(out["y"][block], np.concatenate((x[first], x[first + 2])))


SEND = (
    HEAD
    + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const int* x, int* y) {
    __shared__ alignas(128) int own[64], theirs[64];
    __shared__ u64 bar;
    unsigned rank, to, far; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) { init(&bar, 1); expect(&bar, 256); }
    own[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    sync();
    if (threadIdx.x == 0) {
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at(theirs)), "r"(rank ^ 1));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(at(&bar)), "r"(rank ^ 1));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
            :: "r"(to), "r"(at(own)), "r"(far) : "memory");
    }
    wait(&bar, 0);
    y[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
    sync();
}"""
)


def test_a_copy_from_block_to_block() -> None:
    x = RNG.integers(-99, 99, (4, 64)).astype(np.int32)
    answer, out = run(build(SEND), launch("k", 4, 64, "x", "y"), {"x": x, "y": x * 0}, checks=CHECKS)
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(out["y"], x[np.arange(4) ^ 1][:, ::-1])


OUT = (
    HEAD
    + """extern "C" __global__ void k(const int* x, int* y) {
    __shared__ alignas(128) int tile[64];
    for (int t = 0; t < 3; t++) {
        tile[threadIdx.x] = x[t * 64 + threadIdx.x] * 2;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) { store(y + (blockIdx.x * 3 + t) * 64, tile, 256); commit(); READ; }
        __syncthreads();
    }
    if (threadIdx.x == 0) { LAST; }
}"""
)


def out_of(read: str, last: str) -> tuple[Answer, np.ndarray, np.ndarray]:
    x = RNG.integers(-99, 99, (3, 64)).astype(np.int32)
    built = build(OUT.replace("READ", read).replace("LAST", last))
    answer, out = run(built, launch("k", 2, 64, "x", "y"), {"x": x, "y": np.zeros((2, 3, 64), np.int32)}, checks=CHECKS)
    return answer, out["y"], np.tile(x * 2, (2, 1, 1))


def test_tiles_are_copied_out_while_their_place_is_kept() -> None:
    answer, found, wanted = out_of(AWAIT, "")
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(found, wanted)
    answer, found, wanted = out_of("", AWAIT)
    assert answer.status == "ok" and not np.array_equal(found, wanted)
    np.testing.assert_array_equal(found[:, 2], wanted[:, 2])


def test_a_copy_out_that_the_end_of_its_block_overtakes_is_told() -> None:
    answer, found, wanted = out_of("if (t < 2) drain();", "")
    assert [(fault.kind, fault.benign) for fault in answer.faults] == [(UNAWAITED, True)] and answer.status == "ok"
    np.testing.assert_array_equal(found, wanted)


FOLD = (
    HEAD
    + """extern "C" __global__ void k(const TYPE* x, TYPE* y) {
    __shared__ alignas(128) TYPE tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.HOW [%0], [%1], %2;"
            :: "l"(y), "r"(at(tile)), "r"((int)sizeof(tile)) : "memory");
        commit(); drain();
    }
}"""
)


@pytest.mark.parametrize(
    ("kind", "how", "fold"),
    [
        ("int", "add.s32", np.add), ("int", "min.s32", np.minimum), ("unsigned", "max.u32", np.maximum),
        ("float", "add.f32", np.add), ("double", "add.f64", np.add), ("unsigned", "xor.b32", np.bitwise_xor),
    ],
)  # fmt: skip
def test_tiles_are_folded_into_global_memory(kind: str, how: str, fold: np.ufunc) -> None:
    dtype = {"int": np.int32, "unsigned": np.uint32, "float": np.float32, "double": np.float64}[kind]
    x = RNG.integers(0, 1000, (5, 64)).astype(dtype)
    y = RNG.integers(0, 1000, 64).astype(dtype)
    built = build(FOLD.replace("TYPE", kind).replace("HOW", how))
    answer, out = run(built, launch("k", 5, 64, "x", "y"), {"x": x, "y": y}, checks=CHECKS)
    assert answer.status == "ok" and not answer.faults, answer
    np.testing.assert_array_equal(out["y"], fold(y, fold.reduce(x)))


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];",
            ("tensor map", "cp.async.bulk.tensor.1d"),
        ),
        ("wgmma.fence.sync.aligned;", ("wgmma.fence.sync.aligned at line 2 of k",)),
        ("{ .reg .pred p; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
         " [%1], [%0], 128; }", ("tensormap",)),
    ],
    ids=["a tensor map", "a warp group", "a tensor map that is copied"],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_by_name(instruction: str, words: tuple[str, ...]) -> None:
    source = f"""extern "C" __global__ void k(int* y) {{
        asm volatile("{instruction}" :: "r"(0), "l"(y), "r"(0), "r"(0)); }}"""
    answer, _ = run(build(source), launch("k", 1, 1, "y"), {"y": 4})
    assert answer.status == "refused" and all(word in answer.message for word in words), answer.message
