"""Surfaces: loads and stores by bytes, boundary modes, and what is told of accesses that leave them."""

import numpy as np
import pytest

from agent.workload.binding import BoundLaunch, TextureArgument
from agent.workload.textures import View
from tests.execution.emulator.building import build, launch, run

SURFACES = """
extern "C" __global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w && y < h) surf2Dwrite(surf2Dread<float>(from, x * 4, y), to, y * 4, x);
}
extern "C" __global__ void bytes(cudaSurfaceObject_t s, unsigned char* out) {
    uchar4 v = surf3Dread<uchar4>(s, threadIdx.x * 4, 1, 2);
    surf3Dwrite(make_uchar4(v.w, v.z, v.y, v.x), s, threadIdx.x * 4, 1, 2);
    out[threadIdx.x] = surf3Dread<unsigned char>(s, threadIdx.x, 0, 1);
}
extern "C" __global__ void layer(cudaSurfaceObject_t s) { surf2DLayeredwrite(5.0f, s, threadIdx.x * 4, 1, 2); }
#define EDGE(NAME, MODE) extern "C" __global__ void NAME(cudaSurfaceObject_t s, float* out) { \\
    int x = (int)threadIdx.x - 2; \\
    out[threadIdx.x] = surf1Dread<float>(s, x * 4, MODE); \\
    surf1Dwrite(9.0f + threadIdx.x, s, (x + 4) * 4, MODE); \\
}
EDGE(trap, cudaBoundaryModeTrap)
EDGE(nearest, cudaBoundaryModeClamp)
EDGE(zero, cudaBoundaryModeZero)
extern "C" __global__ void crooked(cudaSurfaceObject_t s) { surf1Dwrite(1.0f, s, threadIdx.x * 4 + 2); }
extern "C" __global__ void formatted(cudaSurfaceObject_t s) {
    asm volatile("sust.p.1d.b32.zero [%0, {%1}], {%2};" :: "l"(s), "r"(threadIdx.x), "f"(2.0f + threadIdx.x));
}
extern "C" __global__ void size(cudaSurfaceObject_t s, int* out) {
    asm("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(s));
    asm("suq.array_size.b32 %0, [%1];" : "=r"(out[1]) : "l"(s));
}
extern "C" __global__ void both(cudaSurfaceObject_t s, cudaTextureObject_t t, float* out) {
    surf1Dwrite((float)threadIdx.x, s, threadIdx.x * 4);
    out[threadIdx.x] = tex1D<float>(t, 63 - threadIdx.x);
}
extern "C" __global__ void twice(cudaSurfaceObject_t s, cudaSurfaceObject_t r) {
    int i = threadIdx.x;
    float v = surf1Dread<float>(s, i * 4);
    surf1Dwrite(v * 0.1f, r, i * 4);
    surf1Dwrite(surf1Dread<float>(r, i * 4) * v, r, i * 4 + (i == 5 ? 4096 : 0), cudaBoundaryModeZero);
}
extern "C" __global__ void reduce(cudaSurfaceObject_t s) {
    asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" :: "l"(s), "r"(0), "r"(1));
}
"""


def surface(name: str, buffer: str, extents: tuple[int, ...], dtype: str = "f32", size: int = 4, **more: bool) -> View:
    return View(name, buffer, dtype, extents, extents[0] * size, True, **more)


def step(kernel: str, blocks: int, threads: int, *arguments: object) -> BoundLaunch:
    made = launch(kernel, blocks, threads, *(one for one in arguments if not isinstance(one, View)))
    rest = iter(made.arguments)
    told = tuple(TextureArgument(one) if isinstance(one, View) else next(rest) for one in arguments)
    return BoundLaunch(made.kernel, made.grid, made.block, 0, told)


def test_a_matrix_is_turned_from_one_surface_to_another() -> None:
    data = np.arange(7 * 5, dtype=np.float32).reshape(5, 7)
    given, taken = surface("a", "x", (7, 5)), surface("b", "y", (5, 7))
    answer, outputs = run(build(SURFACES), step("turn", 5, 32, given, taken, 7, 5),
                          {"x": data, "y": np.zeros((7, 5), np.float32)}, checks=frozenset({"races"}))  # fmt: skip
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(outputs["y"], data.T)
    assert answer.written is not None and answer.written["y"].all() and not answer.written["x"].any()


def test_bytes_vectors_and_depth() -> None:
    data = np.arange(3 * 2 * 8 * 4, dtype=np.uint8).reshape(3, 2, 8, 4)
    answer, outputs = run(build(SURFACES), step("bytes", 1, 8, surface("s", "x", (8, 2, 3), "u8x4"), "out"),
                          {"x": data, "out": np.zeros(8, np.uint8)})  # fmt: skip
    assert answer.status == "ok", answer
    wanted = data.copy()
    wanted[2, 1] = wanted[2, 1, :, ::-1]
    np.testing.assert_array_equal(outputs["x"], wanted)
    np.testing.assert_array_equal(outputs["out"], data[1, 0].reshape(-1)[:8])


