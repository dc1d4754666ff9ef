"""Control flow: divergence, loops, switches, calls, barriers, and threads that wait for each other."""

import numpy as np
import pytest

from tests.execution.emulator.building import build, launch, run

pytestmark = pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
RNG = np.random.default_rng(3)


def test_divergent_loops_end_when_each_lane_is_done(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void collatz(const int* x, int* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
        long long v = x[i]; int steps = 0;
        while (v != 1) { if (v % 2) v = 3 * v + 1; else v /= 2; steps++; }
        y[i] = steps; }""",
        *options,
    )
    n = 700
    x = np.arange(1, n + 1, dtype=np.int32)

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v, count = (3 * v + 1 if v % 2 else v // 2), count + 1
        return count

    answer, out = run(built, launch("collatz", 6, 128, "x", "y", n), {"x": x, "y": np.zeros(n, np.int32)})
    assert answer.status == "ok"
    np.testing.assert_array_equal(out["y"], [steps(int(v)) for v in x])


def test_nested_loops_with_break_and_continue(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
        for (int a = 0; a < i % 13; a++) { for (int b = a; b < 20; b++) {
            if (b == 17 - i % 5) break; if ((a + b) % 3 == 0) continue; s += a * b; } if (s > 900) break; }
        if (i < n) y[i] = s; }""",
        *options,
    )
    n = 500

    def value(i: int) -> int:
        s = 0
        for a in range(i % 13):
            for b in range(a, 20):
                if b == 17 - i % 5:
                    break
                if (a + b) % 3:
                    s += a * b
            if s > 900:
                break
        return s

    _, out = run(built, launch("k", 4, 128, "y", n), {"y": np.zeros(n, np.int32)})
    np.testing.assert_array_equal(out["y"], [value(i) for i in range(n)])


