"""Each kind of fault: the right kind, line, block, thread and buffer, once per line with a count; then the limits."""

import time

import numpy as np
import pytest

from agent.execution.device import Answer, Fault, Image, Poison, Request
from agent.execution.emulator import Emulator
from tests.execution.emulator.building import build, launch, of_ptx, run

ALL = frozenset({"bounds", "races", "initialised", "barriers"})
BOTH = pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])


def only(answer: Answer) -> Fault:
    assert answer.status == "fault", answer
    (fault,) = answer.faults
    return fault


@BOTH
def test_out_of_bounds_read_and_write_name_line_thread_and_buffer(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float v = x[i + 1];
        y[i * 2] = v;
        }""",
        *options,
    )
    x = np.arange(64, dtype=np.float32)
    answer, out = run(built, launch("k", 2, 32, "x", "y", 64), {"x": x, "y": np.zeros(100, np.float32)})
    read, write = answer.faults
    assert (read.kind, read.where.line, read.where.block, read.where.thread) == (
        "out-of-bounds read", 3, (1, 0, 0), (31, 0, 0),
    )  # fmt: skip
    assert read.count == 1 and "'x'" in read.message and "offset 256" in read.message and "256 bytes" in read.message
    assert (write.kind, write.where.line, write.where.block, write.where.thread) == (
        "out-of-bounds write", 4, (1, 0, 0), (18, 0, 0),
    )  # fmt: skip
    assert write.count == 14 and "'y'" in write.message and "offset 400" in write.message
    # what is sound was done; a suppressed load gives 0
    np.testing.assert_array_equal(out["y"][::2], np.arange(1, 51))


@BOTH
def test_negative_and_far_offsets_stay_with_their_buffer(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const float* a, const float* b, float* y, long long far) {
        y[threadIdx.x] = b[(int)threadIdx.x - 1] + a[far]; }""",
        *options,
    )
    four = np.ones(4, np.float32)
    step = launch("k", 1, 4, "a", "b", "y", np.int64(1 << 35))
    answer, out = run(built, step, {"a": four, "b": four, "y": four})
    messages = sorted(fault.message for fault in answer.faults)
    assert any("'b'" in message and "offset -4" in message for message in messages) or len(messages) == 1
    assert any("'a'" in message and str(4 << 35) in message for message in messages) or "'b'" in messages[0]
    assert sum(fault.count for fault in answer.faults) == 5
    np.testing.assert_array_equal(out["y"], [0, 1, 1, 1])


@BOTH
def test_misaligned_null_read_only_and_wild(options: tuple[str, ...]) -> None:
    built = build(
        """__constant__ int c[4];
        extern "C" __global__ void misaligned(float* x) {
        float4 v = *(float4*)(x + threadIdx.x);
        x[threadIdx.x] = v.x + v.y + v.z + v.w; }
        extern "C" __global__ void null(int* p, int* q) {
        q[threadIdx.x] = p[threadIdx.x]; }
        extern "C" __global__ void constant(int k) {
        int* p; asm("mov.u64 %0, c;" : "=l"(p)); p[k + threadIdx.x] = c[0]; }
        extern "C" __global__ void wild(int* q, unsigned long long p) {
        q[threadIdx.x] = *(int*)p; }""",
        *options,
    )
    x = np.zeros(64, np.float32)
    fault = only(run(built, launch("misaligned", 1, 8, "x"), {"x": x})[0])
    assert (fault.kind, fault.where.line, fault.where.thread, fault.count) == ("misaligned access", 3, (1, 0, 0), 6)
    fault = only(run(built, launch("null", 1, 8, np.uint64(0), "q"), {"q": x})[0])
    assert (fault.kind, fault.where.line, fault.count) == ("null pointer", 6, 8)
    fault = only(run(built, launch("constant", 1, 4, 0), {})[0])
    assert (fault.kind, fault.where.line, fault.count) == ("write to read-only memory", 8, 4)
    fault = only(run(built, launch("wild", 1, 4, "q", np.uint64(1 << 61)), {"q": x})[0])
    assert fault.kind == "out-of-bounds read" and "no buffer" in fault.message
    fault = only(run(built, launch("wild", 1, 4, "q", np.uint64(0x8765_4320)), {"q": x})[0])
    assert fault.kind == "out-of-bounds read" and "0x87654320" in fault.message


