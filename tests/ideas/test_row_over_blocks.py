"""Rows that one block walks over are dealt out to many blocks: right for every reduction, refused where blocks would
see each other's work."""

import re

import numpy as np
import pytest

from agent.ideas.idea import Candidate, Scope
from agent.ideas.request import Request
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, refusal, rewritten, run

NAME = "row-over-blocks"
THREADS = 64


def kernel(body: str, *, head: str = "", launch: str = "walk<<<rows, 64>>>(x, v, y, z, rows, cols)") -> str:
    """``x`` and ``z`` are rows x cols, ``v`` has cols elements, ``y`` one a row."""
    return f"""\
// cuda-lsp: workload
//   size     rows = 64, cols = 262144
//   buffer   x: f32[rows * cols] in
//   buffer   v: f32[cols] in
//   buffer   y: f32[rows] inout
//   buffer   z: f32[rows * cols] inout
//   launch   {launch}
{head}__global__ void walk(const float* x, const float* v, float* y, float* z, int rows, int cols) {{
    __shared__ float s[64];
    const int t = threadIdx.x;
    const float* in = x + (size_t)blockIdx.x * cols;
    float* out = z + (size_t)blockIdx.x * cols;
    {body}
}}
"""


def tree(value: str, fold: str = "s[t] += s[t + h]") -> str:
    return f"""s[t] = {value};
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {{
        if (t < h) {fold};
        __syncthreads();
    }}
    """


LOOP = "for (int i = t; i < cols; i += blockDim.x)"
SUM = f"float sum = 0.0f;\n    {LOOP} sum += in[i];\n    "
MEAN = SUM + tree("sum") + "float mean = s[0] / cols;\n    __syncthreads();\n    "
MAX = f"float top = -INFINITY;\n    {LOOP} {{\n        top = fmaxf(top, in[i]);\n    }}\n    "
SOFTMAX = f"""{MAX}{tree("top", "s[t] = fmaxf(s[t], s[t + h])")}top = s[0];
    __syncthreads();
    float sum = 0.0f;
    {LOOP} sum += expf(in[i] - top);
    {tree("sum")}{LOOP} out[i] = expf(in[i] - top) / s[0];"""
STORED = f"""{MAX}{tree("top", "s[t] = fmaxf(s[t], s[t + h])")}top = s[0];
    __syncthreads();
    float sum = 0.0f;
    #pragma unroll 4
    {LOOP} {{
        float e = expf(in[i] - top);
        out[i] = e;
        sum += e;
    }}
    {tree("sum")}float total = s[0];
    {LOOP} out[i] /= total;
    if (t == 0) y[blockIdx.x] = total;"""


def softmax(x: np.ndarray) -> np.ndarray:
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return wide / wide.sum(1, keepdims=True)


def sizes_of(request: Request) -> list[Candidate]:
    """The rewrite with few, and with more blocks for a row."""
    (first,) = candidates(request, NAME)
    made = [retune(first, request, {"parts": parts}) for parts in first.tunables[0].values[:2]]
    return [one for one in made if one is not None]


def results(text: str, x: np.ndarray, v: np.ndarray | None = None) -> list[dict[str, np.ndarray]]:
    request = ask(text)
    rows, cols = x.shape
    given = {"x": x, "v": np.ones(cols, np.float32) if v is None else v}
    given |= {"y": np.zeros(rows, np.float32), "z": np.zeros((rows, cols), np.float32)}
    return [
        run(rewritten(request, candidate), request.workload, given, rows=rows, cols=cols)
        for candidate in sizes_of(request)
    ]


