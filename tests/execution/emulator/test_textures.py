"""Texture fetches against hand-made ones: filters, address modes, formats, gathers, layers, what is refused."""

import itertools

import numpy as np
import pytest

from agent.execution.device import Answer
from agent.workload.binding import BoundLaunch, TextureArgument
from agent.workload.textures import LINEAR, PITCHED, View
from tests.execution.emulator.building import build, launch, run
from tests.execution.emulator.texturing import fetched

FETCH = """
extern "C" __global__ void k1(cudaTextureObject_t t, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(t, x[i]);
}
extern "C" __global__ void k2(cudaTextureObject_t t, const float2* x, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float4>(t, x[i].x, x[i].y);
}
extern "C" __global__ void k3(cudaTextureObject_t t, const float3* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<float>(t, x[i].x, x[i].y, x[i].z);
}
extern "C" __global__ void layered(cudaTextureObject_t t, const float2* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2DLayered<float>(t, x[i].x, x[i].y, i);
}
extern "C" __global__ void layered1(cudaTextureObject_t t, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1DLayered<float>(t, x[i], i % 3);
}
extern "C" __global__ void index(cudaTextureObject_t t, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(t, i - 3);
}
extern "C" __global__ void whole(cudaTextureObject_t t, int4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { char4 v = tex2D<char4>(t, i, 1.0f); out[i] = make_int4(v.x, v.y, v.z, v.w); }
}
extern "C" __global__ void gather(cudaTextureObject_t t, const float2* x, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2Dgather<float4>(t, x[i].x, x[i].y, 1);
}
extern "C" __global__ void either(cudaTextureObject_t a, cudaTextureObject_t b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(i % 3 ? a : b, i);
}
extern "C" __global__ void size(cudaTextureObject_t t, int* out) {
    asm("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
    asm("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
    asm("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(t));
    asm("txq.normalized_coords.b32 %0, [%1];" : "=r"(out[3]) : "l"(t));
}
extern "C" __global__ void level(cudaTextureObject_t t, float* out) { out[0] = tex2DLod<float>(t, 0, 0, 1); }
extern "C" __global__ void gradient(cudaTextureObject_t t, float* out) {
    out[0] = tex2DGrad<float>(t, 0, 0, make_float2(0, 0), make_float2(0, 0));
}
extern "C" __global__ void cube(cudaTextureObject_t t, float* out) { out[0] = texCubemap<float>(t, 0, 0, 1); }
extern "C" __global__ void reads(cudaTextureObject_t t, float* x, float* out) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
    x[63 - threadIdx.x] = 1;
}
"""
PLACES = (-3.75, -1.0, -0.5, -0.25, 0.0, 0.25, 0.49, 0.5, 0.75, 1.0, 1.62, 2.5, 3.0, 4.25, 4.5, 5.0, 5.5, 9.9, 1e20)
NUMPY = {"f32": np.float32, "f16": np.float16, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}


