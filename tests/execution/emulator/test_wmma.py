"""``wmma`` as CUDA programs use it (``mma.h``): every shape, type and layout, against NumPy, with every check on."""

import numpy as np
import pytest

from tests.execution.emulator.building import launch, run, with_headers

CHECKS = frozenset({"races", "initialised", "barriers"})
K16 = ((16, 16, 16), (32, 8, 16), (8, 32, 16))


def kernel(shape: tuple[int, int, int], kind: str, held: str, sums: str, memory: str, layouts: tuple[str, str]) -> str:
    """One product a warp; the result goes out by columns, and by rows through shared memory."""
    tile = ", ".join(map(str, shape))
    m, n, k = shape
    row_a, row_b = (layout == "row" for layout in layouts)
    return f"""#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;
extern "C" __global__ void k(const {memory}* a, const {memory}* b, const {sums}* c, {sums}* d, {sums}* e) {{
    __shared__ alignas(32) {sums} s[{m * n}];
    wmma::fragment<wmma::matrix_a, {tile}, {kind}, wmma::{layouts[0]}_major> fa;
    wmma::fragment<wmma::matrix_b, {tile}, {kind}, wmma::{layouts[1]}_major> fb;
    wmma::fragment<wmma::accumulator, {tile}, {sums}> fc;
    wmma::load_matrix_sync(fa, ({held}*)a, {k if row_a else m});
    wmma::load_matrix_sync(fb, ({held}*)b, {n if row_b else k});
    wmma::load_matrix_sync(fc, c, {n}, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, {m}, wmma::mem_col_major);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] * ({sums})2;
    wmma::store_matrix_sync(s, fc, {n}, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < {m * n}; i += 32) e[i] = s[i];
}}"""


CASES = [
    *[(shape, "half", "half", "float", "half") for shape in K16],
    *[(shape, "half", "half", "half", "half") for shape in K16],
    *[(shape, "__nv_bfloat16", "__nv_bfloat16", "float", "unsigned short") for shape in K16],
    *[(shape, kind, kind, "int", kind) for shape in K16 for kind in ("signed char", "unsigned char")],
    ((16, 16, 8), "wmma::precision::tf32", "float", "float", "float"),
    ((8, 8, 4), "double", "double", "double", "double"),
]  # fmt: skip


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """What lies in memory, and its numbers."""
    if "char" in kind:
        stored = rng.integers(0, 256, shape).astype(np.uint8).view(np.int8 if "un" not in kind else np.uint8)
        return stored, stored.astype(np.float64)
    if kind == "int":
        stored = rng.integers(-999, 999, shape).astype(np.int32)
        return stored, stored.astype(np.float64)
    drawn = rng.standard_normal(shape)
    if "bfloat" in kind or "tf32" in kind:
        bits = drawn.astype(np.float32).view(np.uint32) >> np.uint32(16) << np.uint32(16)
        number = bits.view(np.float32)
        return (number if "tf32" in kind else (bits >> np.uint32(16)).astype(np.uint16)), number.astype(np.float64)
    stored = drawn.astype({"half": np.float16, "float": np.float32, "double": np.float64}[kind])
    return stored, stored.astype(np.float64)


@pytest.mark.parametrize(("shape", "kind", "held", "sums", "memory"), CASES)
def test_a_product_through_fragments(shape: tuple[int, int, int], kind: str, held: str, sums: str, memory: str) -> None:
    (m, n, k), rng = shape, np.random.default_rng(11)
    mixed = ("col", "row") if (m, n) == (16, 16) else ("row", "col")
    built = with_headers(kernel(shape, kind, held, sums, memory, mixed))
    a, left = values(rng, kind, (m, k))
    b, right = values(rng, kind, (k, n))
    c, plus = values(rng, sums, (m, n))
    dtype = c.dtype
    buffers = {
        "a": a if mixed[0] == "row" else a.T.copy(),
        "b": b if mixed[1] == "row" else b.T.copy(),
        "c": c,
        "d": np.zeros((n, m), dtype),
        "e": np.zeros((m, n), dtype),
    }
    answer, out = run(built, launch("k", 1, 32, *"abcde"), buffers, checks=CHECKS, count=True)
    assert answer.status == "ok", answer
    wanted, scale = left @ right + plus, np.abs(left) @ np.abs(right) + np.abs(plus)
    step = {"int": 0.0, "half": 2.0**-11, "float": 2.0**-24, "double": (k + 1) * 2.0**-53}[sums]
    assert (np.abs(out["d"].T.astype(np.float64) - wanted) <= step * scale).all()
    assert (out["e"] == out["d"].T * dtype.type(2)).all()
    assert answer.counters[0].mix["tensor"] == 1


TILED = """#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
extern "C" __global__ void k(const half* a, const half* b, float* c, int n) {
    __shared__ half sa[32][24], sb[16][40];
    int warp = threadIdx.x / 32, row = blockIdx.y * 32, col = blockIdx.x * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum; wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        for (int i = threadIdx.x; i < 512; i += blockDim.x) {
            sa[i / 16][i % 16] = a[(row + i / 16) * n + k + i % 16];
            sb[i / 32][i % 32] = b[(k + i / 32) * n + col + i % 32]; }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, &sa[warp / 2 * 16][0], 24);
        wmma::load_matrix_sync(fb, &sb[0][warp % 2 * 16], 40);
        wmma::mma_sync(sum, fa, fb, sum);
        SYNC
    }
    wmma::store_matrix_sync(c + (row + warp / 2 * 16) * n + col + warp % 2 * 16, sum, n, wmma::mem_row_major);
}"""


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
def test_a_tiled_product_and_the_race_without_its_second_barrier(optimised: bool) -> None:
    n, rng = 64, np.random.default_rng(2)
    a, b = (rng.standard_normal((n, n)).astype(np.float16) for _ in range(2))
    step, buffers = launch("k", (2, 2, 1), 128, *"abc", n), {"a": a, "b": b, "c": np.zeros((n, n), np.float32)}
    sound = with_headers(TILED.replace("SYNC", "__syncthreads();"), optimised)
    answer, out = run(sound, step, buffers, checks=CHECKS)
    assert answer.status == "ok", answer
    left, right = a.astype(np.float64), b.astype(np.float64)
    assert (np.abs(out["c"] - left @ right) <= 8 * 2.0**-24 * (np.abs(left) @ np.abs(right))).all()
    answer, _ = run(with_headers(TILED.replace("SYNC", ""), optimised), step, buffers, checks=CHECKS)
    assert answer.status == "fault" and {fault.kind for fault in answer.faults} == {"shared-memory race"}


def test_beyond_the_matrix_beside_its_start_and_never_written() -> None:
    source = TILED.replace("SYNC", "__syncthreads();")
    a, b, rng = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16), launch("k", (2, 2, 1), 128, *"abc", 64)
    answer, _ = run(with_headers(source), rng, {"a": a, "b": b, "c": np.zeros((63, 64), np.float32)})
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds write" and fault.where.line == 20 and "'c'" in fault.message
    shifted = with_headers(source.replace("&sa[warp / 2 * 16][0]", "&sa[warp / 2 * 16][4]"))
    answer, _ = run(shifted, rng, {"a": a, "b": b, "c": np.zeros((64, 64), np.float32)}, checks=CHECKS)
    assert [fault.kind for fault in answer.faults] == ["misaligned access", "uninitialised read"]
    assert {fault.where.line for fault in answer.faults} == {15}