def test_switch_early_return_and_recursion_free_calls(options: tuple[str, ...]) -> None:
    built = build(
        """struct Pair { int a; float b; int c[3]; };
        __device__ __noinline__ int pick(Pair p, int k) { if (k < 0) return -1; return p.c[k % 3] + (int)p.b; }
        __device__ __noinline__ Pair make(int i) { Pair p; p.a = i; p.b = i * 0.5f; for (int k = 0; k < 3;
            k++) p.c[k] = i * k;
            return p; }
        extern "C" __global__ void k(int* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
        if (i % 11 == 3) { y[i] = -5; return; }
        int r;
        switch (i % 9) { case 0: r = 10; break; case 1: r = 21; case 2: r = i; break; case 3: r = i * i; break;
            case 4: r = pick(make(i), i); break; case 5: r = ~i; break; case 6: r = 7; break; case 7: r = i << 2; break;
            default: r = pick(make(i), -i); }
        y[i] = r; }""",
        *options,
    )
    n = 400

    def value(i: int) -> int:
        if i % 11 == 3:
            return -5
        table = [10, i, i, i * i, i * (i % 3) + int(i * 0.5), ~i, 7, i << 2, -1]
        return table[i % 9]

    answer, out = run(built, launch("k", 4, 128, "y", n), {"y": np.zeros(n, np.int32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], [value(i) for i in range(n)])


def test_a_local_array_indexed_at_run_time(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; int a[16]; unsigned char b[16];
        for (int j = 0; j < 16; j++) { a[j] = j * i; b[j] = j + i; }
        for (int j = 0; j < n; j++) { int t = x[j] & 15; a[t] += b[(t * 7 + i) & 15]; }
        int s = 0; for (int j = 0; j < 16; j++) s = s * 3 + a[j]; y[i] = s; }""",
        *options,
    )
    x = RNG.integers(0, 100, 20).astype(np.int32)

    def value(i: int) -> int:
        a, b = [j * i for j in range(16)], [(j + i) & 255 for j in range(16)]
        for v in x.tolist():
            a[v & 15] += b[((v & 15) * 7 + i) & 15]
        s = 0
        for v in a:
            s = s * 3 + v
        return (s + 2**31) % 2**32 - 2**31

    answer, out = run(built, launch("k", 3, 64, "x", "y", 20), {"x": x, "y": np.zeros(192, np.int32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], [value(i) for i in range(192)])


@pytest.mark.parametrize("threads", [32, 48, 128, 1000])
def test_tree_reduction_in_shared_memory(options: tuple[str, ...], threads: int) -> None:
    built = build(
        """extern "C" __global__ void sum(const int* x, int* y, int n) {
        extern __shared__ int s[]; int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
        s[t] = i < n ? x[i] : 0; __syncthreads();
        int m = 1; while (m < blockDim.x) m *= 2;
        for (int k = m / 2; k > 0; k /= 2) { if (t < k && t + k < blockDim.x) s[t] += s[t + k]; __syncthreads(); }
        if (t == 0) y[blockIdx.x] = s[0]; }""",
        *options,
    )
    n = 5000
    x = RNG.integers(-1000, 1000, n).astype(np.int32)
    blocks = -(-n // threads)
    padded = np.concatenate([x, np.zeros(blocks * threads - n, np.int32)]).reshape(blocks, threads)
    answer, out = run(
        built,
        launch("sum", blocks, threads, "x", "y", n, shared=4 * threads),
        {"x": x, "y": np.zeros(blocks, np.int32)},
        checks=frozenset({"races", "initialised", "barriers"}),
    )
    assert answer.status == "ok", answer.faults
    np.testing.assert_array_equal(out["y"], padded.sum(axis=1))


@pytest.mark.parametrize("threads", [32, 96, 256])
def test_warp_shuffles_and_votes(options: tuple[str, ...], threads: int) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* sum, int* scan, unsigned* bits, int* flags) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, v = x[i], s = v, p = v;
        for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
        for (int o = 1; o < 32; o *= 2) { int t = __shfl_up_sync(~0u, p, o); if (lane >= o) p += t; }
        sum[i] = s; scan[i] = p; bits[i] = __ballot_sync(~0u, v > 0);
        int f = __all_sync(~0u, v > -50) | __any_sync(~0u, v > 95) * 2;
        f |= __shfl_sync(~0u, v, lane & 3, 4) << 8;
        f ^= __shfl_down_sync(~0u, v, 3, 8) << 16;
        flags[i] = f; }""",
        *options,
    )
    n = threads * 3
    x = RNG.integers(-100, 100, n).astype(np.int32)
    zero = {name: np.zeros(n, np.int32) for name in ("sum", "scan", "bits", "flags")}
    answer, out = run(
        built,
        launch("k", 3, threads, "x", "sum", "scan", "bits", "flags"),
        {"x": x, **zero},
        checks=frozenset({"barriers"}),
    )
    assert answer.status == "ok", answer
    warps = x.reshape(-1, 32)
    np.testing.assert_array_equal(out["sum"].reshape(-1, 32), np.repeat(warps.sum(1)[:, None], 32, 1))
    np.testing.assert_array_equal(out["scan"].reshape(-1, 32), warps.cumsum(1))
    weights = (np.uint64(1) << np.arange(32, dtype=np.uint64))[None]
    np.testing.assert_array_equal(
        out["bits"].view(np.uint32).reshape(-1, 32)[:, 0], ((warps > 0) * weights).sum(1).astype(np.uint32)
    )
    lane = np.arange(32)
    flags = (warps > -50).all(1)[:, None] | ((warps > 95).any(1)[:, None] * 2)
    flags = flags | (warps[:, (lane & ~3) + (lane & 3)].astype(np.int64) << 8)
    down = np.where(lane % 8 + 3 < 8, lane + 3, lane)
    flags = flags ^ (warps[:, down].astype(np.int64) << 16)
    np.testing.assert_array_equal(out["flags"].reshape(-1, 32), flags.astype(np.int32))


