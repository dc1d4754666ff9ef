"""Arrays whose lanes meet in a bank are spread; where somebody sees how elements lie, or nothing is gained, not."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from tests.ideas.running import after, ask, candidates, idea_of, refusal, rewritten, run

NAME = "bank-conflict-padding"


def transpose(declared: str = "float tile[32][32]", element: str = "float", dtype: str = "f32", extra: str = "") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 256 multiple 32
//   buffer   in: {dtype}[n * n] in integers(-9, 9)
//   buffer   out: {dtype}[n * n] out
//   launch   transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(in, out, n)
__global__ void transpose(const {element}* in, {element}* out, int n) {{
\t__shared__ {declared};
\tint x = blockIdx.x * 32, y = blockIdx.y * 32;
\tfor (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = in[(y + i) * n + x + threadIdx.x];
\t{extra}
\t__syncthreads();
\tfor (int i = threadIdx.y; i < 32; i += 8) out[(x + i) * n + y + threadIdx.x] = tile[threadIdx.x][i];
}}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("element", "dtype"), [("float", "f32"), ("double", "f64"), ("int", "i32")])
def test_a_tile_of_rows(element: str, dtype: str, line_end: str) -> None:
    text = transpose(f"{element} tile[32][32]", element, dtype).replace("\n", line_end)
    request = ask(text)
    made = candidates(request, NAME)
    assert [candidate.variant for candidate in made] == ["padded rows", "swizzled"]
    given = np.arange(96 * 96).astype({"f32": np.float32, "f64": np.float64, "i32": np.int32}[dtype]).reshape(96, 96)
    for candidate in made:
        found = run(rewritten(request, candidate), request.workload, {"in": given}, n=96)["out"]
        np.testing.assert_array_equal(found.reshape(96, 96), given.T)
        assert candidate.scope is Scope.DROP_IN and "\n\t" in candidate.code
    assert "tile[32][32 + 1];" in made[0].code and "tile[i][threadIdx.x ^ i % 32]" in made[1].code


def test_what_is_said_is_counted() -> None:
    """Down a column of 32 floats a row all lanes meet in one bank."""
    assert "`tile[threadIdx.x][i]` takes 32 passes" in idea_of(ask(transpose()), NAME).why


def test_where_padding_has_no_room() -> None:
    text = transpose("float tile[96][128]").replace("int x =", "tile[95][127] = 0.0f;\n\tint x =")
    made = candidates(ask(text), NAME)
    assert [candidate.variant for candidate in made] == ["swizzled"]


SCAN = """\
// cuda-lsp: workload
//   size     n = 5 multiple 1
//   buffer   x: i32[n * 256] in integers(-9, 9)
//   buffer   y: i32[n * 256] out
//   launch   scan<<<n, 128DYNAMIC>>>(x, y)
__global__ void scan(const int* x, int* y) {
    DECLARED
    int t = threadIdx.x, offset = 1;
    s[2 * t] = x[blockIdx.x * 256 + 2 * t];
    s[2 * t + 1] = x[blockIdx.x * 256 + 2 * t + 1];
    for (int d = 128; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) s[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = s[offset * (2 * t + 1) - 1];
            s[offset * (2 * t + 1) - 1] = s[offset * (2 * t + 2) - 1];
            s[offset * (2 * t + 2) - 1] += left;
        }
    }
    __syncthreads();
    y[blockIdx.x * 256 + 2 * t] = s[2 * t];
    y[blockIdx.x * 256 + 2 * t + 1] = s[2 * t + 1];
}
"""
KINDS = {
    "static": ("", "__shared__ int s[256];"),
    "dynamic": (", 256 * sizeof(int)", "extern __shared__ int s[];"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_of_a_scan(kind: str) -> None:
    dynamic, declared = KINDS[kind]
    request = ask(SCAN.replace("DYNAMIC", dynamic).replace("DECLARED", declared))
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == "one left out" and "s[spread(2 * t + 1)]" in candidate.code
    assert candidate.scope is (Scope.DROP_IN if kind == "static" else Scope.RELAUNCH)
    x = np.random.default_rng(2).integers(-9, 9, (3, 256)).astype(np.int32)
    found = run(rewritten(request, candidate), request.workload, {"x": x}, n=3)["y"].reshape(3, 256)
    np.testing.assert_array_equal(found[:, 1:], np.cumsum(x, axis=1)[:, :-1])
    assert not found[:, 0].any()


REFUSED = {
    "padded already": (transpose("float tile[32][33]"), "more often than they must"),
    "seen as one row": (transpose(extra="float* flat = &tile[0][0]; flat[33] = flat[33];"), "more than subscripts"),
    "seen as packs": (transpose(extra="float4 v = *(float4*)tile[1]; out[0] = v.x;"), "more than subscripts"),
    "a row is handed on": (transpose(extra="float* row = tile[3]; row[40] = 1.0f;"), "more than subscripts"),
    "its size is asked": (transpose(extra="out[0] = sizeof(tile);"), "more than subscripts"),
    "an index with an effect": (transpose(extra="int j = 0; tile[j++][0] = 1.0f;"), "more than subscripts"),
    "bytes": (transpose("unsigned char tile[32][32]", "unsigned char", "u8"), "4 or 8 bytes"),
    "no array": (transpose().replace("__shared__ float", "float"), "no array in shared memory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(transpose())
    for candidate in candidates(request, NAME):
        assert "more often than they must" in refusal(after(request, candidate), NAME)


NARROW = """\
// cuda-lsp: workload
//   size     n = 256 multiple 128
//   buffer   x: f32[n * n] in integers(-9, 9)
//   buffer   y: f32[n * n] out
//   launch   rows<<<dim3(n / 128, n / 4), dim3(16, 4)>>>(x, y, n)
__global__ void rows(const float* x, float* y, int n) {
    __shared__ float part[4][160];
    int first = blockIdx.x * 128 - 16, row = blockIdx.y * 4 + threadIdx.y;
    for (int i = 0; i < 10; ++i) {
        int column = first + threadIdx.x + 16 * i;
        part[threadIdx.y][threadIdx.x + 16 * i] = column >= 0 && column < n ? x[row * n + column] : 0.0f;
    }
    __syncthreads();
    for (int i = 1; i < 9; ++i) {
        float sum = 0.0f;
        for (int j = -2; j <= 2; ++j) sum += part[threadIdx.y][threadIdx.x + 16 * i + j];
        y[row * n + first + threadIdx.x + 16 * i] = sum;
    }
}
"""


def test_blocks_narrower_than_a_warp() -> None:
    """Two rows of 16 lanes, ten times 16 elements apart, meet in 16 banks: the second has to go to the other 16."""
    request = ask(NARROW)
    (made,) = candidates(request, NAME)
    assert "part[4][160 + 16];" in made.code
    given = np.arange(256 * 256).astype(np.float32).reshape(256, 256) % 17
    found = run(rewritten(request, made), request.workload, {"x": given}, n=256)["y"].reshape(256, 256)
    wide = np.pad(given, ((0, 0), (2, 2)))
    np.testing.assert_array_equal(found, sum(wide[:, k : k + 256] for k in range(5)))