@BOTH
def test_what_begins_inside_is_misaligned_before_it_is_too_long(options: tuple[str, ...]) -> None:
    built = build('extern "C" __global__ void k(char* x) { *(int*)(x + threadIdx.x) = 1; }', *options)
    fault, beyond = run(built, launch("k", 1, 6, "x"), {"x": np.zeros(4, np.uint8)})[0].faults
    assert (fault.kind, fault.where.thread, fault.count) == ("misaligned access", (1, 0, 0), 3)
    assert (beyond.kind, beyond.where.thread, beyond.count) == ("out-of-bounds write", (4, 0, 0), 2)


@BOTH
def test_shared_memory_bounds_by_variable(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* y) {
        __shared__ int a[32], b[32]; int t = threadIdx.x;
        a[t] = t; b[t] = -t; __syncthreads();
        y[t] = a[t + 1] + b[t];
        }
        extern "C" __global__ void dynamic(int* y) {
        extern __shared__ int d[];
        d[threadIdx.x] = 1; __syncthreads();
        y[threadIdx.x] = d[threadIdx.x]; }""",
        *options,
    )
    answer, _ = run(built, launch("k", 3, 32, "y"), {"y": np.zeros(32, np.int32)}, checks=frozenset({"bounds"}))
    fault = only(answer)
    assert (fault.kind, fault.where.line, fault.where.thread, fault.count) == ("out-of-bounds read", 4, (31, 0, 0), 3)
    assert "offset 128 of shared variable" in fault.message
    answer, _ = run(built, launch("dynamic", 1, 32, "y", shared=64), {"y": np.zeros(32, np.int32)})
    write, read = answer.faults
    assert (write.kind, write.where.line, write.where.thread, write.count) == ("out-of-bounds write", 8, (16, 0, 0), 16)
    assert (read.kind, read.where.line, read.count) == ("out-of-bounds read", 9, 16)


def test_copied_padding_is_no_uninitialised_read() -> None:
    built = build(
        """struct P { char c; double d; unsigned char e[5]; };
        __device__ __noinline__ P make(int i) { P p; p.c = i; p.d = i;
            for (int k = 0; k < 5; k++) p.e[k] = k; return p; }
        __device__ __noinline__ double use(P p, int k) { return p.d + p.e[k % 5]; }
        extern "C" __global__ void k(double* y) { y[threadIdx.x] = use(make(threadIdx.x), threadIdx.x); }""",
        "-G",
    )
    answer, out = run(built, launch("k", 1, 32, "y"), {"y": np.zeros(32)}, checks=ALL)
    assert answer.status == "ok", answer.faults
    np.testing.assert_array_equal(out["y"], np.arange(32) + np.arange(32) % 5)


def test_the_first_bit_field_of_a_word_may_be_set() -> None:
    built = build(
        """struct B { unsigned low : 5; unsigned high : 7; };
        extern "C" __global__ void k(int* y) { B b; b.high = threadIdx.x; b.low = 3;
        y[threadIdx.x] = b.high * 8 + b.low; }""",
        "-G",
    )
    answer, out = run(built, launch("k", 1, 32, "y"), {"y": np.zeros(32, np.int32)}, checks=ALL)
    assert answer.status == "ok", answer.faults
    np.testing.assert_array_equal(out["y"], np.arange(32) * 8 + 3)


def test_uninitialised_reads_of_each_memory() -> None:
    built = build("""extern "C" __global__ void global(const int* x, int* y) {
        y[threadIdx.x] = x[threadIdx.x] + 1; y[threadIdx.x] += 1; }
        extern "C" __global__ void shared(int* y) {
        __shared__ int s[64]; s[threadIdx.x] = 1; __syncthreads();
        y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x * 2]; }
        extern "C" __global__ void local(int* y, int k) {
        int a[16]; for (int i = 0; i < k; i++) a[i * 7 % 16] = i;
        y[threadIdx.x] = a[threadIdx.x]; }""")
    y = np.zeros(64, np.int32)
    fault = only(run(built, launch("global", 1, 32, "x", "y"), {"x": 128, "y": 128}, checks=ALL)[0])
    assert (fault.kind, fault.where.line, fault.count) == ("uninitialised read", 2, 32) and "'x'" in fault.message
    fault = only(run(built, launch("shared", 2, 32, "y"), {"y": y}, checks=ALL)[0])
    assert (fault.kind, fault.where.line, fault.where.thread, fault.count) == ("uninitialised read", 5, (16, 0, 0), 32)
    fault = only(run(built, launch("local", 1, 16, "y", 8), {"y": y}, checks=ALL)[0])
    assert (fault.kind, fault.where.line, fault.count) == ("uninitialised read", 8, 8)
    quiet = run(built, launch("global", 1, 32, "x", "y"), {"x": 128, "y": 128})[0]
    assert quiet.status == "ok"


@BOTH
def test_a_barrier_that_part_of_the_block_never_reaches(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(int* y) {
        int t = threadIdx.x;
        if (t < 40) {
            asm volatile("bar.sync 0;" ::: "memory");
            y[t] = 1;
        } else {
            asm volatile("bar.sync 1;" ::: "memory");
            y[t] = 2;
        } }""",
        *options,
    )
    fault = only(run(built, launch("k", 2, 64, "y"), {"y": np.zeros(64, np.int32)}, checks=ALL)[0])
    assert fault.kind == "divergent barrier" and fault.other is not None
    assert {fault.where.line, fault.other.line} == {4, 7}
    assert fault.where.block == fault.other.block == (0, 0, 0)


