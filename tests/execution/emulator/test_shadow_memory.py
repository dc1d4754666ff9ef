"""The float64 shadow through memory, between lanes and in matrices, against independent computations."""

from fractions import Fraction

import numpy as np
import pytest

from tests.execution.emulator.building import build, launch, run
from tests.execution.emulator.shadowing import HALVES, Shadowed, shadowed, within

X = np.random.default_rng(6).normal(size=4096).astype(np.float32)
W = X.astype(np.float64)
H = X.astype(np.float16)
HW = H.astype(np.float64)
Y = np.zeros(32, np.float32)
TENTH = float(np.float32(0.1))


def _of_floats(body: str, grid: int = 1, block: int = 32, size: int = 32, more: str = "", *values: int) -> Shadowed:
    source = f'extern "C" __global__ void k(const float* x, float* y{more}) {{ int t = threadIdx.x; {body} }}'
    return shadowed(source, ("x", "y", *values), {"x": X, "y": np.zeros(size, np.float32)}, grid, block)


def _exact(rows: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Sums down the columns."""
    return np.array([float(sum(Fraction(float(v)) for v in row) * Fraction(factor)) for row in rows.T])


def test_a_tree_in_shared_memory() -> None:
    found = _of_floats(
        "__shared__ float s[128]; s[t] = x[blockIdx.x * 128 + t]; __syncthreads(); for (int o = 64; o; o /= 2) {"
        " if (t < o) s[t] += s[t + o]; __syncthreads(); } if (!t) y[blockIdx.x] = s[0];", 4, 128, 4,
    )  # fmt: skip
    within(found, _exact(X[:512].reshape(4, 128).T))


def test_shuffles_move_the_shadow() -> None:
    found = _of_floats(
        "float v = x[t] * x[t + 1]; for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o); y[t] = v;"
    )
    within(found, np.full(32, (W[:32] * W[1:33]).sum()))


def test_arrays_in_local_memory() -> None:
    found = _of_floats(
        "float a[8]; for (int i = 0; i < 8; i++) a[i] = x[t + i] * 0.1f; float s = 0;"
        " for (int j = 0; j < n; j++) s += a[(j * j + n) & 7]; y[t] = s;", 1, 32, 32, ", int n", 9,
    )  # fmt: skip
    places = [(j * j + 9) & 7 for j in range(9)]
    within(found, np.array([sum(W[t + place] * TENTH for place in places) for t in range(32)]))


def test_vector_loads_and_stores() -> None:
    found = _of_floats(
        "float4 a = ((const float4*)x)[t], b = ((const float4*)x)[t + 32];"
        " ((float4*)y)[t] = make_float4(a.x * b.x, a.y + b.y, a.z - b.z, a.w / b.w);", 1, 32, 128,
    )  # fmt: skip
    a, b = W[:128].reshape(32, 4), W[128:256].reshape(32, 4)
    parts = [a[:, 0] * b[:, 0], a[:, 1] + b[:, 1], a[:, 2] - b[:, 2], a[:, 3] / b[:, 3]]
    within(found, np.stack(parts, axis=1).reshape(-1))


@pytest.mark.parametrize("space", ["global", "shared"])
def test_sums_by_atomics(space: str) -> None:
    body = {
        "global": "atomicAdd(y + t % 4, x[blockIdx.x * 128 + t] * 0.1f);",
        "shared": "__shared__ float s[4]; if (t < 4) s[t] = 0; __syncthreads(); atomicAdd(s + t % 4, x[t] * 0.1f);"
        " __syncthreads(); if (t < 4) y[t] = s[t];",
    }[space]
    blocks = 8 if space == "global" else 1
    found = _of_floats(body, blocks, 128, 4)
    within(found, _exact(X[: 128 * blocks].reshape(-1, 4), TENTH), 1e-12)
    assert any(line.largest > 0.5 for line in found.lines.values())


@pytest.mark.parametrize(
    "update",
    [
        "int* a = (int*)y; int old = *a, was; do { was = old; old = atomicCAS(a, was, "
        "__float_as_int(fmaxf(v, __int_as_float(was)))); } while (was != old);",
        "if (v > 0) atomicMax((int*)y, __float_as_int(v));",
    ],
)
def test_a_maximum_by_the_bits_of_floats(update: str) -> None:
    found = _of_floats(f"int i = blockIdx.x * 64 + t; float v = x[i] * x[i + 1]; {update}", 2, 64, 1)
    within(found, np.array([(W[:128] * W[1:129]).max()]))


def test_an_exchange_moves_the_shadow_both_ways() -> None:
    found = _of_floats(
        "__shared__ float s[32]; s[t] = x[t] * 0.1f; __syncwarp(); float was = atomicExch(s + t, x[t + 32] * 0.1f);"
        " y[t] = was; y[t + 32] = s[t];", 1, 32, 64,
    )  # fmt: skip
    within(found, W[:64] * TENTH)


def test_atomics_on_packed_halves() -> None:
    source = (
        HALVES + 'extern "C" __global__ void k(const __half2* x, __half2* y) { atomicAdd(y + threadIdx.x % 2, '
        "x[threadIdx.x]); }"
    )
    found = shadowed(source, ("x", "y"), {"x": H, "y": np.zeros(4, np.float16)}, kind="f16")
    within(found, _exact(H[:64].reshape(16, 4)))


def test_a_copy_to_shared_memory_brings_the_shadow_when_it_has_arrived() -> None:
    source = """extern "C" __global__ void k(float* x, float* y) {
    __shared__ alignas(16) float s[32]; int t = threadIdx.x;
    x[t] = x[t] * 0.1f; s[t] = 1.0f; __syncthreads(); unsigned p = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(p), "l"(x + t) : "memory");
    y[t] = s[t]; asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads(); y[t + 32] = s[31 - t]; }"""
    found = shadowed(source, ("x", "y"), {"x": X, "y": np.zeros(64, np.float32)})
    within(found, np.concatenate((np.ones(32), W[31::-1] * TENTH)))


def test_launches_and_copies_of_the_host_keep_it() -> None:
    from agent.workload.binding import BoundCopy, BoundFill

    source = 'extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x] * 0.1f; }'
    steps = [
        launch("k", 1, 32, "x", "y"), launch("k", 1, 32, "x", "y"), BoundCopy("z", "y"), BoundFill("y", 0),
        launch("k", 1, 32, "x", "y"),
    ]  # fmt: skip
    answer, out = run(build(source), steps, {"x": X[:32], "y": Y, "z": Y.copy()}, shadow=True)
    assert answer.shadows is not None
    for name, times in (("z", 2), ("y", 1)):
        value, flags = answer.shadows.outputs[name].numbers("f32", out[name].astype(np.float64))
        np.testing.assert_allclose(value, W[:32] * TENTH * times, rtol=1e-14)
        assert not flags.any()


# Matrices -----------------------------------------------------------------------------------------------------------


def test_wmma_from_shared_memory() -> None:
    body = """using namespace nvcuda; __shared__ __half s[256]; for (int i = threadIdx.x; i < 256; i += 32)
    s[i] = __hmul(x[i], __float2half(0.3f)); __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::fill_fragment(c, 0.1f);
    wmma::load_matrix_sync(a, s, 16); wmma::load_matrix_sync(b, s, 16);
    for (int i = 0; i < 2; i++) wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);"""
    source = HALVES + f'extern "C" __global__ void k(const __half* x, float* y) {{ {body} }}'
    found = shadowed(source, ("x", "y"), {"x": H[:256], "y": np.zeros(256, np.float32)})
    a = HW[:256].reshape(16, 16) * float(np.float32(0.3))  # without rounding that stays the float that it was
    within(found, (2 * a @ a.T + TENTH).reshape(-1))
    assert np.abs(found.own - found.value).max() > 1e-4  # the products by 0.3 were rounded to halves


def test_tf32_shows_what_it_cuts_off() -> None:
    ways = " ".join(
        f'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"({name}[{i}]) : "f"(x[t * {size} + {i}]));'
        for name, size in (("a", 4), ("b", 2))
        for i in range(size)
    )
    body = (
        f"unsigned a[4], b[2]; float c[4] = {{0, 0, 0, 0}}; {ways}"
        'asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"'
        ' : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),'
        ' "r"(b[1])); for (int i = 0; i < 4; i++) y[t * 4 + i] = c[i];'
    )
    found = _of_floats(body, 1, 32, 128)
    # PTX ISA, figures of mma.m16n8k8 for tf32: lane l has rows l / 4 and 8 further on, places l % 4 and 4 further on
    a, b = np.zeros((16, 8)), np.zeros((8, 8))
    for lane in range(32):
        group, place = divmod(lane, 4)
        for i in range(4):
            a[group + 8 * (i % 2), place + 4 * (i // 2)] = W[lane * 4 + i]
        for i in range(2):
            b[place + 4 * i, group] = W[lane * 2 + i]
    product = a @ b
    rows = [[product[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] for i in range(4)] for lane in range(32)]
    within(found, np.array(rows).reshape(-1))
    assert 1e-5 < np.abs(found.own - found.value).max() / np.abs(found.value).max() < 1e-2


def test_tiles_of_halves_go_to_the_lanes_that_get_them() -> None:
    body = """__shared__ alignas(16) __half s[256]; int t = threadIdx.x; unsigned r[4];
    for (int i = t; i < 256; i += 32) s[i] = __hadd(x[i], x[i + 1]); __syncwarp();
    unsigned p = (unsigned)__cvta_generic_to_shared(s + t * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory"); __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
    :: "r"(p), "r"(r[3]), "r"(r[2]), "r"(r[1]), "r"(r[0]) : "memory"); __syncwarp();
    for (int i = t; i < 256; i += 32) y[i] = s[i]; unsigned m;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(m) : "r"(r[0])); ((unsigned*)y)[128 + t] = m;"""
    source = HALVES + f'extern "C" __global__ void k(const __half* x, __half* y) {{ {body} }}'
    found = shadowed(source, ("x", "y"), {"x": H, "y": np.zeros(320, np.float16)}, kind="f16")
    tiles = (HW[:256] + HW[1:257]).reshape(4, 8, 8)
    within(found, np.concatenate((tiles.transpose(0, 2, 1)[::-1].reshape(-1), tiles[0].reshape(-1))))
