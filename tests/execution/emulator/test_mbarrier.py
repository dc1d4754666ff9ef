"""Barriers in shared memory: the state of one, against a model that counts one by one; ``cuda::barrier``, pipelines and
bulk copies as programs use them; what goes wrong with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execution.emulator.cluster_barrier import ENDED
from agent.execution.emulator.mbarrier import State, arrive, parity, pending, read, transfer
from tests.execution.emulator.building import build, launch, run, with_headers

CHECKS = frozenset({"races", "initialised", "barriers"})
RNG = np.random.default_rng(8)
Operation = tuple[str, int]


class Model:
    """An mbarrier by the text of the PTX ISA, one operation after the other."""

    def __init__(self, count: int) -> None:
        self.pending = self.expected = count
        self.nbytes = self.phase = 0

    def _settle(self) -> None:
        if self.pending == 0 and self.nbytes == 0:
            self.pending, self.phase = self.expected, self.phase + 1

    def arrive(self, count: int, nbytes: int = 0, drop: bool = False) -> bool:
        if count > self.pending:
            return False
        self.pending, self.nbytes = self.pending - count, self.nbytes + nbytes
        self.expected -= count if drop else 0
        self._settle()
        return True

    def transfer(self, nbytes: int) -> None:
        self.nbytes += nbytes
        self._settle()


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 40),
    st.lists(
        st.one_of(
            st.tuples(st.just("arrive"), st.lists(st.integers(1, 6), min_size=1, max_size=70)),
            st.tuples(st.just("drop"), st.lists(st.just(1), min_size=1, max_size=3)),
            st.tuples(st.just("expect"), st.lists(st.integers(0, 5000), min_size=1, max_size=3)),
            st.tuples(st.just("bytes"), st.lists(st.integers(-5000, 5000), min_size=1, max_size=1)),
        ),
        max_size=12,
    ),
)
def test_the_state_is_what_counting_one_by_one_gives(count: int, operations: list[tuple[str, list[int]]]) -> None:
    state, model = State(count, count), Model(count)
    for kind, numbers in operations:
        array, phase = np.array(numbers, np.int64), model.phase
        if kind == "bytes":
            state, over = transfer(state, numbers[0])
            model.transfer(numbers[0])
            assert over == (model.phase != phase)
        else:
            ones, lanes, held = np.ones(len(numbers), np.int64), [], []
            found = arrive(
                state, array if kind != "expect" else ones, array if kind == "expect" else None, kind == "drop"
            )
            for number in numbers:
                held.append((model.pending, model.phase % 2))
                more = number if kind == "expect" else 0
                lanes.append(model.arrive(number if kind != "expect" else 1, more, kind == "drop"))
                if not lanes[-1]:
                    break
            taken = sum(lanes)
            assert found.taken == taken and len(found.ends) == model.phase - phase
            tokens = found.tokens[:taken]
            assert list(zip(pending(tokens).tolist(), parity(tokens).tolist(), strict=True)) == held[:taken]
            state = found.state
        assert read(state.word) == state
        assert (state.pending, state.expected, state.nbytes, state.parity) == (
            model.pending, model.expected, model.nbytes, model.phase % 2,
        )  # fmt: skip
    assert read(0) is None


BUFFERED = """#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ barrier bar; __shared__ float s[2][64];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    float sum = 0;
    for (int t = 0; t < n; t++) {
        cuda::memcpy_async(&s[t & 1][threadIdx.x], &x[t * 64 + threadIdx.x], sizeof(float), bar);
        barrier::arrival_token token = bar.arrive();
        WAIT
        sum += s[t & 1][63 - threadIdx.x];
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}"""


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
def test_two_buffers_behind_a_barrier(optimised: bool) -> None:
    x = RNG.standard_normal((5 if optimised else 2, 64)).astype(np.float32)
    step, buffers = launch("k", 3, 64, "x", "y", len(x)), {"x": x, "y": np.zeros((3, 64), np.float32)}
    built = with_headers(BUFFERED.replace("WAIT", "bar.wait(std::move(token));"), optimised)
    answer, out = run(built, step, buffers, checks=CHECKS, seconds=600.0)
    assert answer.status == "ok", answer
    wanted = np.zeros(64, np.float32)
    for row in x:
        wanted = wanted + row[::-1]
    np.testing.assert_array_equal(out["y"], np.tile(wanted, (3, 1)))


def test_without_the_wait_the_copies_race() -> None:
    x = np.zeros((5, 64), np.float32)
    built = with_headers(BUFFERED.replace("WAIT", ""))
    answer, _ = run(built, launch("k", 1, 64, "x", "y", 5), {"x": x, "y": np.zeros((1, 64), np.float32)}, checks=CHECKS)
    assert answer.status == "fault" and "shared-memory race" in {fault.kind for fault in answer.faults}


PIPELINE = """#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ alignas(16) float s[2][64];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int ahead = 0, t = 0; t < n; t++) {
        for (; ahead < n && ahead < t + 2; ahead++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[ahead % 2], x + ahead * 64, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[t % 2][63 - threadIdx.x];
        pipe.consumer_release();
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}"""


def test_a_pipeline_of_two_stages() -> None:
    x = RNG.standard_normal((7, 64)).astype(np.float32)
    answer, out = run(
        with_headers(PIPELINE),
        launch("k", 2, 64, "x", "y", 7),
        {"x": x, "y": np.zeros((2, 64), np.float32)},
        checks=CHECKS,
    )
    assert answer.status == "ok", answer
    wanted = np.zeros(64, np.float32)
    for row in x:
        wanted = wanted + row[::-1]
    np.testing.assert_array_equal(out["y"], np.tile(wanted, (2, 1)))


BULK = """#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;
extern "C" __global__ void k(const float* x, float* y) {
    __shared__ alignas(128) float s[256];
    __shared__ barrier bar;
    if (threadIdx.x == 0) { init(&bar, blockDim.x); cde::fence_proxy_async_shared_cta(); }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_global_to_shared(s, x + blockIdx.x * 256, BYTES, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
    } else {
        token = bar.arrive();
    }
    WAIT
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_shared_to_global(y + blockIdx.x * 256, s, sizeof(s));
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}"""
WAIT = "bar.wait(std::move(token));"


def test_bulk_copies_there_and_back() -> None:
    x = RNG.standard_normal(768).astype(np.float32)
    built = with_headers(BULK.replace("WAIT", WAIT).replace("BYTES", "sizeof(s)"))
    buffers = {"x": x, "y": np.zeros(768, np.float32)}
    answer, out = run(built, launch("k", 3, 64, "x", "y"), buffers, checks=CHECKS, count=True)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], x + np.float32(1))
    # 1,024 bytes a block each way, in sectors of 32
    moved = [(line.load_sectors, line.store_sectors) for line in answer.counters[0].lines.values() if line.requests]
    assert moved == [(96, 0), (0, 96)]


def test_bulk_copies_that_nobody_waits_for_that_run_over_or_bring_too_little() -> None:
    x = np.zeros(768, np.float32)
    step, buffers = launch("k", 3, 64, "x", "y"), {"x": x, "y": x}
    answer, _ = run(with_headers(BULK.replace("WAIT", "").replace("BYTES", "sizeof(s)")), step, buffers, checks=CHECKS)
    assert {fault.kind for fault in answer.faults} == {"shared-memory race", "uninitialised read", ENDED}
    sound = with_headers(BULK.replace("WAIT", WAIT).replace("BYTES", "sizeof(s)"))
    answer, _ = run(sound, step, {"x": x[:760], "y": x}, checks=CHECKS)
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds read" and fault.where.line == 11 and fault.where.thread == (0, 0, 0)
    short = with_headers(BULK.replace("WAIT", WAIT).replace("BYTES", "512"))
    answer, _ = run(short, step, buffers, checks=CHECKS)
    (fault,) = answer.faults
    assert fault.kind == "deadlock" and "and 512 bytes are missing" in fault.message


PARITY = """extern "C" __global__ void k(int* y, int n) {
    __shared__ unsigned long long bar; __shared__ int s;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) { s = 0; INIT }
    __syncthreads();
    for (int t = 0; t < n; t++) {
        if (threadIdx.x == t) s += t + 1;
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory");
        EXTRA
        int done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(at), "r"(t & 1) : "memory");
        y[t * blockDim.x + threadIdx.x] = s;
        __syncthreads();
    }
}"""
INIT = 'asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(blockDim.x) : "memory");'


@pytest.mark.parametrize("threads", [32, 70])
def test_waits_by_parity_phase_after_phase(threads: int) -> None:
    built = build(PARITY.replace("INIT", INIT).replace("EXTRA", ""))
    answer, out = run(built, launch("k", 1, threads, "y", 6), {"y": np.zeros((6, threads), np.int32)}, checks=CHECKS)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], np.repeat(np.cumsum(np.arange(1, 7))[:, None], threads, axis=1))


def test_a_barrier_that_was_not_initialised_and_one_arrival_too_many() -> None:
    y = np.zeros((1, 32), np.int32)
    answer, _ = run(build(PARITY.replace("INIT", "").replace("EXTRA", "")), launch("k", 1, 32, "y", 1), {"y": y})
    assert answer.faults[0].kind == "invalid mbarrier" and "no mbarrier was initialised" in answer.faults[0].message
    extra = 'if (threadIdx.x == 3) asm volatile("mbarrier.arrive.shared.b64 _, [%0], 33;" :: "r"(at) : "memory");'
    answer, _ = run(build(PARITY.replace("INIT", INIT).replace("EXTRA", extra)), launch("k", 1, 32, "y", 1), {"y": y})
    (fault,) = answer.faults
    assert fault.kind == "invalid mbarrier" and "more arrivals" in fault.message and fault.where.thread == (3, 0, 0)


def test_one_warp_makes_and_others_take_with_no_barrier_of_the_block() -> None:
    """A leader waits and its warp goes on after it: what one lane knows the warp knows once they have met."""
    built = build("""extern "C" __global__ void k(const int* x, int* y) {
        __shared__ unsigned long long full; __shared__ int s[32];
        unsigned at = (unsigned)__cvta_generic_to_shared(&full);
        if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(at) : "memory");
        __syncthreads();
        if (threadIdx.x < 32) {
            s[threadIdx.x] = x[threadIdx.x];
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory");
        } else {
            if (threadIdx.x % 32 == 0) { int done = 0; while (!done)
                asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                             : "=r"(done) : "r"(at) : "memory"); }
            __syncwarp();
            y[threadIdx.x - 32] = s[(threadIdx.x * 5) % 32];
        } }""")
    x = RNG.integers(0, 99, 32).astype(np.int32)
    answer, out = run(built, launch("k", 1, 96, "x", "y"), {"x": x, "y": np.zeros(64, np.int32)}, checks=CHECKS)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], x[(np.arange(32, 96) * 5) % 32])
