"""Threads with several outputs compute what threads with one did; what is no product is left alone."""

import numpy as np
import numpy.typing as npt
import pytest

from agent.ideas.idea import Candidate, Scope
from agent.ideas.source import Request, retune
from tests.ideas.running import ask, candidates, idea_of, refusal, rewritten, run

NAME = "register-blocking"
Matrix = npt.NDArray[np.float32]


def matmul(**changes: str) -> str:
    """c = a b with rows along x or y, whole or split indices, and other parts replaced."""
    parts = {
        "index": "int col = blockIdx.x * 16 + threadIdx.x;\n    int row = blockIdx.y * blockDim.y + threadIdx.y;",
        "guard": "if (row >= m || col >= n) return;",
        "before": "float sum = 0.0f;",
        "loop": "for (int i = 0; i < k; ++i)",
        "update": "sum += a[row * k + i] * b[i * n + col];",
        "after": "c[row * n + col] = sum;",
        "launch": "multiply<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)",
        "sizes": "m = 200, n = 150, k = 40",
        "inout": "out",
        **changes,
    }
    return """\
// cuda-lsp: workload
//   size     {sizes}
//   buffer   a: f32[m * k] in
//   buffer   b: f32[k * n] in
//   buffer   c: f32[m * n] {inout}
//   launch   {launch}
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {{
    {index}
    {guard}
    {before}
    {loop} {{
        {update}
    }}
    {after}
}}
""".format(**parts)


def inputs(m: int, n: int, k: int) -> dict[str, Matrix]:
    generator = np.random.default_rng(m + n + k)
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    return {name: generator.integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}


def retuned(request: Request, candidate: Candidate, **values: int) -> Candidate:
    found = retune(candidate, request, values)
    assert found is not None
    return found


def product(request: Request, candidate: Candidate, m: int, n: int, k: int) -> tuple[dict[str, Matrix], Matrix]:
    given = inputs(m, n, k)
    answer = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
    return given, answer.reshape(m, n)


