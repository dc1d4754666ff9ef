"""The compiled back end gives the answers of the NumPy back end, or leaves the launch to it."""

import sys
import time
from typing import Any

import numpy as np
import pytest

from agent.execution.device import Answer, Image, Poison, Request
from agent.execution.emulator import Emulator
from tests.execution.emulator.building import build, launch, run
from tests.execution.emulator.test_engine import MATMUL

pytest.importorskip("llvmlite")
from agent.execution.emulator.compiled import launching, worth

ALL = frozenset({"bounds", "races", "initialised", "barriers"})


def both(source: str, step: Any, buffers: dict[str, Any], *flags: str, checks: frozenset[str] = ALL) -> Answer:
    """Run by both back ends, which must agree; the answer of the compiled one."""
    built = build(source, *flags)
    wanted, _ = run(built, step, buffers, checks=checks)
    found, _ = run(built, step, buffers, back_end="compiled", checks=checks)
    assert (found.status, found.message, found.complete) == (wanted.status, wanted.message, wanted.complete)
    assert found.faults == wanted.faults
    assert found.thread_instructions == wanted.thread_instructions
    assert found.inexact == wanted.inexact and not wanted.compiled
    assert found.written is not None and wanted.written is not None
    for name, data in wanted.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], data, err_msg=name)
        np.testing.assert_array_equal(found.written[name], wanted.written[name], err_msg=name)
    return found


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("flags", [(), ("-G",), ("--fmad=false",)], ids=["optimised", "unoptimised", "not fused"])
@pytest.mark.parametrize("kernel", ["naive", "tiled"])
@pytest.mark.parametrize("checks", [frozenset(), ALL], ids=["unchecked", "checked"])
def test_matrix_products(kernel: str, flags: tuple[str, ...], checks: frozenset[str]) -> None:
    n = 40
    buffers = {"a": floats(n, n), "b": floats(n, n), "c": 4 * n * n}
    answer = both(MATMUL, launch(kernel, (3, 3, 1), (16, 16, 1), "a", "b", "c", n), buffers, *flags, checks=checks)
    # at the ragged edge nobody leaves before a barrier
    assert answer.status == "ok" and answer.compiled == (kernel,)


def test_a_long_way_through_special_functions_ends_in_the_same_bits() -> None:
    source = """extern "C" __global__ void k(const float* x, float* y, double* z, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
        float s = x[i];
        for (int k = 0; k < 20; k++) s = sinf(s) * __expf(-s) + rsqrtf(fabsf(s) + 1e-3f) / (1.f + __logf(2.f + s * s));
        y[i] = s + (float)(int)(s * 1e10f) + __uint_as_float(0x7fc00001u + i % 3) * (i % 1000 == 999);
        z[i] = sqrt((double)s * s + 2.0) / 3.0 + (double)(long long)(s * 1e25f); }"""
    n = 3000
    answer = both(source, launch("k", 12, 256, "x", "y", "z", n), {"x": floats(n), "y": 4 * n, "z": 8 * n})
    assert answer.status == "ok" and answer.compiled == ("k",)


WARPS = """
extern "C" __global__ void sums(const float* x, float* y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    __shared__ float w[32];
    int lane = threadIdx.x & 31, k = threadIdx.x >> 5;
    if (!lane) w[k] = s;
    __syncthreads();
    if (k) return;
    s = lane < blockDim.x / 32 ? w[lane] : 0.f;
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
    if (!lane) y[blockIdx.x] = s;
}
extern "C" __global__ void votes(const int* x, unsigned* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
    unsigned full = blockDim.x % 32 ? (threadIdx.x >= 32 ? (1u << blockDim.x % 32) - 1 : ~0u) : ~0u, p;
    unsigned b = __ballot_sync(full, v & 1) ^ __match_any_sync(full, v & 7) * 3;
    b ^= __match_all_sync(full, v & 64, (int*)&p);
    int a = __any_sync(full, v == 3) + 2 * __all_sync(full, v < 190) + 4 * __reduce_min_sync(full, v);
    int u = __reduce_add_sync(full, v) ^ __shfl_up_sync(full, v, 3) * 17 ^ __shfl_sync(full, v, v & 3, 8) * 29;
    __syncwarp(full);
    y[i] = b ^ a ^ u ^ p;
}
"""


