"""Blocks of another shape where a kernel runs in any and the one it has is bad; otherwise the launch stays."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, idea_of, refusal, rewritten, run

NAME = "launch-shape"
WORK = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = 2.0f * x[i];"
STRIDE = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i];"


def scale(
    launch: str = "<<<(n + 31) / 32, 32>>>", work: str = WORK, size: str = "n = 1 << 22", bounds: str = ""
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     {size}
//   buffer   x: f32[n] in integers(-9, 9)
//   buffer   y: f32[n] out
//   launch   scale{launch}(x, y, n)
__global__ void {bounds}scale(const float* x, float* y, int n) {{
    {work}
}}
"""


LAUNCHES = {
    "a warp": ("<<<(n + 31) / 32, 32>>>", "a block of 32 threads"),
    "no whole warps": ("<<<(n + 99) / 100, 100>>>", "idle lanes"),
    "large": ("<<<(n + 1023) / 1024, 1024>>>", "two fit on an SM at most"),
}


@pytest.mark.parametrize("launch", LAUNCHES)
def test_every_size_of_block_is_right(launch: str) -> None:
    written, words = LAUNCHES[launch]
    request = ask(scale(written))
    assert words in idea_of(request, NAME).why
    (first,) = candidates(request, NAME)
    assert first.scope is Scope.RELAUNCH and rewritten(request, first).document.text == request.document.text
    for threads in (32, 64, 128, 256, 512, 1024):
        candidate = retune(first, request, {"threads": threads})
        assert candidate is not None
        (one,) = candidate.plan.launches()
        assert (str(one.grid[0]), str(one.block[0])) == (f"(n + {threads - 1}) / {threads}", str(threads))
        x = np.arange(1003, dtype=np.float32)
        found = run(rewritten(request, candidate), request.workload, {"x": x}, n=1003)["y"]
        np.testing.assert_array_equal(found, 2 * x)


def test_a_few_large_blocks_are_cut_up() -> None:
    """16 blocks of 512 threads keep 16 SMs busy; 128 of 64 keep 128."""
    request = ask(scale("<<<(n + 511) / 512, 512>>>", size="n = 8192"))
    assert "of 132 SMs some get much more work" in idea_of(request, NAME).why
    (candidate,) = candidates(request, NAME)
    assert dict(candidate.values) == {"threads": 64}


def test_a_small_grid_that_loops() -> None:
    request = ask(scale("<<<64, 256>>>", STRIDE))
    (first,) = candidates(request, NAME)
    for threads, blocks in ((64, 132), (256, 2112)):
        candidate = retune(first, request, {"threads": threads, "blocks": blocks})
        assert candidate is not None
        (one,) = candidate.plan.launches()
        assert str(one.grid[0]) == f"min(max((n + {threads - 1}) / {threads}, 1), {blocks})"
        x = np.arange(3003, dtype=np.float32)
        found = run(rewritten(request, candidate), request.workload, {"x": x}, n=3003)["y"]
        np.testing.assert_array_equal(found, 2 * x)


def test_a_plane() -> None:
    text = """\
// cuda-lsp: workload
//   size     h = 70, w = 90
//   buffer   x: f32[h * w] in
//   buffer   y: f32[h * w] out
//   launch   scale<<<dim3((w + 3) / 4, (h + 3) / 4), dim3(4, 4)>>>(x, y, h, w)
__global__ void scale(const float* x, float* y, int h, int w) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= w || row >= h) return;
    y[row * w + col] = x[row * w + col];
}
"""
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    (launch,) = candidate.plan.launches()
    assert [str(extent) for extent in (*launch.grid[:2], *launch.block[:2])] == [
        "(w + 31) / 32",
        "(h + 7) / 8",
        "32",
        "8",
    ]
    x = np.arange(33 * 41, dtype=np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x}, h=33, w=41)["y"]
    np.testing.assert_array_equal(found, x)


REFUSED = {
    "a good shape": (scale("<<<(n + 255) / 256, 256>>>"), "whole warps, and there are enough"),
    "a full grid that loops": (scale("<<<1056, 256>>>", STRIDE), "fills the card"),
    "a width as a number": (scale(work=WORK.replace("blockDim.x", "32")), "for a fixed number"),
    "another use": (scale(work=WORK.replace("x[i];", "x[i] + threadIdx.x;")), "one coordinate alone"),
    "no test": (scale("<<<n / 32, 32>>>", WORK.replace("if (i < n) ", "")), "no test keeps i"),
    "a grid that may fall short": (scale("<<<n / 32, 32>>>"), "no test keeps i"),
    "a promise": (scale(bounds="__launch_bounds__(32) "), "__launch_bounds__"),
    "a barrier": (scale(work="__syncthreads();\n    " + WORK), "work together"),
    "a warp operation": (scale(work=WORK.replace("x[i]", "__shfl_sync(~0u, x[i], 0)")), "works on the warp as it is"),
    "the grid is looked at": (
        scale("<<<64, 256>>>", STRIDE.replace("2.0f * x[i]", "x[i] + gridDim.x")),
        "one coordinate alone",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(scale())
    (candidate,) = candidates(request, NAME)
    assert refusal(after(request, candidate), NAME)