def test_different_barriers_at_once_are_reported_and_passed_as_hardware_does() -> None:
    built = build("""extern "C" __global__ void k(int* y) {
        int t = threadIdx.x;
        if (t < 32) {
            __syncthreads();
            y[t] = 1;
        } else {
            y[t] = 3;
            __syncthreads();
        } y[t] += 1; }""")
    answer, out = run(built, launch("k", 1, 64, "y"), {"y": np.zeros(64, np.int32)}, checks=ALL)
    fault = only(answer)
    assert fault.kind == "divergent barrier" and fault.other is not None
    assert {fault.where.line, fault.other.line} == {4, 8}
    assert out["y"].tolist() == [2] * 32 + [4] * 32
    assert run(built, launch("k", 1, 64, "y"), {"y": np.zeros(64, np.int32)})[0].status == "ok"


def test_a_barrier_for_more_threads_than_come_is_a_deadlock() -> None:
    built = build("""extern "C" __global__ void k(int* y) {
        asm volatile("bar.sync 1, 96;" ::: "memory");
        y[threadIdx.x] = 1; }""")
    fault = only(run(built, launch("k", 1, 64, "y"), {"y": np.zeros(64, np.int32)})[0])
    assert (fault.kind, fault.where.line) == ("deadlock", 2)


def test_shuffles_from_lanes_that_are_not_there() -> None:
    built = build("""extern "C" __global__ void k(int* y) {
        int v = threadIdx.x;
        y[v] = __shfl_down_sync(~0u, v, 16); }
        extern "C" __global__ void masked(int* y) {
        int v = threadIdx.x;
        y[v] = __shfl_xor_sync(0xffff, v, 1); }
        extern "C" __global__ void parted(int* y) {
        int v = threadIdx.x;
        if (v < 16) { y[v] = __shfl_xor_sync(~0u, v, 1); __syncthreads(); } else { __syncthreads(); } }""")
    y = np.zeros(64, np.int32)
    fault = only(run(built, launch("k", 1, 40, "y"), {"y": y}, checks=ALL)[0])
    assert (fault.kind, fault.where.line, fault.where.thread) == ("invalid shuffle mask", 3, (32, 0, 0))
    assert "lane 16" in fault.message and fault.count == 8
    answer, _ = run(built, launch("masked", 1, 32, "y"), {"y": y}, checks=ALL)
    assert answer.faults[0].kind == "invalid shuffle mask" and answer.faults[0].count == 16
    answer, _ = run(built, launch("parted", 1, 32, "y"), {"y": y}, checks=ALL)
    assert any(fault.kind == "invalid shuffle mask" and fault.where.line == 9 for fault in answer.faults)