def test_match_redux_and_a_partial_mask(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, unsigned* same, unsigned* all, int* most, unsigned* some) {
        int i = threadIdx.x, v = x[i]; int agree;
        same[i] = __match_any_sync(~0u, v); all[i] = __match_all_sync(~0u, v / 100, &agree) + agree;
        most[i] = __reduce_max_sync(~0u, v) + __reduce_add_sync(~0u, v);
        if (i % 32 < 10) some[i] = __ballot_sync(0x3ff, v & 1) ^ __activemask(); else some[i] = 7; }""",
        *options,
    )
    x = np.concatenate([RNG.integers(0, 5, 32), RNG.integers(-300, 300, 32)]).astype(np.int32)
    zero = {name: np.zeros(64, np.int32) for name in ("same", "all", "most", "some")}
    answer, out = run(built, launch("k", 1, 64, "x", "same", "all", "most", "some"), {"x": x, **zero})
    assert answer.status == "ok", answer
    for w, warp in enumerate(x.reshape(2, 32)):
        rows = slice(w * 32, w * 32 + 32)
        same = [sum(1 << k for k in range(32) if warp[k] == warp[j]) for j in range(32)]
        np.testing.assert_array_equal(out["same"].view(np.uint32)[rows], np.array(same, np.uint32))
        quotients = np.trunc(warp / 100)
        agree = bool((quotients == quotients[0]).all())
        np.testing.assert_array_equal(
            out["all"].view(np.uint32)[rows], [(0xFFFFFFFF + 1) & 0xFFFFFFFF if agree else 0] * 32
        )
        np.testing.assert_array_equal(out["most"][rows], [warp.max() + warp.sum()] * 32)
        bits = sum(1 << k for k in range(10) if warp[k] & 1)
        np.testing.assert_array_equal(out["some"][rows], [bits ^ 0x3FF] * 10 + [7] * 22)


def test_a_spin_lock_lets_every_thread_in_once(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* lock, volatile int* total) {
        bool done = false;
        while (!done) { if (atomicCAS(lock, 0, 1) == 0) { *total = *total + 1; __threadfence(); atomicExch(lock, 0);
            done = true; } }
        }""",
        *options,
    )
    answer, out = run(
        built, launch("k", 4, 64, "lock", "total"), {"lock": np.zeros(1, np.int32), "total": np.zeros(1, np.int32)}
    )
    assert answer.status == "ok", answer
    assert out["total"][0] == 256 and out["lock"][0] == 0


def test_a_lock_taken_by_spinning_at_a_lower_address(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* lock, int* total) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        int t = *(volatile int*)total; *(volatile int*)total = t + 1; __threadfence();
        atomicExch(lock, 0); }""",
        *options,
    )
    answer, out = run(
        built, launch("k", 3, 32, "lock", "total"), {"lock": np.zeros(1, np.int32), "total": np.zeros(1, np.int32)}
    )
    assert answer.status == "ok", answer
    assert out["total"][0] == 96


def test_a_ticket_lock_serves_in_order(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(unsigned* next, unsigned* serving, int* order) {
        if (threadIdx.x) return;
        unsigned mine = atomicAdd(next, 1u);
        while (atomicAdd(serving, 0u) != gridDim.x - 1 - mine) __nanosleep(20);
        order[gridDim.x - 1 - mine] = blockIdx.x; __threadfence(); atomicAdd(serving, 1u); }""",
        *options,
    )
    answer, out = run(
        built,
        launch("k", 300, 64, "next", "serving", "order"),
        {"next": np.zeros(1, np.uint32), "serving": np.zeros(1, np.uint32), "order": np.full(300, -1, np.int32)},
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["order"], np.arange(300)[::-1])


def test_a_grid_barrier_by_a_counter_spans_batches(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(volatile unsigned* count, int* x, int* y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = i; __threadfence(); __syncthreads();
        if (threadIdx.x == 0) { atomicAdd((unsigned*)count, 1u); while (*count < gridDim.x) {} }
        __syncthreads();
        y[i] = ((volatile int*)x)[gridDim.x * blockDim.x - 1 - i]; }""",
        *options,
    )
    blocks, threads = 150, 256  # more lanes than one batch has
    n = blocks * threads
    answer, out = run(
        built,
        launch("k", blocks, threads, "count", "x", "y"),
        {"count": np.zeros(1, np.uint32), "x": np.zeros(n, np.int32), "y": np.zeros(n, np.int32)},
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.arange(n)[::-1])


def test_a_scan_that_looks_back_at_earlier_blocks(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* y, volatile int* state, int* next) {
        __shared__ int s[128]; __shared__ int block, before; int t = threadIdx.x;
        if (t == 0) block = gridDim.x - 1 - atomicAdd(next, 1);   // the last block to come is the first in order
        __syncthreads();
        s[t] = x[block * 128 + t]; __syncthreads();
        for (int o = 1; o < 128; o *= 2) { int v = t >= o ? s[t - o] : 0; __syncthreads(); s[t] += v; __syncthreads(); }
        if (t == 0) { int p = 0; if (block) while ((p = state[block - 1]) < 0) {} before = p;
            state[block] = p + s[127]; }
        __syncthreads();
        y[block * 128 + t] = before + s[t]; }""",
        *options,
    )
    n = 128 * 200
    x = RNG.integers(0, 9, n).astype(np.int32)
    answer, out = run(
        built,
        launch("k", 200, 128, "x", "y", "state", "next"),
        {"x": x, "y": np.zeros(n, np.int32), "state": np.full(200, -1, np.int32), "next": np.zeros(1, np.int32)},
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], x.cumsum())


