"""Memory: widths, vectors, spaces, module variables, contents made on demand, aliases, steps that fill and copy."""

import numpy as np
import pytest
from attrs import evolve

from agent.execution.device import Answer, Image, Poison, Recipe, Request
from agent.execution.emulator import Emulator
from agent.workload.binding import BoundCopy, BoundFill, PointerArgument
from tests.execution.emulator.building import build, launch, run

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_all_widths_with_sign_and_vectors(options: tuple[str, ...]) -> None:
    built = build(
        """extern "C" __global__ void k(const signed char* a, const unsigned char* b, const short* c,
            const unsigned short* d,
            const long long* e, const double* f, const float4* g, const int2* h, double* out, float4* v,
            signed char* w) {
        int i = threadIdx.x;
            out[i] = a[i] + b[i] * 2.0 + c[i] * 3.0 + d[i] * 4.0 + (double)(e[i] >> 8) + f[i] + h[i].x - h[i].y;
        float4 q = g[i]; v[i] = make_float4(q.w, q.z, q.y, q.x); w[i] = a[i] ^ b[i]; }""",
        *options,
    )
    n = 64
    a, b = RNG.integers(-128, 128, n).astype(np.int8), RNG.integers(0, 256, n).astype(np.uint8)
    c, d = RNG.integers(-(2**15), 2**15, n).astype(np.int16), RNG.integers(0, 2**16, n).astype(np.uint16)
    e, f = RNG.integers(-(2**40), 2**40, n), RNG.standard_normal(n)
    g, h = RNG.standard_normal((n, 4)).astype(np.float32), RNG.integers(-99, 99, (n, 2)).astype(np.int32)
    buffers = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g, "h": h}
    outs = {"out": np.zeros(n), "v": np.zeros((n, 4), np.float32), "w": np.zeros(n, np.int8)}
    answer, out = run(built, launch("k", 1, n, *buffers, *outs), {**buffers, **outs})
    assert answer.status == "ok", answer
    wanted = a + b * 2.0 + c * 3.0 + d * 4.0 + (e >> 8).astype(float) + f + h[:, 0] - h[:, 1]
    np.testing.assert_allclose(out["out"], wanted, rtol=1e-12)
    np.testing.assert_array_equal(out["v"], g[:, ::-1])
    np.testing.assert_array_equal(out["w"].view(np.uint8), a.view(np.uint8) ^ b)


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_module_variables_constants_and_pointers_in_them(options: tuple[str, ...]) -> None:
    built = build(
        """__constant__ float weights[4] = {1, 2, 3, 4}; __device__ int table[3] = {10, 20, 30};
            __device__ int* pointer = table + 1;
        __device__ int counter;
        extern "C" __global__ void k(float* y) { int i = threadIdx.x; atomicAdd(&counter, 1); __syncthreads();
        y[i] = weights[i % 4] + pointer[i % 2] + counter; }""",
        *options,
    )
    answer, out = run(built, [launch("k", 1, 8, "y")] * 2, {"y": np.zeros(8, np.float32)})
    assert answer.status == "ok", answer
    i = np.arange(8)
    np.testing.assert_array_equal(out["y"], i % 4 + 1 + np.array([20, 30])[i % 2] + 16)  # the counter lives on


def test_a_symbol_gets_the_contents_of_its_image() -> None:
    built = evolve(
        build(
            """__constant__ float w[4]; extern "C" __global__ void k(float* y) { y[threadIdx.x] = w[threadIdx.x]; }"""
        ),
        symbols={"w": "w"},
    )
    w = np.array([4, 3, 2, 1], np.float32)
    images = {"y": np.zeros(4, np.float32), "w": Image("w", 16, w.view(np.uint8), symbol=True)}
    answer, out = run(built, launch("k", 1, 4, "y"), images)
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], w)


