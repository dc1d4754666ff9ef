"""Rows that one thread walks over are shared by lanes or a block: right for every shape of row, refused where lanes
would lose by it or see each other's work."""

from itertools import pairwise

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import ask, candidates, diff, idea_of, refusal, rewritten, run

NAME = "team-for-each-row"
ROWS, COLS = 37, 61


def kernel(
    body: str, *, parameters: str = "", buffers: str = "", arguments: str = "", head: str = "", grid: str = ""
) -> str:
    """``x`` is rows x cols, ``v`` has cols elements, ``y`` one a row, ``z`` as many as ``x``."""
    return f"""\
{head}// cuda-lsp: workload
//   size     rows = 4096, cols = 512
//   buffer   x: f32[rows * cols] in
//   buffer   v: f32[cols] in
//   buffer   y: f32[rows] inout
//   buffer   z: f32[rows * cols] inout
{buffers}//   launch   walk<<<{grid or "(rows + 63) / 64"}, 64>>>(x, v, y, z, rows, cols{arguments})
__global__ void walk(const float* x, const float* v, float* y, float* z, int rows, int cols{parameters}) {{
    {body}
}}
"""


ROW = "int row = blockIdx.x * blockDim.x + threadIdx.x;\n    "
LEAVE = ROW + "if (row >= rows) return;\n    "
DOT = "float s = 0.0f;\n    for (int i = 0; i < cols; ++i) s += x[row * cols + i] * v[i];\n    "
SOFTMAX = """float top = x[row * cols];
    for (int i = 0; i < cols; ++i) top = fmaxf(top, x[row * cols + i]);
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) {
        float e = expf(x[row * cols + i] - top);
        sum += e;
        z[row * cols + i] = e;
    }
    for (int i = 0; i < cols; ++i) z[row * cols + i] /= sum;
    y[row] = sum;"""


def numbers(rows: int = ROWS, cols: int = COLS) -> dict[str, np.ndarray]:
    """Whole numbers, whose sums are exact in any order."""
    generator = np.random.default_rng(rows * 1000 + cols)
    x = generator.integers(-9, 10, (rows, cols)).astype(np.float32)
    v = generator.integers(-3, 4, cols).astype(np.float32)
    return {"x": x, "v": v, "y": np.arange(rows, dtype=np.float32), "z": np.zeros((rows, cols), np.float32)}


KERNELS = {
    "early return": (LEAVE + DOT + "y[row] = s;", lambda x, v, y: x @ v),
    "inside an if": (ROW + "if (row < rows) {\n    " + DOT + "y[row] += s;\n    }", lambda x, v, y: y + x @ v),
    "pointer to the row": (
        LEAVE + "const float* own = x + row * cols;\n    float top = -INFINITY, low = INFINITY;\n"
        "    for (int i = 0; i < cols; ++i) {\n        if (own[i] > top) top = own[i];\n"
        "        low = fminf(low, own[i]);\n    }\n    y[row] = top - low;",
        lambda x, v, y: x.max(1) - x.min(1),
    ),
    "under a condition": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) if (v[i] > 0) s += x[row * cols + i];\n"
        "    y[row] = s;",
        lambda x, v, y: x[:, v > 0].sum(1),
    ),
    "a loop around": (
        LEAVE + "float s = 0.0f;\n    for (int k = 0; k < 3; ++k)\n"
        "        for (int i = k; i < cols; ++i) s += x[row * cols + i] * v[i];\n    y[row] = s;",
        lambda x, v, y: sum(x[:, k:] @ v[k:] for k in range(3)),
    ),
    "up to and with": (
        LEAVE + "float s = 0;\n    for (int i = 1; i <= cols - 1; ++i) s += x[row * cols + i];\n    y[row] = s;",
        lambda x, v, y: x[:, 1:].sum(1),
    ),
    "branch without braces": (
        LEAVE + DOT + "if (s > 0) y[row] = s; else y[row] = -1.0f;",
        lambda x, v, y: np.where(x @ v > 0, x @ v, -1),
    ),
    "variable outside": (
        LEAVE + "int i;\n    float s = 0;\n    for (i = 0; i < cols; ++i) s += x[row * cols + i];\n    y[row] = s;",
        lambda x, v, y: x.sum(1),
    ),
    "a stride over rows": (
        "for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {\n    "
        + DOT + "y[row] = s;\n    }",
        lambda x, v, y: x @ v,
    ),
    "a named stride": (
        "const int all = blockDim.x * gridDim.x;\n    "
        "for (int row = threadIdx.x + blockIdx.x * blockDim.x; row < rows; row += all) {\n    "
        + DOT + "y[row] = s;\n    }",
        lambda x, v, y: x @ v,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KERNELS)