def test_traps_and_failed_assertions() -> None:
    built = build("""extern "C" __global__ void k(int* y) {
        if (threadIdx.x == 5) __trap();
        y[threadIdx.x] = 1; }""")
    answer, out = run(built, launch("k", 1, 32, "y"), {"y": np.zeros(32, np.int32)})
    fault = only(answer)
    assert (fault.kind, fault.where.line, fault.where.thread) == ("trap", 2, (5, 0, 0))
    assert out["y"].sum() == 31


def test_one_entry_for_each_line_and_an_end_to_endless_faults() -> None:
    built = build("""extern "C" __global__ void k(int* x, int n) {
        for (int i = 0; i < n; i++)
            x[i * 1000 + threadIdx.x + 64] = i;
        }""")
    answer, _ = run(built, launch("k", 1, 32, "x", 50), {"x": np.zeros(64, np.int32)})
    assert only(answer).count == 32 * 50
    answer, _ = run(built, launch("k", 1, 32, "x", 100_000), {"x": np.zeros(64, np.int32)})
    assert only(answer).kind == "out-of-bounds write" and not answer.complete and "too many" in answer.message


def test_an_endless_loop_meets_the_step_limit_the_clock_and_the_user() -> None:
    built = build("""extern "C" __global__ void k(volatile int* x) {
        while (*x == 0) {}
        x[1] = 5; }""")
    step, x = launch("k", 2, 32, "x"), np.zeros(2, np.int32)
    answer, _ = run(built, step, {"x": x}, step_cap=100_000)
    fault = only(answer)
    assert (fault.kind, fault.where.line) == ("step limit", 2) and not answer.complete
    hung = build("""extern "C" __global__ void k(volatile int* x) {
        if (threadIdx.x == 7) while (*x == 0) {}
        __syncthreads(); }""")
    fault = only(run(hung, step, {"x": x}, step_cap=100_000)[0])
    assert (fault.where.line, fault.where.thread) == (2, (7, 0, 0)) and "barrier of line 3" in fault.message
    started = time.monotonic()
    answer, _ = run(built, step, {"x": x}, seconds=0.2)
    assert answer.status == "timeout" and time.monotonic() - started < 60
    calls = []
    answer, _ = run(built, step, {"x": x}, cancelled=lambda: calls.append(1) or len(calls) > 3)
    assert answer.status == "cancelled"


def test_what_is_not_known_is_refused_by_name_and_line() -> None:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    body = ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<9>; .reg .b64 %d<3>;\nTEXT\nret;\n}"
    for text, name in (
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("ld.global.b128 %d1, [%d2];", "ld.global"),
        ("mov.u32 %r1, %smid;", "smid"),
        ("mov.u32 %r1, %envreg3;", "envreg3"),
        ("shfl.down.b32 %r1, %r2, 1, 31;", "shfl.down"),
    ):
        answer, _ = run(
            of_ptx(head + body.replace("TEXT", text)), launch("k", 1, 32, "p"), {"p": np.zeros(1, np.int32)}
        )
        assert answer.status == "refused" and name in answer.message, (text, answer.message)


def test_bad_requests_are_refused_with_a_reason() -> None:
    built = build("""extern "C" __global__ void k(int* x, int n) { x[threadIdx.x] = n; }""")
    x = {"x": np.zeros(32, np.int32)}
    for step, words in (
        (launch("nothing", 1, 32, "x", 1), "nothing"),
        (launch("k", 1, 32, "x"), "2 arguments"),
        (launch("k", 1, 32, "y", 1), "'y'"),
        (launch("k", 1, 32, "x", np.float64(1)), "4 bytes"),
        (launch("k", 1, 2048, "x", 1), "2048 threads"),
        (launch("k", 0, 32, "x", 1), "grid"),
        (launch("k", 1, 32, "x", 1, shared=1 << 30), "shared"),
    ):
        answer, _ = run(built, step, x)
        assert answer.status == "refused" and words in answer.message, answer.message
    answer = Emulator().run(Request(of_ptx("nonsense"), (), (), ()))
    assert answer.status == "refused" and "PTX" in answer.message
    answer = Emulator().run(Request(built, (), (Image("x", 4, Poison(), alias="z"),), ("x",)))
    assert answer.status == "refused" and "alias" in answer.message
