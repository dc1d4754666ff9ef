"""The float64 shadow through texture fetches, against interpolation in exact fractions."""

from fractions import Fraction
from math import floor

import numpy as np

from agent.workload.binding import BoundLaunch, TextureArgument
from agent.workload.textures import View
from tests.execution.emulator.building import build, launch, run

SOURCE = """
extern "C" __global__ void k(cudaTextureObject_t t, const float* x, float* y) {
    int i = threadIdx.x;
    y[i] = tex1D<float>(t, x[i] * 0.7f) * 0.3f;
}
"""
SEVEN, THREE = (Fraction(float(np.float32(one))) for one in (0.7, 0.3))


def shadow(view: View, texels: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own values, values without rounding, flags."""
    made = launch("k", 1, len(places), "x", "y")
    made = BoundLaunch("k", made.grid, made.block, 0, (TextureArgument(view), *made.arguments))
    buffers = {"data": texels, "x": places, "y": np.zeros(len(places), np.float32)}
    answer, outputs = run(build(SOURCE), made, buffers, shadow=True)
    plain, same = run(build(SOURCE), made, buffers)
    np.testing.assert_array_equal(outputs["y"], same["y"])
    assert answer.status == plain.status == "ok" and answer.shadows is not None
    own = outputs["y"].astype(np.float64)
    return own, *answer.shadows.outputs["y"].numbers("f32", own)


def test_a_filtered_value_has_weights_that_are_not_rounded() -> None:
    texels = np.random.default_rng(4).normal(size=16).astype(np.float32)
    places = np.random.default_rng(5).uniform(-2, 26, 64).astype(np.float32)
    own, value, flags = shadow(View("t", "data", "f32", (16,), 64, filter="linear"), texels, places)
    wanted = []
    for place in places:
        at = Fraction(float(place)) * SEVEN - Fraction(1, 2)
        first, part = floor(at), at - floor(at)
        low, high = (Fraction(float(texels[min(max(index, 0), 15)])) for index in (first, first + 1))
        wanted.append(float(((1 - part) * low + part * high) * THREE))
    np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-15)
    assert not flags.any()
    # a weight is off by up to half of its last bit
    assert 0 < np.abs(own - value).max() <= 0.3 * np.abs(np.diff(texels)).max() / 512 * 1.01


def test_where_another_texel_would_be_the_nearest_is_marked() -> None:
    texels = np.arange(16, dtype=np.float32)
    # the float product of the second is 7, the real one a little less
    places = np.array([3.2, 10, 12.6], np.float32)
    own, value, flags = shadow(View("t", "data", "f32", (16,), 64), texels, places)
    exact = [floor(Fraction(float(place)) * SEVEN) for place in places]
    rounded = [int(np.floor(np.float32(place) * np.float32(0.7))) for place in places]
    assert exact[1] == 6 and rounded[1] == 7
    assert (flags != 0).tolist() == [one != other for one, other in zip(exact, rounded, strict=True)]
    np.testing.assert_allclose(value[[0, 2]], [float(one * THREE) for one in (exact[0], exact[2])], rtol=1e-12)
    assert own[1] == np.float32(7) * np.float32(0.3)
