"""Asynchronous copies, tiles and products of tiles in compiled code: the bits of the NumPy back end."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from agent.execution.emulator.compiled.layout import MOST_COPIES
from agent.execution.emulator.semantics.formats import FORMATS, load64
from agent.execution.emulator.semantics.matrices import product
from tests.execution.emulator.building import launch
from tests.execution.emulator.test_compiled import both

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(21)

COPIES = """
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void k(const char* x, unsigned* y, int tiles) {
    __shared__ alignas(16) char s[3][64 * 16];
    unsigned sum = 0;
    for (int t = 0; t < tiles + 2; t++) {
        if (t < tiles) {
            unsigned to = at(s[t % 3] + threadIdx.x * 16); const char* from = x + (t * 64 + threadIdx.x) * 16;
            int size = (t + threadIdx.x) % 5 == 0 ? 0 : 16;
            if (t % 3 == 0) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                                         :: "r"(to), "l"(from), "r"(size) : "memory");
            else if (t % 3 == 1) {
                asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(to), "l"(from) : "memory");
                asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(to + 8), "l"(from + 8) : "memory");
            } else for (int i = 0; i < 4; i++)
                asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                             :: "r"(to + 4 * i), "l"(from + 4 * i) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (t < 2) continue;
        asm volatile("cp.async.wait_group WAIT;" ::: "memory");
        __syncthreads();
        sum = sum * 31 + ((unsigned*)s[(t - 2) % 3])[(threadIdx.x * 7 + blockIdx.x) % 256];
        __syncthreads();
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}"""


def test_copies_in_groups_end_when_they_are_waited_for() -> None:
    x = RNG.integers(0, 256, 7 * 64 * 16).astype(np.uint8)
    step, buffers = launch("k", 3, 64, "x", "y", 7), {"x": x, "y": np.zeros((3, 64), np.uint32)}
    answer = both(COPIES.replace("WAIT", "2"), step, buffers)
    assert answer.status == "ok" and answer.compiled == ("k",)
    tiles = x.reshape(7, 64, 16).copy()
    for t in range(0, 7, 3):
        tiles[t, (t + np.arange(64)) % 5 == 0] = 0
    words, wanted = tiles.reshape(7, -1).view(np.uint32), np.zeros((3, 64), np.uint32)
    for tile in words:
        wanted = wanted * np.uint32(31) + tile[(np.arange(64) * 7 + np.arange(3)[:, None]) % 256]
    assert_array_equal(answer.outputs["y"].view(np.uint32).reshape(3, 64), wanted)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda source: source.replace("WAIT", "3"), "uninitialised read"),
        (lambda source: source.replace("WAIT", "2").replace("x + (t *", "x + 4 + (t *"), "misaligned access"),
        (lambda source: source.replace("WAIT", "2").replace("t < tiles)", "t <= tiles)"), "out-of-bounds read"),
        (
            lambda source: source.replace("WAIT", "2").replace(
                "at(s[t % 3] + threadIdx.x *", "at(s[t % 3] + threadIdx.x / 2 *"
            ),
            "shared-memory race",
        ),
    ],
    ids=["waits too little", "misaligned", "past the end", "into the tile of another thread"],
)
def test_faults_of_copies_are_those_of_the_other_back_end(change: Callable[[str], str], kind: str) -> None:
    x = RNG.integers(0, 256, 7 * 64 * 16).astype(np.uint8)
    step, buffers = launch("k", 3, 64, "x", "y", 7), {"x": x, "y": np.zeros((3, 64), np.uint32)}
    answer = both(change(COPIES), step, buffers)
    assert kind in {fault.kind for fault in answer.faults} and not answer.compiled


def test_more_copies_than_there_is_room_for_are_left_to_the_other_back_end() -> None:
    source = """extern "C" __global__ void k(const int* x, int* y, int n) {
        __shared__ int s[100 * 32]; unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
        for (int i = 0; i < n; i++) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
            :: "r"(to + 128 * i), "l"(x + 32 * i + threadIdx.x) : "memory");
        asm volatile("cp.async.wait_all;" ::: "memory");
        int sum = 0; for (int i = 0; i < n; i++) sum += s[32 * i + threadIdx.x]; y[threadIdx.x] = sum; }"""
    x = RNG.integers(0, 99, (100, 32)).astype(np.int32)
    for n in (MOST_COPIES, MOST_COPIES + 1):
        answer = both(source, launch("k", 1, 32, "x", "y", n), {"x": x, "y": np.zeros(32, np.int32)})
        assert answer.status == "ok" and bool(answer.compiled) == (n == MOST_COPIES)
        assert_array_equal(answer.outputs["y"].view(np.int32), x[:n].sum(axis=0))


TILES = """
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void k(const unsigned* x, unsigned* y) {
    __shared__ alignas(16) unsigned s[32 * 4];
    for (int i = threadIdx.x; i < 128; i += blockDim.x) s[i] = x[blockIdx.x * 128 + i];
    __syncthreads();
    unsigned v[8] = {}, row = at(s + (threadIdx.x % 32 * 5 + blockIdx.x) % 32 * 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(v[4]), "=r"(v[5]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%0}, [%1];" : "=r"(v[6]) : "l"(s + threadIdx.x % 8 * 4));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v[7]) : "r"(row));
    for (int i = 0; i < 8; i++) y[(blockIdx.x * blockDim.x + threadIdx.x) * 8 + i] = v[i];
}"""


def test_tiles_come_from_the_rows_that_lanes_point_to() -> None:
    x = RNG.integers(0, 1 << 32, (3, 128), dtype=np.uint32)
    answer = both(TILES, launch("k", 3, 64, "x", "y"), {"x": x, "y": np.zeros((3, 64, 8), np.uint32)})
    assert answer.status == "ok" and answer.compiled == ("k",)
    found, lane = answer.outputs["y"].view(np.uint32).reshape(3, 64, 8)[:, :32], np.arange(32)
    for block in range(3):
        rows = x[block].reshape(32, 4)[(lane * 5 + block) % 32]
        halves = rows.view(np.uint16).reshape(4, 8, 8)
        for tile in range(4):
            assert_array_equal(found[block, :, tile], rows[8 * tile + lane // 4, lane % 4])
        for tile in range(2):
            turned = np.ascontiguousarray(halves[tile].T).view(np.uint32)
            assert_array_equal(found[block, :, 4 + tile], turned[lane // 4, lane % 4])


def test_a_row_that_its_lane_writes_at_once_was_read_before() -> None:
    """Lanes go on one after the other, the first with a store to what the others read."""
    source = """extern "C" __global__ void k(unsigned* y) {
        __shared__ alignas(16) unsigned s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads();
        unsigned v, row = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 8 * 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(row) : "memory");
        if (threadIdx.x < 8) s[threadIdx.x * 4] = 99;
        y[threadIdx.x] = v; }"""
    answer = both(source, launch("k", 1, 32, "y"), {"y": np.zeros(32, np.uint32)})
    assert answer.status == "ok" and answer.compiled == ("k",)
    assert_array_equal(answer.outputs["y"].view(np.uint32), np.arange(32))


def test_lanes_that_are_missing_are_reported_as_ever() -> None:
    answer = both(TILES, launch("k", 1, 48, "x", "y"), {"x": np.zeros(128, np.uint32), "y": 48 * 32})
    assert "incomplete warp" in {fault.kind for fault in answer.faults} and not answer.compiled


PRODUCT = """extern "C" __global__ void k(const unsigned* a, const unsigned* b, const float* c, float* d, int n) {
    int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float v[4]; for (int i = 0; i < 4; i++) v[i] = c[(w * 32 + lane) * 4 + i];
    for (int t = 0; t < n; t++) {
        const unsigned* l = a + ((w * n + t) * 32 + lane) * NA; const unsigned* r = b + ((w * n + t) * 32 + lane) * NB;
        asm volatile("mma.sync.aligned.SHAPE.row.col.f32.KIND.KIND.f32 {%0,%1,%2,%3}, {LEFT}, {RIGHT}, {%0,%1,%2,%3};"
            : "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3]) : INPUTS);
    }
    for (int i = 0; i < 4; i++) d[(w * 32 + lane) * 4 + i] = v[i];
}"""


def product_of(kind: str, shape: str, left: int, right: int) -> str:
    names = [f"%{4 + i}" for i in range(left + right)]
    inputs = [f'"r"(l[{i}])' for i in range(left)] + [f'"r"(r[{i}])' for i in range(right)]
    words = {"SHAPE": shape, "KIND": kind, "LEFT": ",".join(names[:left]), "RIGHT": ",".join(names[left:]),
             "INPUTS": ", ".join(inputs), "NA": str(left), "NB": str(right)}  # fmt: skip
    source = PRODUCT
    for word, value in words.items():
        source = source.replace(word, value)
    return source


@pytest.mark.parametrize(
    ("kind", "shape", "left", "right"),
    [("f16", "m16n8k16", 4, 2), ("f16", "m16n8k8", 2, 1), ("bf16", "m16n8k16", 4, 2), ("bf16", "m16n8k8", 2, 1),
     ("tf32", "m16n8k8", 4, 2), ("tf32", "m16n8k4", 2, 1)],
)  # fmt: skip
def test_products_of_tiles(kind: str, shape: str, left: int, right: int) -> None:
    """Of numbers, and of any bits, infinities, NaN and denormals among them."""
    n, warps = 3, 6

    def bits(count: int) -> np.ndarray:
        return RNG.integers(0, 1 << 32, (warps, n, 32, count), dtype=np.uint32)

    def numbers(count: int) -> np.ndarray:
        spread = np.exp2(RNG.integers(-8, 9, (warps, n, 32, count, 2)))
        values = RNG.standard_normal((warps, n, 32, count, 2)) * spread
        if kind == "tf32":
            return values[..., 0].astype(np.float32).view(np.uint32)
        return np.ascontiguousarray(FORMATS[kind].store(values).astype(np.uint16)).view(np.uint32)[..., 0]

    c = RNG.standard_normal((warps, 32, 4)).astype(np.float32)
    for registers in (bits, numbers):
        buffers = {"a": registers(left), "b": registers(right), "c": c, "d": np.zeros_like(c)}
        step = launch("k", 3, 64, "a", "b", "c", "d", n)
        answer = both(product_of(kind, shape, left, right), step, buffers)
        assert answer.status == "ok" and answer.compiled == ("k",)


@pytest.mark.parametrize("spread", [0, 9, 24])
def test_sums_are_those_of_one_addition_after_the_other(spread: int) -> None:
    """Products of matrices add in an order of their own; that must not show, nor differ between machines."""
    shape = (40, 16, 16)
    a, b = (
        load64(FORMATS["bf16"].store(RNG.standard_normal(shape) * np.exp2(RNG.integers(-spread, spread + 1, shape))),
               "bf16")
        for _ in range(2)
    )  # fmt: skip
    b = b[:, :, :8]
    c = -(a @ b) if spread else np.zeros((40, 16, 8))
    c = c.astype(np.float32).astype(np.float64)
    total = np.zeros((40, 16, 8))
    for k in range(16):
        total = total + a[:, :, k, None] * b[:, None, k, :]
    found = product(("bf16", "f32", "f32"), a, b, c, ())
    assert_array_equal(found, (total + c).astype(np.float32).view(np.uint32))


MATMUL = """
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void k(const unsigned short* a, const unsigned short* b, float* c, int n) {
    __shared__ alignas(16) unsigned short s[2][32 * 16], r[2][16 * 32];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    float d[2][4] = {};
    auto fetch = [&](int t) {
        int i = threadIdx.x / 2, j = threadIdx.x % 2 * 8, k = threadIdx.x / 4, l = threadIdx.x % 4 * 8;
        if (threadIdx.x < 64) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(&s[t & 1][i * 16 + j])),
            "l"(a + (i0 + i) * n + t * 16 + j) : "memory");
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(&r[t & 1][k * 32 + l])),
            "l"(b + (t * 16 + k) * n + j0 + l) : "memory"); }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    fetch(0);
    for (int t = 0; t < n / 16; t++) {
        if (t + 1 < n / 16) { fetch(t + 1); asm volatile("cp.async.wait_group 1;" ::: "memory"); }
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        unsigned f[4], g[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
            : "r"(at(&s[t & 1][(w / 2 * 16 + lane % 16) * 16 + lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(g[0]), "=r"(g[1]), "=r"(g[2]), "=r"(g[3])
            : "r"(at(&r[t & 1][lane % 16 * 32 + w % 2 * 16 + lane / 16 * 8])));
        for (int h = 0; h < 2; h++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9},"
                " {%0,%1,%2,%3};" : "+f"(d[h][0]), "+f"(d[h][1]), "+f"(d[h][2]), "+f"(d[h][3])
                : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[2 * h]), "r"(g[2 * h + 1]));
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) for (int e = 0; e < 4; e++)
        c[(i0 + w / 2 * 16 + lane / 4 + e / 2 * 8) * n + j0 + w % 2 * 16 + h * 8 + lane % 4 * 2 + e % 2] = d[h][e];
}"""


def test_a_matrix_product_on_tensor_cores() -> None:
    n = 64
    a, b = (RNG.standard_normal((n, n)).astype(np.float16) for _ in range(2))
    buffers = {"a": a.view(np.uint16), "b": b.view(np.uint16), "c": np.zeros((n, n), np.float32)}
    answer = both(MATMUL, launch("k", (2, 2, 1), 128, "a", "b", "c", n), buffers)
    assert answer.status == "ok" and answer.compiled == ("k",)
    found = answer.outputs["c"].view(np.float32).reshape(n, n)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)
