"""One side along memory, the other across it: handed over through a tile, or refused with the reason."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, diff, idea_of, refusal, rewritten, run

NAME = "transposed-staging"
WORK = "if (row < rows && col < cols) {\n        out[col * rows + row] = in[row * cols + col];\n    }"


def transpose(
    block: str = "dim3(16, 16)",
    grid: str = "dim3((cols + 15) / 16, (rows + 15) / 16)",
    work: str = WORK,
    arguments: str = "in, out, rows, cols",
    element: str = "float",
    dtype: str = "f32",
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 200, cols = 170
//   buffer   in: {dtype}[rows * cols] inout integers(-9, 9)
//   buffer   out: {dtype}[rows * cols] inout integers(-9, 9)
//   launch   transpose<<<{grid}, {block}>>>({arguments})
__global__ void transpose(const {element}* in, {element}* out, int rows, int cols) {{
    int col = blockIdx.x * blockDim.x + threadIdx.x;  // along a row
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    {work}
}}
"""


LAYOUTS = {
    "square": ("dim3(16, 16)", "dim3((cols + 15) / 16, (rows + 15) / 16)"),
    "flat": ("dim3(32, 8)", "dim3((cols + 31) / 32, (rows + 7) / 8)"),
    "high": ("dim3(16, 64)", "dim3((cols - 1) / 16 + 1, (rows + 63) / 64)"),
}
TYPES = {"f32": ("float", np.float32), "f64": ("double", np.float64), "u8": ("unsigned char", np.uint8)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_transposition_stays_one(layout: str, dtype: str) -> None:
    element, numpy_type = TYPES[dtype]
    request = ask(transpose(*LAYOUTS[layout], element=element, dtype=dtype))
    made = candidates(request, NAME)
    assert [candidate.variant for candidate in made] == [
        "square tile, several rows a thread",
        "tile of the block's own shape",
    ]
    for rows, cols in ((33, 70), (1, 5), (64, 31)) if dtype == "f32" else ((33, 70),):
        given = np.random.default_rng(rows).integers(0, 99, (rows, cols)).astype(numpy_type)
        for candidate in made:
            inputs = {"in": given, "out": np.zeros_like(given)}
            result = run(rewritten(request, candidate), request.workload, inputs, rows=rows, cols=cols)
            np.testing.assert_array_equal(result["out"].reshape(cols, rows), given.T)


@pytest.mark.parametrize("edge", [16, 32, 64])
@pytest.mark.parametrize("rows", [4, 8, 16])
def test_every_value_of_the_tunables_is_right(edge: int, rows: int) -> None:
    request = ask(transpose())
    tuned = retune(candidates(request, NAME)[0], request, {"edge": edge, "rows": rows})
    assert tuned is not None
    (launch,) = tuned.plan.launches()
    assert [str(extent) for extent in launch.block] == [str(edge), str(rows), "1"]
    assert str(launch.grid[0]) == f"(cols + {edge - 1}) / {edge}"
    given = np.arange(71 * 45, dtype=np.float32).reshape(71, 45)
    inputs = {"in": given, "out": np.zeros_like(given)}
    result = run(rewritten(request, tuned), request.workload, inputs, rows=71, cols=45)
    np.testing.assert_array_equal(result["out"].reshape(45, 71), given.T)


def gathered(extra: str = "") -> str:
    """Loads stride, the store runs along memory, and the value is computed from several."""
    return f"""\
// cuda-lsp: workload
//   size     h = 75, w = 90
//   buffer   src: i32[h * w] in integers(0, 50)
//   buffer   gain: f32[w * h] in
//   buffer   out: f32[h * w] out
//   launch   turn<<<dim3((h + 31) / 32, (w + 7) / 8), dim3(32, 8)>>>(src, gain, out, h, w)
__global__ void turn(const int* src, const float* gain, float* out, int h, int w) {{
\tint x = blockIdx.x * 32 + threadIdx.x;
\tint y = blockIdx.y * 8 + threadIdx.y;
\tif (x >= h || y >= w) return;
\tint from = x * w + y;
\t// small ones count as one
\tfloat v = src[from] * 2.0f;
\tif (v < 3.0f) v = 1.0f;
\t{extra}
\tout[y * h + x] = v + gain[y * h + x];
}}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_loads_that_stride_are_handed_over(line_end: str) -> None:
    request = ask(gathered().replace("\n", line_end))
    src = np.random.default_rng(3).integers(0, 50, (45, 70)).astype(np.int32)
    gain = np.arange(45 * 70, dtype=np.float32).reshape(70, 45)
    for candidate in candidates(request, NAME):
        result = run(rewritten(request, candidate), request.workload, {"src": src, "gain": gain}, h=45, w=70)
        value = np.where(src * 2.0 < 3.0, 1.0, src * 2.0).T
        np.testing.assert_array_equal(result["out"].reshape(70, 45), (value + gain).astype(np.float32))
        assert "\n\t" in candidate.code and "\n    " not in candidate.code
        assert "// small ones count as one" in candidate.code
        assert rewritten(request, candidate).document.text.count(b"\n") == rewritten(
            request, candidate
        ).document.text.count(line_end.encode())


def test_what_is_said_is_counted() -> None:
    """A warp of a 32 x 8 block reads 32 neighbours (4 sectors) and writes 32 elements a row of out apart; eight of
    them, with the lanes along y, fill a sector."""
    idea = idea_of(ask(transpose(*LAYOUTS["flat"])), NAME)
    assert "takes 32 sectors per request of a warp, 4 with" in idea.why and idea.line == 10


def test_only_what_the_other_side_needs_is_repeated() -> None:
    request = ask(gathered())
    tiled = candidates(request, NAME)[0].code
    assert tiled.count("int from = x * w + y;") == 1 and tiled.count("v < 3.0f") == 1
    assert tiled.count("if (x >= h || y >= w) continue;") == 2


def test_the_scope_decides() -> None:
    (candidate,) = candidates(ask(transpose(), Scope.DROP_IN), NAME)
    assert candidate.variant == "tile of the block's own shape"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ("__launch_bounds__", "a promise about the block"),
        ("no test", "no test keeps the coordinates inside"),
        ("short grid", "the grid may not reach the bound"),
        ("two uses", "the index is used for something else as well"),
    ],
)
def test_where_the_launch_must_stay(changed: str, why: str) -> None:
    text = {
        "__launch_bounds__": transpose().replace("void transpose", "void __launch_bounds__(256) transpose"),
        "no test": transpose(grid="dim3(cols / 16, rows / 16)", work="out[col * rows + row] = in[row * cols + col];"),
        "short grid": transpose(grid="dim3(cols / 16, (rows + 15) / 16)"),
        "two uses": transpose(work=WORK.replace("in[row", "blockIdx.x + in[row")),
    }[changed]
    assert [candidate.variant for candidate in candidates(ask(text), NAME)] == ["tile of the block's own shape"], why


def test_without_a_test_a_whole_grid_is_right() -> None:
    text = transpose(grid="dim3(cols / 16, rows / 16)", work="out[col * rows + row] = in[row * cols + col];")
    request = ask(text)
    given = np.arange(48 * 32, dtype=np.float32).reshape(48, 32)
    (candidate,) = candidates(request, NAME)
    result = run(rewritten(request, candidate), request.workload, {"in": given, "out": given * 0}, rows=48, cols=32)
    np.testing.assert_array_equal(result["out"].reshape(32, 48), given.T)


REFUSED = {
    "in place": (transpose(arguments="out, out, rows, cols"), "same buffer"),
    "in a loop": (
        transpose(work=WORK.replace("out[col", "for (int k = 0; k < 2; ++k) out[col")),
        "inside a branch or a loop",
    ),
    "in a branch": (transpose(work=WORK.replace("out[col", "if (in[0] > 0) out[col")), "hangs on more than indices"),
    "an index that is loaded": (
        transpose(work=WORK.replace("out[col", "out[(int)in[0] * 0 + col")),
        "index of `out[(int)in[0] * 0 + col * rows + row]`",
    ),
    "a warp operation": (transpose(work="__syncwarp();\n    " + WORK), "__syncwarp"),
    "a barrier": (transpose(work="__syncthreads();\n    " + WORK), "through shared memory"),
    "a shared array": (transpose(work="__shared__ float s[4];\n    s[0] = 1.0f;\n    " + WORK), "shared memory"),
    "both run along": (transpose(work=WORK.replace("col * rows + row", "row * cols + col")), "no access strides"),
    "both stride": (transpose(work=WORK.replace("row * cols + col", "col * rows + row")), "once the thread indices"),
    "an atomic": (transpose(work=WORK.replace("out[col", "atomicAdd(&out[0], 1.0f);\n        out[col")), "atomicAdd"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(transpose())
    for candidate in candidates(request, NAME):
        assert "shared memory" in refusal(after(request, candidate), NAME)


def test_the_change_is_small() -> None:
    request = ask(transpose())
    lines = diff(request, candidates(request, NAME)[0]).split("\n")
    assert sum(line.startswith("+") for line in lines) <= 18 and sum(line.startswith("-") for line in lines) <= 6


def walked(
    body: str = "out[to + i] = in[from + i * w];",
    setup: str = "int from = y * w + x;\n    int to = x * h + y;",
    block: str = "dim3(32, 8)",
    test: str = "",
) -> str:
    """A block walks over a square tile by itself."""
    return f"""\
// cuda-lsp: workload
//   size     h = 128 multiple 32, w = 96 multiple 32
//   buffer   in: f32[h * w] inout integers(-9, 9)
//   buffer   out: f32[h * w] inout integers(-9, 9)
//   launch   turn<<<dim3(w / 32, h / 32), {block}>>>(in, out, h, w)
#define TILE 32
#define ROWS 8
__global__ void turn(const float* in, float* out, int h, int w) {{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    {setup}
    {test}
    for (int i = 0; i < TILE; i += ROWS) {{
        {body}
    }}
}}
"""


WALKS = {
    "stores stride": walked(),
    "stores stride, rows spelled out": walked("out[x * h + (y + i)] = in[(y + i) * w + x];", ""),
    "loads stride": walked("out[(y + i) * w + x] = in[(size_t)x * h + y + i];", ""),
    "behind a test": walked("if (y + i < h) out[to + i] += in[from + i * w];", test="if (x >= w) return;"),
    "places of two": walked(
        "out[(blockIdx.x * 32 + threadIdx.x) * h + y + i] = in[(y + i) * w + x / 2 * 2 + x % 2];", ""
    ),
}


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_over_a_tile_is_made_twice(walk: str) -> None:
    request = ask(WALKS[walk])
    (candidate,) = candidates(request, NAME)
    assert candidate.scope is Scope.DROP_IN and candidate.code.count("for (int i = 0; i < TILE; i += ROWS) {") == 2
    h, w = 64, 96
    given = np.arange(h * w, dtype=np.float32)
    before = np.full(h * w, 5 if walk == "behind a test" else 0, np.float32)
    found = run(rewritten(request, candidate), request.workload, {"in": given, "out": before}, h=h, w=w)["out"]
    if walk == "loads stride":
        np.testing.assert_array_equal(found.reshape(h, w), given.reshape(w, h).T)
    else:
        np.testing.assert_array_equal(found.reshape(w, h), given.reshape(h, w).T + before[0])


REFUSED_WALKS = {
    "not square": (walked(block="dim3(16, 8)"), ""),
    "the row by itself": (walked("out[to + 2 * i] = in[from + i * w];"), "by more than their sum"),
    "a test of the row by itself": (
        walked("if (y < h) out[to + i] = in[from + i * w];"),
        "by more than their sum",
    ),
}


@pytest.mark.parametrize("case", REFUSED_WALKS)
def test_near_misses_of_a_walk(case: str) -> None:
    text, words = REFUSED_WALKS[case]
    assert words in refusal(ask(text), NAME)