@pytest.mark.parametrize("threads", [32, 48, 160])
def test_lanes_of_a_warp_talk(threads: int) -> None:
    if threads % 32 == 0:
        answer = both(WARPS, launch("sums", 5, threads, "x", "y", 700), {"x": floats(5, 700), "y": 20})
        assert answer.status == "ok" and answer.compiled == ("sums",)
    values = np.random.default_rng(4).integers(0, 200, 5 * threads).astype(np.int32)
    answer = both(WARPS, launch("votes", 5, threads, "x", "y"), {"x": values, "y": 20 * threads})
    assert answer.status == "ok" and answer.compiled == ("votes",)


HISTOGRAM = """
extern "C" __global__ void k(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[x[i] % 64], 1u);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""


def test_atomics_that_commute_run_on_all_cores() -> None:
    data = np.random.default_rng(5).integers(0, 256, 20_000).astype(np.uint8)
    buffers = {"x": data, "bins": np.zeros(64, np.uint32)}
    answer = both(HISTOGRAM, launch("k", 9, 128, "x", "bins", len(data)), buffers)
    assert answer.status == "ok" and answer.compiled == ("k",)
    np.testing.assert_array_equal(answer.outputs["bins"].view(np.uint32), np.bincount(data % 64, minlength=64))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("y[i + 1] = x[i];", "out-of-bounds write"),
        ("y[i] = x[i - 1];", "out-of-bounds read"),
        ("y[i] = *(const float*)((const char*)x + i);", "misaligned access"),
        ("y[i] = y[i] + 1;", "uninitialised read"),
        ("y[i] = *(const float*)(x[i] > 1e30f ? 64ull : 4ull * i);", "null pointer"),
        ("y[i] = i ? 0 : x[i]; if (i == 77) y[0] = x[3];", "global-memory race"),
        ("__shared__ float s[64]; s[threadIdx.x] = x[i]; y[i] = s[(threadIdx.x + 1) % 64];", "shared-memory race"),
        ("__shared__ float s[64]; y[i] = s[threadIdx.x];", "uninitialised read"),
        ("volatile __shared__ float s[65]; s[threadIdx.x * 2] = 1; y[i] = 0;", "out-of-bounds write"),
        ("if (threadIdx.x & 1) __syncthreads(); else { __syncthreads(); y[i] = 1; }", "divergent barrier"),
        ("y[i] = 0; if (threadIdx.x == 5) __trap();", "trap"),
    ],
)
def test_faults_are_those_of_the_other_back_end(body: str, kind: str) -> None:
    source = f"""extern "C" __global__ void k(const float* x, float* y) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}"""
    answer = both(source, launch("k", 2, 64, "x", "y"), {"x": floats(128), "y": 512})
    assert kind in {fault.kind for fault in answer.faults} and not answer.compiled


def test_a_race_between_blocks_on_different_cores_is_found_and_taken_back() -> None:
    # the first block writes what the last one reads: on two cores neither comes before the other
    source = """extern "C" __global__ void k(float* x) {
        if (blockIdx.x == 0) x[threadIdx.x] = threadIdx.x;
        if (blockIdx.x == gridDim.x - 1) x[100 + threadIdx.x] = x[threadIdx.x] + 1; }"""
    answer = both(source, launch("k", 8, 32, "x"), {"x": np.zeros(200, np.float32)})
    assert {fault.kind for fault in answer.faults} == {"global-memory race"} and not answer.compiled
    # nobody asked for races: the order of the NumPy back end is the order
    answer = both(source, launch("k", 8, 32, "x"), {"x": np.zeros(200, np.float32)}, checks=frozenset())
    assert answer.status == "ok" and not answer.compiled


ENDLESS = """extern "C" __global__ void k(unsigned* y, unsigned step) {
    unsigned i = threadIdx.x; while (i != 1) i += step; y[threadIdx.x] = i; }"""


def test_an_endless_loop_ends_with_the_step_limit() -> None:
    request = Request(
        build(ENDLESS), (launch("k", 2, 32, "y", np.uint32(2)),), (Image("y", 128, Poison()),), ("y",), step_cap=200_000
    )
    answer = Emulator("compiled").run(request)
    assert answer.status == "fault" and [fault.kind for fault in answer.faults] == ["step limit"]
    assert answer.faults == Emulator().run(request).faults and not answer.compiled


def test_what_runs_again_and_again_is_compiled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block whose estimate is small, with loops that are long: by what NumPy had to do for it."""
    monkeypatch.setattr(worth, "AT_FIRST", 3_000)
    monkeypatch.setattr(worth, "FOR_EACH", 0)
    source = """extern "C" __global__ void turns(const float* x, float* y, int n) { float s = 0;
        for (int k = 0; k < n; k++) s += x[k] * s + x[threadIdx.x]; y[threadIdx.x] = s; }"""
    built, step, buffers = build(source), launch("turns", 1, 32, "x", "y", 300), {"x": floats(300), "y": 128}
    found = [run(built, step, buffers, back_end="auto")[0] for _ in range(6)]
    assert [bool(answer.compiled) for answer in found] == sorted(bool(answer.compiled) for answer in found)
    assert not found[0].compiled and found[-1].compiled == ("turns",)
    assert all(np.array_equal(answer.outputs["y"], found[0].outputs["y"]) for answer in found)
    assert {answer.thread_instructions for answer in found} == {found[0].thread_instructions}
    nothing = run(built, step, buffers, back_end="auto", blocks=lambda total: ())[0]
    assert nothing.status == "ok" and not nothing.compiled and nothing.thread_instructions == 0
    # watched it stays with NumPy
    assert not run(built, step, buffers, back_end="auto", count=True)[0].compiled