def test_a_struct_passed_by_value_and_indexed_at_run_time() -> None:
    ptx = """.version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 y, .param .align 4 .b8 s[16]) {
    .reg .b64 %d<6>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [y]; mov.b64 %d2, s; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3; ld.param.u32 %r2, [%d4]; add.s64 %d5, %d1, %d3; st.global.u32 [%d5], %r2; ret; }"""
    from agent.workload.binding import ValueArgument
    from tests.execution.emulator.building import of_ptx

    step = launch("k", 1, 4, "y", np.int32(0))
    step = evolve(step, arguments=(PointerArgument("y"), ValueArgument("b16", 0)))
    answer, _ = run(of_ptx(ptx), step, {"y": np.zeros(4, np.int32)})
    assert answer.status == "refused" and "b16" in answer.message
    built = of_ptx(ptx.replace("s[16]", "s[8]"))
    answer, out = run(built, launch("k", 1, 2, "y", np.uint64(0x1_0000_0007)), {"y": np.zeros(2, np.int32)})
    assert answer.status == "ok", answer
    assert out["y"].tolist() == [7, 1]


def test_contents_are_made_only_where_they_are_touched() -> None:
    built = build("""extern "C" __global__ void k(const float* x, float* y, long long step) {
        long long i = blockIdx.x * step + threadIdx.x; y[i] = x[i] + 1; }""")
    made: list[tuple[int, int]] = []

    def make(start: int, stop: int) -> np.ndarray:
        made.append((start, stop))
        return (np.arange(start // 4, stop // 4) % 1000).astype(np.float32).view(np.uint8)

    nbytes = 2 << 30
    step = 1 << 20
    request = Request(
        built,
        (launch("k", 512, 128, "x", "y", np.int64(step)),),
        (Image("x", nbytes, Recipe(nbytes, make)), Image("y", nbytes, Poison())),
        ("y",),
        checks=frozenset({"initialised"}),
        blocks=lambda total: (0, 3, total - 1),
    )
    answer = Emulator().run(request)
    assert answer.status == "ok" and not answer.complete
    assert sum(stop - start for start, stop in made) <= 3 * 65536
    out = answer.outputs["y"].view(np.float32)
    for block in (0, 3, 511):
        np.testing.assert_array_equal(
            out[block * step :][:128], (np.arange(block * step, block * step + 128) % 1000) + 1
        )
    assert answer.written is not None
    assert answer.written["y"][: 128 * 4].all() and not answer.written["y"][512:4096].any()
    assert (answer.outputs["y"][128 * 4 : 65536] == 0xCB).all()


def test_images_share_memory_by_alias_and_may_start_off_a_boundary() -> None:
    built = build("""extern "C" __global__ void k(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x] * 2; }""")
    x = np.arange(8, dtype=np.int32)
    answer, out = run(
        built,
        launch("k", 1, 8, "x", "y"),
        {"x": Image("x", 32, x.view(np.uint8), offset=4), "y": Image("y", 32, Poison(), alias="x")},
    )
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"].view(np.int32), x * 2)
    np.testing.assert_array_equal(out["x"].view(np.int32), x * 2)


def test_fills_copies_and_swapped_launches_run_in_order() -> None:
    built = build(
        """extern "C" __global__ void k(const int* x, int* y) { int i = threadIdx.x;
            y[i] = x[i] * 2 + x[(i + 1) % 8]; }"""
    )
    x = np.arange(8, dtype=np.int32)
    steps = [
        BoundFill("y", 1),
        launch("k", 1, 8, "x", "y"),
        launch("k", 1, 8, "y", "x"),
        BoundCopy("z", "x"),
        BoundFill("x", 0),
    ]
    answer, out = run(built, steps, {"x": x, "y": 32, "z": 32})
    assert answer.status == "ok", answer
    once = x * 2 + np.roll(x, -1)
    np.testing.assert_array_equal(out["z"].view(np.int32), once * 2 + np.roll(once, -1))
    assert not out["x"].any() and answer.written is not None and answer.written["z"].all()


def test_static_and_dynamic_shared_memory_in_two_and_three_dimensions() -> None:
    built = build("""extern "C" __global__ void k(const double* x, double* y) {
        __shared__ char pad[3]; __shared__ double s[4][8]; extern __shared__ double d[];
        int a = threadIdx.x, b = threadIdx.y, c = threadIdx.z, n = blockDim.x * blockDim.y;
        int i = a + blockDim.x * (b + blockDim.y * c),
            g = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        if (i < 3) pad[i] = i; if (c == 0) s[b][a] = x[g * 2 * n + i]; d[i] = x[g * 2 * n + i]; __syncthreads();
        y[g * 2 * n + i] = s[3 - b][a] + d[2 * n - 1 - i] + pad[2]; }""")
    x = RNG.standard_normal((12, 2, 4, 8))
    answer, out = run(
        built,
        launch("k", (3, 2, 2), (8, 4, 2), "x", "y", shared=8 * 64),
        {"x": x, "y": np.zeros_like(x)},
        checks=frozenset({"races", "initialised", "barriers"}),
    )
    assert answer.status == "ok", answer.faults
    flat = x.reshape(12, 64)
    wanted = x[:, :1, ::-1, :] + flat[:, ::-1].reshape(12, 2, 4, 8) + 2
    np.testing.assert_array_equal(out["y"], wanted)


def test_halves_in_hardware_types() -> None:
    built = build("""extern "C" __global__ void k(const unsigned short* x, unsigned short* y) {
        unsigned short v = x[threadIdx.x], r;
        asm("add.f16 %0, %1, %1;" : "=h"(r) : "h"(v));
        y[threadIdx.x] = r; }""")
    x = RNG.standard_normal(32).astype(np.float16)
    answer, out = run(built, launch("k", 1, 32, "x", "y"), {"x": x, "y": np.zeros(32, np.float16)})
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(out["y"], x + x)


def test_launches_after_one_of_sampled_blocks_are_not_blamed_for_what_is_missing() -> None:
    built = build("""extern "C" __global__ void k(const int* x, int* y) {
        int i = blockIdx.x * 32 + threadIdx.x; y[i] = x[127 - i]; }""")
    steps = [launch("k", 4, 32, "x", "y"), launch("k", 4, 32, "y", "z")]
    buffers = {"x": np.arange(128, dtype=np.int32), "y": 512, "z": 512}
    answer, _ = run(built, steps, buffers, checks=frozenset({"initialised"}), blocks=lambda total: (0,))
    assert answer.status == "ok" and not answer.complete
    answer, _ = run(built, steps[1:], buffers, checks=frozenset({"initialised"}), blocks=lambda total: (0,))
    assert answer.status == "fault"


_ASYNC = """extern "C" __global__ void k(const float4* x, float* y, int n) { __shared__ float4 s[64]; int t =
threadIdx.x;
    unsigned a = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(x + blockIdx.x * 64 + t));
    asm volatile("cp.async.commit_group;");
    if (t < n) { asm volatile("cp.async.ca.shared.global [%0], [%1], 8, 4;" :: "r"(a + 8), "l"(x + t)); }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group WAIT;"); __syncthreads();
    float4 v = s[63 - t]; int i = (blockIdx.x * 64 + t) * 4;
    y[i] = v.x; y[i + 1] = v.y; y[i + 2] = v.z; y[i + 3] = v.w; }"""


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_asynchronous_copies_arrive_when_waited_for(options: tuple[str, ...]) -> None:
    x = RNG.standard_normal((2, 64, 4)).astype(np.float32)
    step = launch("k", 2, 64, "x", "y", 10)
    checks = frozenset({"races", "initialised"})

    def waiting(left: int, checks: frozenset[str] = frozenset()) -> tuple[Answer, np.ndarray]:
        built = build(_ASYNC.replace("WAIT", str(left)), *options)
        answer, out = run(built, step, {"x": x, "y": np.zeros_like(x)}, checks=checks)
        return answer, out["y"]

    answer, y = waiting(0, checks)
    assert answer.status == "ok", answer.faults
    wanted = x.copy()
    wanted[:, :10, 2], wanted[:, :10, 3] = x[0, :10, 0], 0  # 4 of 8 bytes are copied, the others become zero
    np.testing.assert_array_equal(y, wanted[:, ::-1])
    np.testing.assert_array_equal(waiting(1)[1], x[:, ::-1])  # the second group is not waited for
    assert waiting(2, checks)[0].faults[0].kind == "uninitialised read"