def test_every_shape_of_row_gives_what_numpy_gives(case: str) -> None:
    body, golden = KERNELS[case]
    request = ask(kernel(body))
    for candidate in candidates(request, NAME):
        for rows, cols in ((ROWS, COLS), (1, 1), (64, 32), (65, 7)):
            given = numbers(rows, cols)
            y = run(rewritten(request, candidate), request.workload, given, rows=rows, cols=cols)["y"]
            np.testing.assert_array_equal(y, golden(given["x"], given["v"], given["y"]), err_msg=f"{rows} {cols}")


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
def test_any_number_of_lanes(lanes: int) -> None:
    request = ask(kernel(LEAVE + DOT + "y[row] = s;"))
    first = candidates(request, NAME)[0]
    chosen = retune(first, request, {"lanes": lanes})
    assert chosen is not None and dict(chosen.values) == {"lanes": lanes}
    given = numbers()
    y = run(rewritten(request, chosen), request.workload, given, rows=ROWS, cols=COLS)["y"]
    np.testing.assert_array_equal(y, given["x"] @ given["v"])
    assert retune(first, request, {"lanes": 3}) is None


def test_a_softmax_by_rows_stores_along_the_row() -> None:
    request = ask(kernel(LEAVE + SOFTMAX.replace("        z[row * cols + i] = e;\n", "").replace(
        "z[row * cols + i] /= sum", "z[row * cols + i] = expf(x[row * cols + i] - top) / sum")))  # fmt: skip
    x = np.random.default_rng(0).standard_normal((ROWS, COLS)).astype(np.float32)
    for candidate in candidates(request, NAME):
        given = {**numbers(), "x": x}
        z = run(rewritten(request, candidate), request.workload, given, rows=ROWS, cols=COLS)["z"]
        wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        np.testing.assert_allclose(z.reshape(ROWS, COLS), wide / wide.sum(1, keepdims=True), rtol=2e-6)


SPARSE = """\
// cuda-lsp: workload
//   size     rows = 65536, cols = 4096, count = 1048576
//   buffer   first: i32[rows + 1] in offsets(count)
//   buffer   columns: i32[count] in index(cols)
//   buffer   values: f64[count] in
//   buffer   v: f64[cols] in
//   buffer   y: f64[rows] out
//   launch   spmv<<<(rows + 127) / 128, 128>>>(first, columns, values, v, y, rows)
__global__ void spmv(const int* first, const int* columns, const double* values, const double* v, double* y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const int begin = first[row], end = first[row + 1];
        double dot = 0;
        for (int i = begin; i < end; i++)
            dot += values[i] * v[columns[i]];
        y[row] = dot;
    }
}
"""


IN_HEADER = SPARSE.replace("        const int begin = first[row], end = first[row + 1];\n", "").replace(
    "i = begin; i < end;", "i = first[row]; i < first[row + 1];"
)


@pytest.mark.parametrize("text", [SPARSE, IN_HEADER])
def test_sparse_rows_of_any_length(text: str) -> None:
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert dict(candidate.values) == {"lanes": 8}  # 16 elements in a row on average
    generator = np.random.default_rng(3)
    for rows in (1, 129, 300):
        lengths = generator.integers(0, 40, rows)
        first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        count = max(1, int(first[-1]))
        columns = generator.integers(0, 50, count).astype(np.int32)
        values = generator.integers(-5, 6, count).astype(np.float64)
        v = generator.integers(-5, 6, 50).astype(np.float64)
        y = run(
            rewritten(request, candidate), request.workload,
            {"first": first, "columns": columns, "values": values, "v": v}, rows=rows, cols=50, count=count,
        )["y"]  # fmt: skip
        expected = [values[a:b] @ v[columns[a:b]] for a, b in pairwise(first)]
        np.testing.assert_array_equal(y, expected)


def test_the_launches_give_a_team_to_each_row() -> None:
    def grids(text: str) -> list[str]:
        return [str(one.plan.launches()[0].grid[0]) for one in candidates(ask(text), NAME)]

    long = kernel(LEAVE + DOT + "y[row] = s;").replace("cols = 512", "cols = 4096")
    assert grids(long) == ["(rows + 1) / 2", "rows"]
    # No guard names the number of rows: as many teams as there were threads.
    open_ended = ROW + DOT + "y[row] = s;"
    assert grids(kernel(open_ended, grid="rows / 64")) == ["rows / 64 * 32"]
    # A fixed number of threads leaves rows out at other sizes, and shall go on doing so.
    assert grids(kernel(LEAVE + DOT + "y[row] = s;", grid="64")) == ["2048"]
    # Fewer threads than rows: each goes on as before.
    assert grids(kernel(KERNELS["a stride over rows"][0], grid="8")) == ["8"]


