"""Atomics: every operation, in lane order, contended and not, on global and shared memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execution.emulator.atomic_update import compare_and_swap, update
from tests.execution.emulator.building import build, launch, run

RNG = np.random.default_rng(5)


def test_histogram_with_shared_and_global_atomics() -> None:
    built = build("""extern "C" __global__ void k(const unsigned char* x, unsigned* h, int n) {
        __shared__ unsigned s[256]; for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0; __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1u);
        __syncthreads(); for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&h[i], s[i]); }""")
    x = RNG.integers(0, 256, 30_000).astype(np.uint8)
    answer, out = run(
        built,
        launch("k", 12, 128, "x", "h", len(x)),
        {"x": x, "h": np.zeros(256, np.uint32)},
        checks=frozenset({"races", "initialised"}),
    )
    assert answer.status == "ok", answer.faults
    np.testing.assert_array_equal(out["h"], np.bincount(x, minlength=256))


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_every_integer_operation(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* r, unsigned long long* w, unsigned* old) {
        int v = x[threadIdx.x];
        atomicAdd(r, v); atomicMin(r + 1, v); atomicMax(r + 2, v); atomicMin((unsigned*)r + 3, (unsigned)v);
        atomicMax((unsigned*)r + 4, (unsigned)v); atomicAnd(r + 5, v); atomicOr(r + 6, v); atomicXor(r + 7, v);
        atomicSub(r + 8, v); old[threadIdx.x] = atomicInc((unsigned*)r + 9, 6u); atomicDec((unsigned*)r + 10, 9u);
        atomicAdd(w, (unsigned long long)v); atomicMax((long long*)w + 1, (long long)v);
            atomicXor(w + 2, (unsigned long long)v); }""",
        *options,
    )
    x = RNG.integers(-(2**31), 2**31, 100).astype(np.int32)
    u = x.view(np.uint32)
    start = np.array([0, 9, -9, -1, 5, -1, 0, 3, 7, 2, 4], np.int32)
    answer, out = run(
        built,
        launch("k", 1, 100, "x", "r", "w", "old"),
        {"x": x, "r": start, "w": np.zeros(3, np.uint64), "old": np.zeros(100, np.uint32)},
    )
    assert answer.status == "ok", answer
    total = int(x.astype(np.int64).sum())
    wanted = [
        total, min(9, x.min()), max(-9, x.max()), u.min(), max(5, u.max()), np.bitwise_and.reduce(x),
        np.bitwise_or.reduce(x), 3 ^ np.bitwise_xor.reduce(x), 7 - total, (2 + 100) % 7, 0,
    ]  # fmt: skip
    down = 4
    for _ in range(100):
        down = 9 if down == 0 or down > 9 else down - 1
    wanted[10] = down
    np.testing.assert_array_equal(out["r"].view(np.uint32), [int(value) & 0xFFFFFFFF for value in wanted])
    np.testing.assert_array_equal(out["old"], (2 + np.arange(100)) % 7)
    wide = x.astype(np.int64)
    assert out["w"].view(np.int64).tolist() == [total, max(0, int(wide.max())), int(np.bitwise_xor.reduce(wide))]


def test_float_sums_round_in_lane_order() -> None:
    built = build("""extern "C" __global__ void k(const float* x, float* r, double* d, float* old) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        old[i] = atomicAdd(r, x[i]); atomicAdd(d, (double)x[i]); }""")
    x = (RNG.standard_normal(512) * 10.0 ** RNG.integers(-4, 5, 512)).astype(np.float32)
    answer, out = run(
        built,
        launch("k", 4, 128, "x", "r", "d", "old"),
        {"x": x, "r": np.ones(1, np.float32), "d": np.zeros(1), "old": np.zeros(512, np.float32)},
    )
    assert answer.status == "ok", answer
    running, olds = np.float32(1), []
    for value in x:
        olds.append(running)
        running = np.float32(running + value)
    np.testing.assert_array_equal(out["old"], np.array(olds))
    assert out["r"][0] == running and out["d"][0] == np.add.accumulate(x.astype(np.float64))[-1]


def test_a_float_maximum_by_compare_and_swap() -> None:
    built = build("""extern "C" __global__ void k(const float* x, int* r, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
        int old = r[i % 3], seen; do { seen = old; if (__int_as_float(seen) >= x[i]) break;
        old = atomicCAS(r + i % 3, seen, __float_as_int(x[i])); } while (old != seen); }""")
    x = RNG.standard_normal(3000).astype(np.float32)
    start = np.full(3, -np.inf, np.float32)
    answer, out = run(built, launch("k", 24, 128, "x", "r", 3000), {"x": x, "r": start})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["r"], [x[k::3].max() for k in range(3)])


def test_halves_and_pairs_of_them() -> None:
    ptx = """.version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 p) {
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .b16 %h<3>;
    ld.param.u64 %rd1, [p]; mov.b32 %r1, 0x3C003800;
    red.global.add.noftz.f16x2 [%rd1], %r1;
    mov.b16 %h1, 0x4000; atom.global.add.noftz.f16 %h2, [%rd1+4], %h1;
    mov.b16 %h1, 0x3F80; atom.global.add.noftz.bf16 %h2, [%rd1+6], %h1;
    ret; }"""
    from tests.execution.emulator.building import of_ptx

    answer, out = run(of_ptx(ptx), launch("k", 1, 10, "p"), {"p": np.zeros(4, np.uint16)})
    assert answer.status == "ok", answer
    halves = out["p"][:3].view(np.float16)
    assert halves.tolist() == [5.0, 10.0, 20.0]  # 10 lanes of 0.5, 1 and 2
    assert out["p"][3] == 0x4120  # 10 as bfloat16


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=200))
def test_compare_and_swap_is_what_one_lane_after_another_would_do(lanes: list[tuple[int, int, int]]) -> None:
    index, expected, new = (np.array(column) for column in zip(*lanes, strict=True))
    view = np.zeros(6, np.uint32)
    found = compare_and_swap(view, index, expected.astype(np.uint32), new.astype(np.uint32))
    model, olds = [0] * 6, []
    for place, want, value in lanes:
        olds.append(model[place])
        if model[place] == want:
            model[place] = value
    assert found.tolist() == olds and view.tolist() == model


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**32 - 1)), min_size=1, max_size=200), st.booleans())
def test_updates_are_what_one_lane_after_another_would_do(lanes: list[tuple[int, int]], fold: bool) -> None:
    index = np.array([place for place, _ in lanes])
    values = np.array([value for _, value in lanes], np.uint32)
    view = np.arange(6, dtype=np.uint32)
    found = update(view, index, np.add, (values,), np.add if fold else None)
    model, olds = list(range(6)), []
    for place, value in lanes:
        olds.append(model[place])
        model[place] = (model[place] + value) % 2**32
    assert found.tolist() == olds and view.tolist() == model