def test_layers() -> None:
    answer, outputs = run(build(SURFACES), step("layer", 1, 4, surface("s", "x", (4, 3, 5), layered=True)),
                          {"x": np.zeros((5, 3, 4), np.float32)})  # fmt: skip
    assert answer.status == "ok", answer
    assert outputs["x"].sum() == 20 and (outputs["x"][2, 1] == 5).all()


@pytest.mark.parametrize(
    ("kernel", "read", "held"),
    [
        ("zero", [0, 0, 1, 2, 3, 4], [1, 2, 9, 10]),
        ("nearest", [1, 1, 1, 2, 3, 4], [1, 2, 9, 14]),  # of lanes that meet at the edge the last one stays
    ],
)
def test_boundary_modes_that_go_on(kernel: str, read: list[int], held: list[int]) -> None:
    answer, outputs = edge(kernel)
    assert answer.status == "ok" and not answer.faults
    assert outputs["out"].tolist() == read and outputs["x"].tolist() == held


def edge(kernel: str) -> tuple[object, dict[str, np.ndarray]]:
    data = np.array([1, 2, 3, 4], np.float32)
    made = step(kernel, 1, 6, surface("s", "x", (4,)), "out")
    return run(build(SURFACES), made, {"x": data, "out": np.zeros(6, np.float32)})


def test_a_trap_is_a_fault_with_its_place() -> None:
    answer, outputs = edge("trap")
    assert answer.status == "fault"
    told = {fault.kind: fault for fault in answer.faults}
    assert set(told) == {"out-of-bounds read", "out-of-bounds write"}
    assert (told["out-of-bounds read"].count, told["out-of-bounds write"].count) == (2, 4)
    assert (
        "reads 4 bytes at (-8) of the surface 's', which has 16 (bytes along x)" in told["out-of-bounds read"].message
    )
    assert outputs["x"].tolist() == [1, 2, 9, 10]


def test_a_place_that_is_no_multiple_is_misaligned() -> None:
    answer, _ = run(build(SURFACES), step("crooked", 1, 2, surface("s", "x", (4,))), {"x": np.zeros(4, np.float32)})
    assert [fault.kind for fault in answer.faults] == ["misaligned access"]


def test_formatted_stores_count_texels_of_32_bits_and_refuse_others() -> None:
    made = step("formatted", 1, 6, surface("s", "x", (4,)))
    answer, outputs = run(build(SURFACES), made, {"x": np.zeros(4, np.float32)})
    assert answer.status == "ok" and outputs["x"].tolist() == [2, 3, 4, 5]
    made = step("formatted", 1, 6, surface("s", "x", (8,), "f16", 2))
    answer, _ = run(build(SURFACES), made, {"x": np.zeros(8, np.float16)})
    assert answer.status == "refused" and "with a conversion" in answer.message


def test_a_surface_tells_its_size() -> None:
    view = surface("s", "x", (4, 3, 5), layered=True)
    answer, outputs = run(build(SURFACES), step("size", 1, 1, view, "out"),
                          {"x": np.zeros(60, np.float32), "out": np.zeros(2, np.int32)})  # fmt: skip
    assert answer.status == "ok" and outputs["out"].tolist() == [4, 5]


def test_what_one_thread_writes_to_a_surface_and_another_reads_as_a_texture_is_a_race() -> None:
    texture = View("t", "x", "f32", (64,), 256)
    answer, _ = run(build(SURFACES), step("both", 1, 64, surface("s", "x", (64,)), texture, "out"),
                    {"x": np.zeros(64, np.float32), "out": np.zeros(64, np.float32)},
                    checks=frozenset({"races"}))  # fmt: skip
    assert "global-memory race" in {fault.kind for fault in answer.faults}


def test_a_texture_is_no_surface() -> None:
    texture = View("t", "x", "f32", (64,), 256)
    answer, _ = run(build(SURFACES), step("crooked", 1, 2, texture), {"x": np.zeros(64, np.float32)})
    assert [fault.kind for fault in answer.faults] == ["illegal address"]


def test_the_float64_shadow_goes_with_the_bits() -> None:
    data = np.random.default_rng(3).normal(size=32).astype(np.float32)
    made = step("twice", 1, 32, surface("s", "x", (32,)), surface("r", "y", (32,)))
    answer, outputs = run(build(SURFACES), made, {"x": data, "y": np.zeros(32, np.float32)}, shadow=True)
    assert answer.status == "ok" and answer.shadows is not None
    value, flags = answer.shadows.outputs["y"].numbers("f32", outputs["y"].astype(np.float64))
    wide = data.astype(np.float64)
    wanted = wide * float(np.float32(0.1)) * wide
    wanted[5] = wide[5] * float(np.float32(0.1))  # what was stored first stays there
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    assert not flags.any() and (value != outputs["y"]).any()


def test_reductions_are_refused_by_name() -> None:
    answer, _ = run(
        build(SURFACES), step("reduce", 1, 1, surface("s", "x", (4,), "u32")), {"x": np.zeros(4, np.uint32)}
    )
    assert answer.status == "refused" and "sured.b.add.1d" in answer.message