REFUSED = {
    "starts with something": (
        LEAVE + "float s = y[row];\n    for (int i = 0; i < cols; i++) s += x[row * cols + i];\n    y[row] = s * 2.0f;",
        "nothing orders the two",
    ),
    "a number that it overwrites": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) s += x[row * cols + i] * y[row];\n    y[row] = s;",
        "nothing orders the two",
    ),
    "columns": (LEAVE + DOT.replace("row * cols + i", "i * rows + row") + "y[row] = s;", "next to that of the neighb"),
    "a window": (LEAVE + DOT.replace("row * cols + i", "row + i") + "y[row] = s;", "next to that of the neighbouring"),
    "a stride for all": (
        LEAVE + DOT.replace("v[i]", "z[i * cols]") + "y[row] = s;",
        "read with a stride along the loop, and all threads",
    ),
    "carried": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) s = s * 0.5f + x[row * cols + i];\n    y[row] = s;",
        "carried from turn to turn",
    ),
    "read while folded": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) { s += x[row * cols + i]; z[row * cols + i] = s; }",
        "is read in the loop",
    ),
    "left early": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) { if (v[i] > 8) break; s += x[row * cols + i]; }\n"
        "    y[row] = s;",
        "is left early",
    ),
    "shifted store": (
        LEAVE + "for (int i = 0; i < cols - 1; ++i) z[row * cols + i] = z[row * cols + i + 1];",
        "may be what another turn writes",
    ),
    "stored and read by another turn": (LEAVE + SOFTMAX, "other lanes will have written"),
    "reads its result": (LEAVE + DOT + "y[row] = s;\n    float q = y[row];\n    z[row] = q;", "one lane alone will"),
    "writes a variable too": (LEAVE + DOT + "float q = 0;\n    y[row] = q = s;", "writes memory and a variable"),
    "the thread index elsewhere": (LEAVE + DOT + "y[row] = s + threadIdx.x;", "`threadIdx.x` is used beside row"),
    "shared memory": ("__shared__ float t[64];\n    " + LEAVE + DOT + "t[0] = s;\n    y[row] = s;", "share memory"),
    "a call": (LEAVE + DOT + 'y[row] = s;\n    printf("x");', "calls `printf`"),
    "index used after": (
        LEAVE + "int i;\n    float s = 0;\n    for (i = 0; i < cols; ++i) s += x[row * cols + i];\n    y[row] = s + i;",
        "is used after the loop",
    ),
    "two operations": (
        LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) { s += x[row * cols + i]; s = fmaxf(s, v[i]); }\n"
        "    y[row] = s;",
        "more than one operation",
    ),
    "few elements": (LEAVE + DOT.replace("i < cols", "i < 3") + "y[row] = s;", "too few to be shared"),
    "an array along": (
        LEAVE + "float s = 0, q[1];\n    for (int i = 0; i < cols; ++i) { s += x[row * cols + i]; q[0] = 1; }\n"
        "    y[row] = q[0];",
        "written in the loop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    body, words = REFUSED[case]
    assert words in refusal(ask(kernel(body)), NAME)


def test_one_buffer_under_two_names() -> None:
    """The same element is fine; another turn's is not."""
    shift = LEAVE + "for (int i = 0; i < cols - 1; ++i) z[row * cols + i] = x[row * cols + i + 1];"
    assert idea_of(ask(kernel(shift)), NAME)
    text = kernel(shift).replace("(x, v, y, z, rows, cols)", "(z, v, y, z, rows, cols)", 1)
    assert "may be what another turn writes" in refusal(ask(text), NAME)


def test_a_narrow_scope_and_odd_blocks_are_refused() -> None:
    text = kernel(LEAVE + DOT + "y[row] = s;")
    assert "needs relaunch" in refusal(ask(text, Scope.DROP_IN), NAME)
    assert "whole number of warps" in refusal(ask(text.replace("64>>>", "48>>>")), NAME)
    assert "more than one dimension" in refusal(ask(text.replace("<<<(rows + 63) / 64,", "<<<dim3(rows, 2),")), NAME)


def test_templates_tabs_and_carriage_returns_stay() -> None:
    text = kernel(LEAVE + DOT + "y[row] = s;").replace("    ", "\t").replace("\n", "\r\n")
    text = text.replace("__global__", "template <typename T>\r\n__global__").replace("float", "T").replace(
        "walk<<<", "walk<float><<<").replace("0.0f", "0")  # fmt: skip
    request = ask(text)
    for candidate in candidates(request, NAME):
        written = rewritten(request, candidate).document.text
        assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
        given = numbers()
        y = run(rewritten(request, candidate), request.workload, given, rows=ROWS, cols=COLS)["y"]
        np.testing.assert_array_equal(y, given["x"] @ given["v"])


def test_only_what_must_change_changes() -> None:
    request = ask(kernel(LEAVE + DOT + "y[row] = s;  // done"))
    changed = [line for line in diff(request, candidates(request, NAME)[0]).split("\n") if line.startswith("-    ")]
    assert len(changed) == 3


def test_a_function_that_only_computes_may_be_called() -> None:
    helper = "__device__ float twice(float v) { return v + v; }\n\n"
    body = LEAVE + "float s = 0;\n    for (int i = 0; i < cols; ++i) s += twice(x[row * cols + i]);\n    y[row] = s;"
    request = ask(kernel(body, head=helper))
    given = numbers()
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, given, rows=ROWS, cols=COLS)["y"]
        np.testing.assert_array_equal(y, 2 * given["x"].sum(1))
    asks = helper.replace("v + v", "v + threadIdx.x")
    assert "calls `twice`" in refusal(ask(kernel(body, head=asks)), NAME)