SHAPES = [(1, 1, 1), (70, 33, 5), (64, 128, 16), (131, 67, 19)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_product_stays_a_product(shape: tuple[int, int, int]) -> None:
    request = ask(matmul())
    (candidate,) = candidates(request, NAME)
    given, answer = product(request, candidate, *shape)
    np.testing.assert_array_equal(answer, given["a"] @ given["b"])


@pytest.mark.parametrize("values", [(2, 2, 8), (8, 8, 16), (6, 4, 8), (2, 8, 16), (4, 6, 8)], ids=str)
def test_every_tunable_is_right(values: tuple[int, int, int]) -> None:
    request = ask(matmul())
    (candidate,) = candidates(request, NAME)
    rows, cols, step = values
    tuned = retuned(request, candidate, own_rows=rows, own_cols=cols, step=step)
    (launch,) = tuned.plan.launches()
    assert str(launch.grid[1]) == f"(m + {16 * rows - 1}) / {16 * rows}" and str(launch.block[0]) == "256"
    given, answer = product(request, tuned, 70, 90, 21)
    np.testing.assert_array_equal(answer, given["a"] @ given["b"])


def test_a_value_that_no_tunable_has_is_refused() -> None:
    request = ask(matmul())
    (candidate,) = candidates(request, NAME)
    assert retune(candidate, request, {"own_rows": 3}) is None


FLAT = "multiply<<<(m * n + 255) / 256, 256>>>(a, b, c, m, n, k)"
SPELLINGS = {
    "rows along x": {
        "index": "int row = blockIdx.x * 16 + threadIdx.x;\n    const int col = blockIdx.y * 16 + threadIdx.y;",
        "launch": "multiply<<<dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)",
    },
    "names for the indices": {
        "index": "int tx = threadIdx.x, bx = blockIdx.x;\n    int col = bx * blockDim.x + tx;\n"
        "    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;",
    },
    "one index": {
        "index": "int at = blockIdx.x * blockDim.x + threadIdx.x;\n    int row = at / n;\n    int col = at % n;",
        "guard": "if (at >= m * n) return;",
        "after": "c[at] = sum;",
        "launch": FLAT,
    },
    "what is left of one index": {
        "index": "int at = blockIdx.x * blockDim.x + threadIdx.x;\n    int row = at / n;\n    int col = at - row * n;",
        "guard": "if (row >= m) return;",
        "launch": FLAT,
    },
    "a block for each row": {
        "index": "int row = blockIdx.y;\n    int col = blockIdx.x * blockDim.x + threadIdx.x;",
        "guard": "if (col >= n) return;",
        "launch": "multiply<<<dim3((n + 63) / 64, m), 64>>>(a, b, c, m, n, k)",
    },
    "in the result itself": {
        "before": "c[row * n + col] = 0.0f;",
        "update": "c[row * n + col] += a[row * k + i] * b[i * n + col];",
        "after": "",
    },
    "fused and through locals": {
        "before": "float sum = 0;\n    const float* mine = a + row * k;",
        "update": "float x = mine[i];\n        float y = __ldg(&b[i * n + col]);\n        sum = fmaf(x, y, sum);",
    },
    "up to and with": {"loop": "for (unsigned i = 0; i <= k - 1; i++)"},
    "under a condition": {
        "guard": "if (row < m && n > col)",
        "before": "{\n    float sum = 0.0f;",
        "after": "c[row * n + col] = sum;\n    }",
    },
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_a_product(spelling: str) -> None:
    changes = dict(SPELLINGS[spelling])
    if "__ldg" in changes.get("update", ""):
        changes["update"] = changes["update"].replace("__ldg(&b[i * n + col])", "b[i * n + col]")
    request = ask(matmul(**changes))
    (candidate,) = candidates(request, NAME)
    for shape in ((70, 33, 5), (17, 81, 18)):
        given, answer = product(request, candidate, *shape)
        np.testing.assert_array_equal(answer, given["a"] @ given["b"])


def test_what_is_done_with_the_result_is_kept() -> None:
    text = matmul(
        before="float sum = b[col];\n    float old = c[row * n + col];",
        after="// mix with what was there\n    sum *= 2.0f;\n    c[row * n + col] = sum - 3.0f * old + a[row * k];",
        inout="inout",
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert "// mix with what was there" in candidate.code
    given, answer = product(request, candidate, 65, 33, 9)
    a, b, c = given["a"], given["b"], given["c"]
    np.testing.assert_array_equal(answer, 2 * (b[0][None, :] + a @ b) - 3 * c + a[:, :1])


def test_a_fold_that_is_no_product_counts_its_turns() -> None:
    """The least distance: a turn of zeros beyond the last would give a wrong one."""
    request = ask(
        matmul(before="float sum = 1e30f;", update="sum = fminf(sum, fabsf(a[row * k + i] - b[i * n + col]) + 1.0f);")
    )
    (candidate,) = candidates(request, NAME)
    for shape in ((70, 33, 5), (17, 81, 18)):
        given, answer = product(request, candidate, *shape)
        apart = np.abs(given["a"][:, :, None] - given["b"][None]) + 1
        np.testing.assert_array_equal(answer, apart.min(axis=1))


BATCHED = """\
// cuda-lsp: workload
//   size     batch = 3, m = 70, n = 50, k = 12
//   buffer   a: f64[batch * k * m] in
//   buffer   b: f64[batch * n * k] in
//   buffer   c: f64[batch * m * n] out
//   launch   both_turned<<<dim3((n + 7) / 8, (m + 7) / 8, batch), dim3(8, 8)>>>(a, b, c, m, n, k)
__global__ void both_turned(const double* a, const double* b, double* c, int m, int n, int k) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int layer = blockIdx.z;
    if (i < m && j < n) {
        double total = 0;
        for (int p = 0; p < k; p++) total += a[(layer * k + p) * m + i] * b[(layer * n + j) * k + p];
        c[(layer * m + i) * n + j] = total;
    }
}
"""


@pytest.mark.parametrize("sizes", [{"batch": 1, "m": 33, "n": 65, "k": 7}, {"batch": 2, "m": 5, "n": 70, "k": 20}])
def test_batches_of_transposed_doubles(sizes: dict[str, int]) -> None:
    request = ask(BATCHED)
    (candidate,) = candidates(request, NAME)
    batch, m, n, k = sizes.values()
    generator = np.random.default_rng(4)
    a, b = generator.integers(-9, 9, (batch, k, m)) / 1.0, generator.integers(-9, 9, (batch, n, k)) / 1.0
    c = run(rewritten(request, candidate), request.workload, {"a": a, "b": b}, **sizes)["c"]
    np.testing.assert_array_equal(c.reshape(batch, m, n), np.einsum("lpi,ljp->lij", a, b))


FMA = "sum += a[row * k + i] * b[i * n + col];"
GRID = "multiply<<<dim3((n + 15) / 16, {}), dim3(16, 16)>>>({}, b, c, m, n, k)"
REFUSED = {
    "its own range": ("depends on the thread", {"loop": "for (int i = 0; i < row; ++i)"}),
    "both": ("do not fall into two", {"update": "sum += a[row * k + i] * b[row * k + i];"}),
    "a row alone": ("do not fall into two", {"update": "sum += a[row * k + i];"}),
    "leaves": ("header alone", {"update": f"if (a[row * k + i] < 0) break;\n {FMA}"}),
    "condition on both": ("both operands", {"update": f"if (row + i < col) {FMA}"}),
    "written": ("read in the loop and written", {"update": "sum += c[row * k + i] * b[i * n + col];"}),
    "the index itself": ("more than to find an operand", {"update": f"{FMA[:-1]} * col;"}),
    "loaded index": ("loaded data", {"update": "sum += a[row * k + i] * b[(int)a[i] * n + col];"}),
    "half of the grid": ("hand out", {"launch": GRID.format("(m + 15) / 32", "a")}),
    "same work twice": ("differ along z", {"launch": GRID.format("(m + 15) / 16, 2", "a")}),
    "in place": ("operand and as the result", {"launch": GRID.format("(m + 15) / 16", "c")}),
    "shuffles": ("works on the warp", {"update": f"{FMA}\n sum += __shfl_xor_sync(~0u, sum, 1);"}),
    "stored on the way": ("written in the loop", {"update": f"{FMA}\n c[i] = sum;"}),
    "few": ("too few for tiles", {"sizes": "m = 8, n = 8, k = 40"}),
    "a short loop": ("too few to pay", {"sizes": "m = 200, n = 200, k = 3"}),
    "a bare index": ("outside the definition", {"after": "c[row * n + col] = sum + threadIdx.x;"}),
    "used behind": (
        "behind its loop",
        {"before": "float sum = 0;\n int i;", "loop": "for (i = 0; i < k; ++i)", "after": "c[row * n + col] = i;"},
    ),
}


@pytest.mark.parametrize("near", REFUSED)
def test_near_misses(near: str) -> None:
    words, changes = REFUSED[near]
    assert words in refusal(ask(matmul(**changes)), NAME)


def test_it_needs_other_launches() -> None:
    assert "relaunch" in refusal(ask(matmul(), Scope.DROP_IN), NAME)
    assert idea_of(ask(matmul(), Scope.RELAUNCH), NAME).scope is Scope.RELAUNCH


def test_tabs_are_kept() -> None:
    request = ask(matmul().replace("    ", "\t").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    inside = [line for line in candidate.code.split("\n")[1:] if line and line[0] not in "#}"]
    assert all(line.startswith("\t") for line in inside)
    text = rewritten(request, candidate).document.text
    assert b"\r\n" in text and not text.replace(b"\r\n", b"").count(b"\n")
    given, answer = product(request, candidate, 33, 18, 6)
    np.testing.assert_array_equal(answer, given["a"] @ given["b"])


CONVOLUTION = """\
const int SIZE = {size};
// cuda-lsp: workload
//   size     images = 2, channels = 20, filters = 30, height = 11, width = 13
//   buffer   x: f32[images * channels * height * width] in
//   buffer   weight: f32[filters * channels * {size} * {size}] in
//   buffer   bias: f32[filters] in
//   buffer   y: f32[images * filters * height * width] out
//   launch   convolve<<<dim3((width + 7) / 8, (height + 7) / 8, images * filters), dim3(8, 8)>>>({arguments})
__global__ void convolve(const float* x, const float* weight, const float* bias, float* y, int channels, int filters,
                         int height, int width) {{
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    int h = blockIdx.y * blockDim.y + threadIdx.y;
    int filter = blockIdx.z % filters;
    int image = blockIdx.z / filters;
    if (w >= width || h >= height) return;
    float sum = bias[filter];
    for (int c = 0; c < channels; ++c) {{
        for (int i = 0; i < SIZE; ++i) {{
            int from = h + i - SIZE / 2;
            if (from < 0 || from >= height) continue;
            for (int j = 0; j < SIZE; ++j) {{
                int at = w + j - SIZE / 2;
                if (at >= 0 && at < width)
                    sum += x[((image * channels + c) * height + from) * width + at] *
                           weight[((filter * channels + c) * SIZE + i) * SIZE + j];
            }}
        }}
    }}
    y[((image * filters + filter) * height + h) * width + w] = fmaxf(sum, 0.0f);
}}
"""


@pytest.mark.parametrize("size", [3, 9])
def test_a_convolution(size: int) -> None:
    """Small filters are cut along the channels, wide ones along their rows; padding becomes zeros."""
    text = CONVOLUTION.format(size=size, arguments="x, weight, bias, y, channels, filters, height, width")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert ("first_c = 0" in candidate.code) == (size == 3)
    images, channels, filters, height, width = sizes = 2, 10, 19, 6, 7
    generator = np.random.default_rng(size)
    x = generator.integers(-3, 4, (images, channels, height, width)).astype(np.float32)
    weight = generator.integers(-3, 4, (filters, channels, size, size)).astype(np.float32)
    bias = generator.integers(-3, 4, filters).astype(np.float32)
    named = dict(zip(("images", "channels", "filters", "height", "width"), sizes, strict=True))
    y = run(rewritten(request, candidate), request.workload, {"x": x, "weight": weight, "bias": bias}, **named)["y"]
    half = size // 2
    padded = np.pad(x, ((0, 0), (0, 0), (half, half), (half, half)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3))
    expected = np.einsum("nchwij,fcij->nfhw", windows, weight) + bias[None, :, None, None]
    np.testing.assert_array_equal(y.reshape(expected.shape), np.maximum(expected, 0))