def step(kernel: str, n: int, *arguments: object) -> BoundLaunch:
    """Views among the arguments are passed as textures."""
    made = launch(kernel, -(-n // 64), 64, *(one for one in arguments if not isinstance(one, View)))
    rest = iter(made.arguments)
    told = [TextureArgument(one) if isinstance(one, View) else next(rest) for one in arguments]
    return BoundLaunch(made.kernel, made.grid, made.block, 0, tuple(told))


def texels(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if np.issubdtype(kind, np.integer):
        return random.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    return (random.integers(-4096, 4096, shape) / 64).astype(kind)


def view_of(shape: tuple[int, ...], dtype: str, lanes: int = 1, **options: object) -> View:
    """Of a packed array of that shape, x last."""
    kind = dtype if lanes == 1 else f"{dtype}x{lanes}"
    extents = shape[::-1]
    pitch = extents[0] * np.dtype(NUMPY[dtype]).itemsize * lanes
    modes = options.pop("address", ("clamp",))
    address = modes * len(extents) if len(modes) == 1 else modes
    return View("t", "x", kind, extents, options.pop("pitch", pitch), address=address, **options)


def close(found: np.ndarray, wanted: list[list[float]], least: float = 1e-12) -> None:
    """Sums of at most eight products in float64, then one rounding: the last bit may differ from the exact sum's.
    ``least``: whole numbers are rounded to float before they are filtered."""
    np.testing.assert_allclose(found.reshape(-1), np.array(wanted, np.float32).reshape(-1), rtol=2e-7, atol=least)


@pytest.mark.parametrize("mode", ["clamp", "wrap", "mirror", "border"])
@pytest.mark.parametrize("filtering", ["nearest", "linear"])
@pytest.mark.parametrize("normalized", [False, True])
def test_one_dimension(mode: str, filtering: str, normalized: bool) -> None:
    data = texels((5,), "f32")
    view = view_of((5,), "f32", filter=filtering, address=(mode,), normalized=normalized)
    places = np.array([one / 4 if normalized else one for one in PLACES], np.float32)
    out = np.zeros(len(places), np.float32)
    answer, outputs = run(build(FETCH), step("k1", len(places), view, "p", "out", len(places)),
                          {"x": data, "p": places, "out": out})  # fmt: skip
    assert answer.status == "ok", answer
    close(outputs["out"], [fetched(view, data[:, None], (one,)) for one in places])


@pytest.mark.parametrize("dtype", ["f32", "f16", "u8", "i8", "u16", "i16"])
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_formats_and_channels_with_a_mode_for_each_axis(dtype: str, lanes: int) -> None:
    data = texels((3, 4, lanes), dtype)
    as_float = dtype[0] in "iu"
    modes = ("wrap", "border")
    view = view_of((3, 4), dtype, lanes, filter="linear", address=modes, normalized=True, as_float=as_float)
    places = np.array(list(itertools.product((-0.4, 0.1, 0.37, 0.9, 1.3), repeat=2)), np.float32)
    out = np.full((len(places), 4), 7, np.float32)
    answer, outputs = run(build(FETCH), step("k2", len(places), view, "p", "out", len(places)),
                          {"x": data, "p": places, "out": out})  # fmt: skip
    assert answer.status == "ok", answer
    close(outputs["out"][:, :lanes], [fetched(view, data, tuple(one)) for one in places], 2e-7 * as_float)
    assert not outputs["out"][:, lanes:].any()


@pytest.mark.parametrize("filtering", ["nearest", "linear"])
def test_three_dimensions(filtering: str) -> None:
    data = texels((2, 3, 4), "f32")
    view = view_of((2, 3, 4), "f32", filter=filtering, address=("clamp", "mirror", "wrap"), normalized=True)
    places = np.array(list(itertools.product((-0.6, 0.2, 0.55, 1.8), repeat=3)), np.float32)
    out = np.zeros(len(places), np.float32)
    answer, outputs = run(build(FETCH), step("k3", len(places), view, "p", "out", len(places)),
                          {"x": data, "p": places, "out": out})  # fmt: skip
    assert answer.status == "ok", answer
    close(outputs["out"], [fetched(view, data[..., None], tuple(one)) for one in places])


def test_layers_are_clamped_and_never_filtered_across() -> None:
    data = texels((3, 4, 5), "f32")
    view = view_of((3, 4, 5), "f32", filter="linear", layered=True)
    flat = view_of((4, 5), "f32", filter="linear")
    places = np.array([(1.3, 2.2)] * 8, np.float32)
    out = np.zeros(8, np.float32)
    answer, outputs = run(build(FETCH), step("layered", 8, view, "p", "out", 8), {"x": data, "p": places, "out": out})
    assert answer.status == "ok", answer
    wanted = [fetched(flat, data[min(i, 2), ..., None], (1.3, 2.2)) for i in range(8)]
    close(outputs["out"], wanted)
    lines = view_of((3, 20), "f32", layered=True)
    answer, outputs = run(build(FETCH), step("layered1", 8, lines, "p", "out", 8),
                          {"x": data, "p": np.arange(8, dtype=np.float32), "out": out})  # fmt: skip
    np.testing.assert_array_equal(outputs["out"], [data.reshape(3, 20)[i % 3, i] for i in range(8)])


def test_linear_memory_by_index_is_zero_outside() -> None:
    data = texels((10,), "f32")
    view = view_of((10,), "f32", memory=LINEAR, address=("wrap",))
    answer, outputs = run(build(FETCH), step("index", 20, view, "out", 20), {"x": data, "out": np.ones(20, np.float32)})
    assert answer.status == "ok" and not answer.faults
    np.testing.assert_array_equal(outputs["out"], np.concatenate([np.zeros(3), data, np.zeros(7)]))


def test_whole_numbers_over_pitched_memory() -> None:
    data = texels((2, 64), "i8")
    view = view_of((2, 10), "i8", 4, memory=PITCHED, pitch=64)
    answer, outputs = run(build(FETCH), step("whole", 12, view, "out", 12),
                          {"x": data, "out": np.zeros((12, 4), np.int32)})  # fmt: skip
    assert answer.status == "ok", answer
    row = data[1, :40].reshape(10, 4)
    np.testing.assert_array_equal(outputs["out"], row[[*range(10), 9, 9]])


def test_a_gather_goes_counter_clockwise_and_rounds_places_as_the_guide_says() -> None:
    data = texels((4, 5, 2), "f32")
    view = view_of((4, 5), "f32", 2)
    # 2.49805 is the guide's example: texels 2 and 3, not 1 and 2
    places = np.array([(2.3, 1.5), (2.49805, 2.0), (0.0, 0.0)], np.float32)
    answer, outputs = run(build(FETCH), step("gather", 3, view, "p", "out", 3),
                          {"x": data, "p": places, "out": np.zeros((3, 4), np.float32)})  # fmt: skip
    assert answer.status == "ok", answer
    green = data[..., 1]
    corners = [((2, 1), (2, 2), (1, 2), (1, 1)), ((2, 2), (2, 3), (1, 3), (1, 2)), ((0, 0),) * 4]
    wanted = [[green[at] for at in four] for four in corners]
    np.testing.assert_array_equal(outputs["out"], wanted)


def test_lanes_may_use_different_objects() -> None:
    one, other = texels((64,), "f32"), texels((64,), "f32", 2)
    a = view_of((64,), "f32", memory=LINEAR)
    b = View("u", "y", "f32", (64,), 256, memory=LINEAR)
    answer, outputs = run(build(FETCH), step("either", 64, a, b, "out", 64),
                          {"x": one, "y": other, "out": np.zeros(64, np.float32)})  # fmt: skip
    assert answer.status == "ok", answer
    np.testing.assert_array_equal(outputs["out"], np.where(np.arange(64) % 3, one, other))


def test_an_object_tells_its_size() -> None:
    view = view_of((3, 4, 5), "f32", normalized=True)
    answer, outputs = run(build(FETCH), launched(view), {"x": texels((60,), "f32"), "out": np.zeros(4, np.int32)})
    assert answer.status == "ok", answer
    assert outputs["out"].tolist() == [5, 4, 3, 1]


def launched(view: View, kernel: str = "size") -> BoundLaunch:
    made = step(kernel, 1, view, "out")
    return BoundLaunch(made.kernel, made.grid, (1, 1, 1), 0, made.arguments)


@pytest.mark.parametrize(
    ("kernel", "told"), [("level", "mipmaps"), ("gradient", "mipmaps"), ("cube", "tex.cube.v4.f32.f32")]
)
def test_forms_that_are_not_known_are_refused_by_name(kernel: str, told: str) -> None:
    answer, _ = run(build(FETCH), launched(view_of((2, 2), "f32"), kernel), {"x": 16, "out": np.zeros(4, np.float32)})
    assert answer.status == "refused" and told in answer.message


@pytest.mark.parametrize(
    ("kernel", "view", "told"),
    [
        ("k1", view_of((2, 2), "f32"), "as one of 1 dimension"),
        ("k1", view_of((4,), "u8"), "say read=float"),
        ("k1", view_of((4,), "f32", memory=LINEAR), "CUDA needs tex1Dfetch"),
        ("index", view_of((4,), "f32"), "not linear memory"),
        ("k1", View("t", "none", "f32", (4,), 16), "which has no contents"),
        ("k1", view_of((64,), "f32"), "needs 256 bytes, 'x' has 16"),
    ],
)
def test_an_object_that_does_not_suit_is_refused(kernel: str, view: View, told: str) -> None:
    answer = ran(kernel, view)
    assert answer.status == "refused" and told in answer.message


def ran(kernel: str, view: View) -> Answer:
    given = ("out", 4) if kernel == "index" else ("p", "out", 4)
    buffers = {"x": np.zeros(4, np.float32), "p": np.zeros(4, np.float32), "out": np.zeros(4, np.float32)}
    return run(build(FETCH), step(kernel, 4, view, *given), buffers)[0]


def test_a_number_that_is_no_object_is_a_fault() -> None:
    made = step("k1", 4, np.uint64(5), "p", "out", 4)
    buffers = {"p": np.zeros(4, np.float32), "out": np.zeros(4, np.float32)}
    answer, _ = run(build(FETCH), made, buffers)
    assert [fault.kind for fault in answer.faults] == ["illegal address"] and answer.faults[0].count == 4


def test_counters_take_a_fetch_for_one_request() -> None:
    data = texels((4, 64), "f32")
    view = view_of((4, 64), "f32", filter="linear")
    places = np.stack([np.arange(64) + 0.8, np.full(64, 1.8)], 1).astype(np.float32)
    answer, _ = run(build(FETCH), step("k2", 64, view, "p", "out", 64),
                    {"x": data, "p": places, "out": np.zeros((64, 4), np.float32)}, count=True)  # fmt: skip
    (counters,) = answer.counters
    (fetch,) = [one for one in counters.instructions if one.text.startswith("tex.")]
    assert (fetch.kind, fetch.counts.requests, fetch.counts.sectors) == ("load", 2, 8)
    assert "tex.2d.v4.f32.f32" in answer.inexact


def test_a_buffer_that_is_written_while_it_is_read_as_a_texture_shows_as_a_race() -> None:
    view = view_of((64,), "f32", memory=LINEAR)
    made = step("reads", 64, view, "x", "out")
    answer, _ = run(build(FETCH), made, {"x": texels((64,), "f32"), "out": np.zeros(64, np.float32)},
                    checks=frozenset({"races"}))  # fmt: skip
    assert "global-memory race" in {fault.kind for fault in answer.faults}


def test_texels_that_nothing_has_written_are_told_of() -> None:
    view = view_of((4,), "f32")
    answer, _ = run(build(FETCH), step("k1", 4, view, "p", "out", 4),
                    {"x": 16, "p": np.zeros(4, np.float32), "out": np.zeros(4, np.float32)},
                    checks=frozenset({"initialised"}))  # fmt: skip
    assert [fault.kind for fault in answer.faults] == ["uninitialised read"]


def test_the_compiled_back_end_leaves_them_to_the_other() -> None:
    data = texels((64,), "f32")
    made = step("index", 64, view_of((64,), "f32", memory=LINEAR), "out", 64)
    answer, outputs = run(build(FETCH), made, {"x": data, "out": np.ones(64, np.float32)}, back_end="compiled")
    assert answer.status == "ok" and answer.compiled == ()
    np.testing.assert_array_equal(outputs["out"], np.concatenate([np.zeros(3), data[:61]]))