def whole(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(rows + cols).integers(-9, 10, (rows, cols)).astype(np.float32)


SHAPES = ((2, 1500), (1, 1), (3, 64), (1, 257))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", ["kept in shared memory", "stored on the way"])
def test_a_softmax_of_few_rows(case: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    text = kernel(SOFTMAX if case == "kept in shared memory" else STORED)
    for made in results(text, x):
        np.testing.assert_allclose(made["z"].reshape(shape), softmax(x), rtol=3e-6)
        if case == "stored on the way":
            expected = np.exp(x.astype(np.float64) - x.max(1, keepdims=True)).sum(1)
            np.testing.assert_allclose(made["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_centred_rows(shape: tuple[int, int]) -> None:
    x = whole(*shape)
    for made in results(kernel(MEAN + f"{LOOP} out[i] = in[i] - mean;"), x):
        expected = x - (x.sum(1) / np.float32(shape[1])).astype(np.float32)[:, None]
        np.testing.assert_array_equal(made["z"].reshape(shape), expected)


DOTS = f"""float dot = 0.0f, low = 1e30f;
    {LOOP} {{
        dot += in[i] * v[i];
        low = fminf(low, in[i]);
    }}
    {tree("dot")}dot = s[0];
    __syncthreads();
    {tree("low", "s[t] = fminf(s[t], s[t + h])")}low = s[0];
    if (t == 0) y[blockIdx.x] = dot + low;"""


@pytest.mark.parametrize("shape", SHAPES)
def test_two_accumulators_and_no_pass_behind(shape: tuple[int, int]) -> None:
    x, v = whole(*shape), np.arange(shape[1], dtype=np.float32) % 5
    request = ask(kernel(DOTS))
    for candidate in sizes_of(request):
        last = candidate.plan.launches()[-1]
        assert str(last.grid[1]) == "1"  # nothing is left to share
    for made in results(kernel(DOTS), x, v):
        np.testing.assert_array_equal(made["y"], x @ v + x.min(1))


HELPER = """\
__device__ float everywhere(float value, float* slots) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = slots[0] + slots[1];
    __syncthreads();
    return value;
}

"""


def with_helper(body: str) -> str:
    text = kernel(body)
    return HELPER + text


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reduction_that_is_not_understood_keeps_its_threads(shape: tuple[int, int]) -> None:
    x = whole(*shape)
    text = with_helper(SUM + f"float mean = everywhere(sum, s) / cols;\n    {LOOP} out[i] = in[i] - mean;")
    for candidate in sizes_of(ask(text)):
        assert len(candidate.plan.launches()) == 3  # partial results, their totals, the rest
    for made in results(text, x):
        expected = x - (x.sum(1) / np.float32(shape[1])).astype(np.float32)[:, None]
        np.testing.assert_array_equal(made["z"].reshape(shape), expected)


def test_after_the_mean_and_the_variance_were_fused() -> None:
    squares = f"float q = 0.0f;\n    {LOOP} q += (in[i] - mean) * (in[i] - mean);\n    "
    request = ask(kernel(MEAN + squares + tree("q") + f"{LOOP} out[i] = (in[i] - mean) * rsqrtf(s[0] / cols + 1e-5f);"))
    x = np.random.default_rng(4).standard_normal((2, 700)).astype(np.float32)
    given = {"x": x, "v": x[0], "y": np.zeros(2, np.float32), "z": np.zeros_like(x)}
    shifted = next(one for one in candidates(request, "fused-row-passes") if one.variant == "shifted sums")
    following = after(request, shifted)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    for candidate in sizes_of(following):
        z = run(rewritten(following, candidate), request.workload, given, rows=2, cols=700)["z"]
        np.testing.assert_allclose(z.reshape(2, 700), expected, rtol=1e-4, atol=1e-5)


def test_in_place_the_elements_stay_apart() -> None:
    """Blocks write what others of the row have read in an earlier launch."""
    text = kernel(MEAN.replace("in[i]", "out[i]") + f"{LOOP} out[i] -= mean;")
    request = ask(text)
    x = whole(2, 900)
    given = {"x": x, "v": x[0], "y": np.zeros(2, np.float32), "z": x}
    for candidate in sizes_of(request):
        z = run(rewritten(request, candidate), request.workload, given, rows=2, cols=900)["z"]
        expected = x - (x.sum(1) / np.float32(900)).astype(np.float32)[:, None]
        np.testing.assert_array_equal(z.reshape(2, 900), expected)


def test_inside_an_if_with_a_bound() -> None:
    body = f"if (blockIdx.x < rows) {{\n    {MEAN}{LOOP} out[i] = in[i] - mean;\n    }}"
    x = whole(2, 300)
    for made in results(kernel(body), x):
        expected = x - (x.sum(1) / np.float32(300)).astype(np.float32)[:, None]
        np.testing.assert_array_equal(made["z"].reshape(2, 300), expected)


def test_a_repeat_in_the_plan_keeps_its_order() -> None:
    text = kernel(
        MEAN.replace("in[i]", "out[i]") + f"{LOOP} out[i] = out[i] * 2.0f - mean;",
        launch="repeat 3 {\n//     walk<<<rows, 64>>>(x, v, y, z, rows, cols)\n//   }",
    )
    request = ask(text.replace("launch   repeat", "repeat").replace("//     walk<<<", "//     launch walk<<<"))
    z = np.random.default_rng(5).integers(0, 3, (2, 256)).astype(np.float32)
    given = {"x": z, "v": z[0], "y": np.zeros(2, np.float32), "z": z}
    expected = z.astype(np.float64)
    for _ in range(3):
        expected = expected * 2 - expected.mean(1, keepdims=True)
    for candidate in sizes_of(request):
        made = run(rewritten(request, candidate), request.workload, given, rows=2, cols=256)["z"]
        np.testing.assert_allclose(made.reshape(2, 256), expected, rtol=1e-5, atol=1e-5)


def test_blocks_without_a_row_leave_no_noise() -> None:
    mean = f"float mean = everywhere(sum, s) / cols;\n    {LOOP} out[i] = in[i] - mean;"
    body = "if (blockIdx.x >= rows) return;\n    " + SUM + mean
    text = HELPER + kernel(body).replace("walk<<<rows, 64>>>", "walk<<<rows + 3, 64>>>")
    x = whole(2, 500)
    for made in results(text, x):
        expected = x - (x.sum(1) / np.float32(500)).astype(np.float32)[:, None]
        np.testing.assert_array_equal(made["z"].reshape(2, 500), expected)


REFUSED = {
    "some threads leave": (
        kernel("if (t >= cols) return;\n    " + SUM + tree("sum") + f"{LOOP} out[i] = in[i] - s[0];"), "may return"),
    "many rows": (kernel(SOFTMAX).replace("rows = 64", "rows = 65536"), "fill the card already"),
    "short rows": (kernel(SOFTMAX).replace("cols = 262144", "cols = 500"), "too short"),
    "no reduction": (kernel(f"{LOOP} out[i] = in[i];"), "no loop of a block folds a row"),
    "not by turns": (kernel(SUM.replace("i = t;", "i = 0;").replace("i += blockDim.x", "++i") + tree("sum")),
                     "not shared by the threads"),
    "not from zero": (kernel(MEAN.replace("0.0f", "1.0f") + f"{LOOP} out[i] = in[i] - mean;"), "is neutral"),
    "neighbours in place": (
        kernel(MEAN + f"{LOOP} out[i] = in[i] - mean;\n    {LOOP} out[i] = out[cols - 1 - i];"),
        "may be what another turn writes",
    ),
    "another loop's elements": (
        kernel(MEAN + f"{LOOP} out[i] = in[i] - mean;\n    __syncthreads();\n    "
               "for (int i = t; i < cols - 1; i += blockDim.x) ((float*)v)[i] = out[i + 1];"),
        "",
    ),
    "the first element again": (
        kernel(MEAN.replace("in[i]", "out[i]") + f"const float first = out[0];\n    {LOOP} out[i] -= first + mean;"),
        "may be read while another block writes it",
    ),
    "written before": (
        kernel(MEAN + f"if (t == 0) y[blockIdx.x] = mean;\n    float q = 0.0f;\n    {LOOP} q += in[i] * mean;\n    "
               + tree("q") + "if (t == 0) y[blockIdx.x] += s[0];"),
        "written before the last reduction",
    ),
    "an unknown call": (kernel(MEAN + f'{LOOP} out[i] = in[i] - mean;\n    printf("x");'), "calls `printf`"),
    "inside a loop": (
        kernel(f"for (int k = 0; k < 2; ++k) {{\n    {MEAN}{LOOP} out[i] = in[i] - mean + k;\n    }}"),
        "is not shared by the threads of a block",
    ),
    "two launches": (
        kernel(SOFTMAX, launch="walk<<<rows, 64>>>(x, v, y, z, rows, cols)\n"
               "//   launch   walk<<<rows, 64>>>(x, v, y, z, rows, cols)"),
        "launch this kernel once",
    ),
    "a grid of two dimensions": (kernel(SOFTMAX).replace("<<<rows,", "<<<dim3(rows, 2),"), "more than one dimension"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_a_narrow_scope_is_not_enough() -> None:
    assert "needs plan" in refusal(ask(kernel(SOFTMAX), Scope.RELAUNCH), NAME)


def test_tabs_and_carriage_returns_stay() -> None:
    text = kernel(SOFTMAX).replace("    ", "\t").replace("\n", "\r\n")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    written = rewritten(request, candidate).document.text
    assert written.count(b"\r\n") == written.count(b"\n")
    assert not re.search(rb"\n {4}\S", written)  # parameters are aligned by blanks