def test_compiling_takes_no_time_from_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that an hour passes on while it compiles."""
    late, compile_kernel = [0.0], launching.compile_kernel

    def slow(*given: Any) -> Any:
        late[0] += 3600.0
        return compile_kernel(*given)

    clock = time.monotonic
    monkeypatch.setattr(launching, "compile_kernel", slow)
    monkeypatch.setattr(time, "monotonic", lambda: clock() + late[0])
    source = 'extern "C" __global__ void two(float* y) { y[threadIdx.x] = 2.0f; }'
    answer, _ = run(build(source), launch("two", 1, 32, "y"), {"y": 128}, back_end="compiled", seconds=60.0)
    assert answer.status == "ok" and answer.compiled == ("two",)


def test_a_request_withdrawn_ends_compiled_code() -> None:
    asked: list[None] = []

    def cancelled() -> bool:
        asked.append(None)
        return len(asked) > 2

    request = Request(
        build(ENDLESS), (launch("k", 2, 32, "y", np.uint32(2)),), (Image("y", 128, Poison()),), ("y",),
        step_cap=10**15, seconds=120, cancelled=cancelled,
    )  # fmt: skip
    assert Emulator("compiled").run(request).status == "cancelled"


def test_without_llvm_the_other_back_end_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("agent.execution.emulator.compiled.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("agent.execution.emulator.compiled.launching", raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    source = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = 1; }'
    answer = both(source, launch("k", 1, 32, "y"), {"y": 128})
    assert answer.status == "ok" and not answer.compiled


def test_long_launches_are_compiled_and_short_ones_are_not() -> None:
    def answer(n: int) -> Answer:
        images = (Image("a", 4 * n * n, Poison(0)), Image("b", 4 * n * n, Poison(0)), Image("c", 4 * n * n, Poison()))
        step = launch("naive", (n // 16, n // 16, 1), (16, 16, 1), "a", "b", "c", n)
        return Emulator("auto").run(Request(build(MATMUL, "-DLONG"), (step,), images, ("c",)))

    assert answer(32).compiled == ()
    assert answer(480).compiled == ("naive",)
    # once it is there it is used from less on, but not for next to nothing
    assert answer(96).compiled == ("naive",)
    assert answer(16).compiled == ()


def test_instructions_without_a_compiled_form_leave_the_kernel_to_the_other_back_end() -> None:
    source = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = atomicAdd(y + 32, 1.f); }'
    answer = both(source, launch("k", 1, 32, "y"), {"y": np.zeros(33, np.float32)})
    assert answer.status == "ok" and not answer.compiled