def test_barriers_that_reduce_a_predicate(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* y) {
        int v = x[blockIdx.x * blockDim.x + threadIdx.x];
        int c = __syncthreads_count(v > 0), a = __syncthreads_and(v > -90), o = __syncthreads_or(v > 90);
        y[blockIdx.x * blockDim.x + threadIdx.x] = c * 4 + (a ? 2 : 0) + (o ? 1 : 0); }""",
        *options,
    )
    x = RNG.integers(-100, 100, (20, 48)).astype(np.int32)
    answer, out = run(built, launch("k", 20, 48, "x", "y"), {"x": x, "y": np.zeros((20, 48), np.int32)})
    assert answer.status == "ok", answer
    wanted = (x > 0).sum(1) * 4 + (x > -90).all(1) * 2 + (x > 90).any(1)
    np.testing.assert_array_equal(out["y"], np.repeat(wanted[:, None], 48, 1))


def test_named_barriers_between_producers_and_consumers(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* y) {
        __shared__ int s[32]; int t = threadIdx.x;
        for (int r = 0; r < 5; r++) {
            if (t < 32) { s[t] = r * 100 + t; asm volatile("bar.arrive 1, 64;" ::: "memory");
                          asm volatile("bar.sync 2, 64;" ::: "memory"); }
            else { asm volatile("bar.sync 1, 64;" ::: "memory"); y[r * 32 + t - 32] = s[63 - t];
                   asm volatile("bar.arrive 2, 64;" ::: "memory"); } } }""",
        *options,
    )
    answer, out = run(
        built, launch("k", 3, 64, "y"), {"y": np.zeros((5, 32), np.int32)}, checks=frozenset({"races", "barriers"})
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.arange(5)[:, None] * 100 + np.arange(31, -1, -1)[None])


def test_threads_that_exit_early_hold_up_no_barrier(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* y, int n) {
        __shared__ int s[64]; int t = threadIdx.x, i = blockIdx.x * 64 + t; if (i >= n) return;
        s[t] = i; __syncthreads(); y[i] = s[t ^ 1] ; }""",
        *options,
    )
    answer, out = run(built, launch("k", 3, 64, "y", 150), {"y": np.zeros(150, np.int32)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.arange(150) ^ 1)


def test_lambdas_share_an_array_of_the_kernel(options: tuple[str, ...]) -> None:
    """Unoptimised, a lambda is a function of its own, and the array that both use is declared outside of either."""
    built = build(
        """extern "C" __global__ void k(const float* x, float* y) {
        __shared__ float s[64], t[64];
        auto put = [&](int i, float v) { s[i] = v; t[63 - i] = -v; };
        auto get = [&](int i) { return s[63 - i] + 2 * t[i]; };
        put(threadIdx.x, x[threadIdx.x]);
        __syncthreads();
        y[threadIdx.x] = get(threadIdx.x); }""",
        *options,
    )
    x = RNG.standard_normal(64).astype(np.float32)
    checks = frozenset({"races", "initialised", "barriers"})
    answer, out = run(built, launch("k", 2, 64, "x", "y"), {"x": x, "y": np.zeros(64, np.float32)}, checks=checks)
    assert answer.status == "ok" or all(fault.benign for fault in answer.faults), answer
    np.testing.assert_array_equal(out["y"], -x[::-1])
