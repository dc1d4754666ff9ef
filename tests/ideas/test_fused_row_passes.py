"""Fused passes agree with float64 NumPy wherever they apply, and are refused where they are not what they seem."""

import numpy as np
import pytest

from agent.ideas.source import Request, retune
from agent.workload.program import Program
from tests.ideas.running import Array, after, ask, candidates, refusal, rewritten, run

NAME = "fused-row-passes"

TREE = """s[t] = VALUE;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {
        if (t < h) s[t] = FOLD;
        __syncthreads();
    }"""
MAX_TREE = TREE.replace("FOLD", "fmaxf(s[t], s[t + h])")
SUM_TREE = TREE.replace("FOLD", "s[t] + s[t + h]")


def block(body: str, parameters: str = "const float* x, float* y, int rows, int cols") -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 3, cols = 1000
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   rowwise<<<rows, 64>>>(x, y, rows, cols)
__global__ void rowwise({parameters}) {{
    __shared__ float s[64];
    const int t = threadIdx.x;
    const float* in = x + blockIdx.x * cols;
    float* out = y + blockIdx.x * cols;
{body}
}}
"""


def softmax(max_pass: str, sum_pass: str, last: str = "out[i] = expf(in[i] - m) / total;", between: str = "") -> str:
    return block(f"""\
    float top = -INFINITY;
    for (int i = t; i < cols; i += blockDim.x) {max_pass}
    {MAX_TREE.replace("VALUE", "top")}
    float m = s[0];
    __syncthreads();
    {between}
    float sum = 0.f;
    for (int i = t; i < cols; i += blockDim.x) {sum_pass}
    {SUM_TREE.replace("VALUE", "sum")}
    float total = s[0];
    for (int i = t; i < cols; i += blockDim.x) {last}""")


SOFTMAX = {
    "plain": softmax("top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);"),
    "braces": softmax("{\n        top = fmaxf(in[i], top);\n    }", "{ sum = sum + expf(in[i] - m); }"),
    "guarded maximum": softmax("if (in[i] > top) top = in[i];", "sum += __expf(in[i] - m);"),
    "named element": softmax(
        "{ float v = in[i]; top = v > top ? v : top; }", "{ float v = in[i]; sum += expf(v - m); }"
    ),
    "stored": softmax(
        "top = max(top, in[i]);", "{ float e = expf(in[i] - m); out[i] = e; sum += e; }", "out[i] /= total;"
    ),
    "stored, read back": softmax(
        "top = max(top, in[i]);", "{ out[i] = expf(in[i] - m); sum += out[i]; }", "out[i] = out[i] / total;"
    ),
    "stored, other name": softmax(
        "top = max(top, in[i]);", "{ out[i] = expf(in[i] - m); sum += out[i]; }", "@"
    ).replace(
        "for (int i = t; i < cols; i += blockDim.x) @",
        "for (int k = t; k < cols; k += blockDim.x) out[k] *= 1.0f / total;",
    ),
    "scaled": softmax(
        "top = fmaxf(top, in[i] * 0.5f);", "sum += expf(in[i] * 0.5f - m);", "out[i] = expf(in[i] * 0.5f - m) / total;"
    ),
    "same variables": softmax(
        "top = fmaxf(top, in[i]);", "sum += expf(in[i] - top);", "out[i] = expf(in[i] - top) / sum;"
    )
    .replace("float m = s[0];", "top = s[0];")
    .replace("float total = s[0];", "sum = s[0];"),
    "started above": softmax("top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);")
    .replace("    float sum = 0.f;\n", "")
    .replace("float top = -INFINITY;", "float top = -INFINITY, sum = 0;"),
    "another buffer written between": softmax(
        "top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);", between="if (t == 0) out[0] = m;"
    ),
    "set between": softmax("top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);")
    .replace("float sum = 0.f;", "sum = 0.0f;")
    .replace("float top = -INFINITY;", "float top = -INFINITY, sum;"),
}

ROW = """\
// cuda-lsp: workload
//   size     rows = 3, cols = 1000
//   buffer   x: f64[rows * cols] in
//   buffer   y: f64[rows * cols] out
//   launch   softmaxRows<<<1, 32>>>(x, y, rows, cols)
__global__ void softmaxRows(const double* x, double* y, int rows, int cols)
{
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
  {
    double m = -1e300;
    for (int i = 0; i < cols; ++i)
      m = max(m, x[row * cols + i]);
    double total = 0.0;
    #pragma unroll 4
    for (int j = 0; j < cols; ++j)
    {
      const double e = exp(x[row * cols + j] - m);
      y[row * cols + j] = e;
      total += e;
    }
    for (int k = 0; k < cols; ++k)
      y[row * cols + k] /= total;
  }
}
"""


def exact_softmax(x: Array) -> Array:
    weights: Array = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def families(cols: int) -> dict[str, Array]:
    generator = np.random.default_rng(cols)
    normal = generator.standard_normal((3, cols)).astype(np.float32) * 4
    masked = np.where(np.arange(cols) % 3 == 0, normal, -np.inf).astype(np.float32)
    return {
        "normal": normal,
        "rising": np.sort(normal, axis=1),
        "falling": -np.sort(-normal, axis=1),
        "far": normal + np.float32(1e4),
        "constant": np.full((3, cols), 2.5, np.float32),
        "masked": masked,
        "spike": np.where(np.arange(cols) == cols // 2, np.float32(80), normal),
    }


@pytest.mark.parametrize("case", SOFTMAX)
def test_softmax_in_one_pass_less(case: str) -> None:
    request = ask(SOFTMAX[case])
    for candidate in candidates(request, NAME):
        for cols in (1, 63, 64, 65, 500):
            for family, x in families(cols).items():
                x = x * np.float32(2) if case == "scaled" else x
                y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=cols)["y"]
                expected = exact_softmax(x * np.float32(0.5) if case == "scaled" else x)
                np.testing.assert_allclose(
                    y.reshape(3, cols), expected, rtol=3e-5, atol=1e-12, err_msg=f"{family} {cols}"
                )
            if case not in ("plain", "stored"):
                break


def batches(request: Request, size: int) -> Program:
    (candidate,) = [one for one in candidates(request, NAME) if one.variant == "in batches"]
    tuned = retune(candidate, request, {"size": size})
    assert tuned is not None
    return rewritten(request, tuned)


@pytest.mark.parametrize("size", [2, 16])
def test_batches_of_every_size(size: int) -> None:
    made = batches(ask(SOFTMAX["plain"]), size)
    for cols in (1, 127, 128, 129, 1025):
        for family in ("normal", "rising", "masked", "spike"):
            x = families(cols)[family]
            y = run(made, ask(SOFTMAX["plain"]).workload, {"x": x}, rows=3, cols=cols)["y"].reshape(3, cols)
            np.testing.assert_allclose(y, exact_softmax(x), rtol=3e-5, atol=1e-12, err_msg=f"{family} {cols}")


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_a_row_with_one_that_is_no_number(special: float) -> None:
    """It spreads over its own row, as in three passes, and over no other; also where a thread sees nothing else."""
    request = ask(SOFTMAX["plain"])
    for cols in (3, 200):
        x = families(cols)["normal"]
        x[1, 2] = special
        y = run(batches(request, 8), request.workload, {"x": x}, rows=3, cols=cols)["y"].reshape(3, cols)
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


def test_later_passes_come_in_batches_too() -> None:
    text = SOFTMAX["plain"]
    assert batches(ask(text), 8).document.text.count(b"float values[8];") == 2
    moved = text.replace("out[i] =", "x[(i + cols / 2) % cols] =").replace("const float* ", "float* ")
    moved = moved.replace("x: f32[rows * cols] in", "x: f32[rows * cols] inout")
    assert batches(ask(moved), 8).document.text.count(b"float values[8];") == 1  # may write what it reads next


def test_softmax_by_one_thread_a_row() -> None:
    request = ask(ROW)
    for candidate in candidates(request, NAME):
        assert "#pragma unroll 4" not in candidate.code
        for cols in (1, 2, 97):
            for x in families(cols).values():
                y = run(
                    rewritten(request, candidate), request.workload, {"x": x.astype(np.float64)}, rows=3, cols=cols
                )["y"]
                np.testing.assert_allclose(y.reshape(3, cols), exact_softmax(x), rtol=1e-13, atol=1e-300)


def layer_norm(sum_pass: str, square_pass: str) -> str:
    return block(f"""\
    float sum = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) {sum_pass}
    {SUM_TREE.replace("VALUE", "sum")}
    float mean = s[0] / cols;
    __syncthreads();
    float squares = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) {square_pass}
    {SUM_TREE.replace("VALUE", "squares")}
    float scale = rsqrtf(s[0] / cols + 1e-5f);
    for (int i = t; i < cols; i += blockDim.x) out[i] = (in[i] - mean) * scale;""")


NORMS = {
    "named difference": layer_norm(
        "{\n        sum += in[i];\n    }", "{\n        float d = in[i] - mean;\n        squares += d * d;\n    }"
    ),
    "written out": layer_norm("sum += in[i];", "squares += (in[i] - mean) * (in[i] - mean);"),
    "power": layer_norm("sum = in[i] + sum;", "squares += powf(in[i] - mean, 2.0f);"),
    "named element": layer_norm(
        "{ const float v = in[i]; sum += v; }", "{ const float v = in[i]; squares += (v - mean) * (v - mean); }"
    ),
}


@pytest.mark.parametrize("case", NORMS)
def test_variance_in_one_pass_less(case: str) -> None:
    request = ask(NORMS[case])
    for candidate in candidates(request, NAME):
        for cols in (1, 63, 64, 65, 500):
            generator = np.random.default_rng(cols)
            for shift in (0, 100):
                x = (generator.standard_normal((3, cols)) + shift).astype(np.float32)
                y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=cols)["y"]
                wide = x.astype(np.float64)
                expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
                # The mean itself carries an error of a few ulp of the elements, as in the original.
                np.testing.assert_allclose(y.reshape(3, cols), expected, rtol=1e-4, atol=2e-5 * (1 + shift))


def fused_after_shuffles(text: str) -> tuple[Request, list[str]]:
    request = ask(text)
    following = after(request, candidates(request, "warp-shuffle-reduction")[0])
    return following, [candidate.variant for candidate in candidates(following, NAME)]


@pytest.mark.parametrize("text", [SOFTMAX["plain"], SOFTMAX["same variables"], NORMS["written out"]])
def test_both_orders_of_fusion_and_shuffles_meet(text: str) -> None:
    """Round two starts from round one's result, whichever idea came first."""
    x = np.random.default_rng(9).standard_normal((3, 130)).astype(np.float32)
    results = []
    for first, second in ((NAME, "warp-shuffle-reduction"), ("warp-shuffle-reduction", NAME)):
        request = ask(text)
        for one in candidates(request, first):
            following = after(request, one)
            for two in candidates(following, second):
                made = rewritten(following, two)
                results.append(run(made, request.workload, {"x": x}, rows=3, cols=130)["y"])
    assert len(results) >= 8
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=2e-5, atol=1e-6)


PLAIN = ("top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);")
REFUSED = {
    "written between": (
        softmax(*PLAIN, between="x[0] = 0.0f;")
        .replace("const float* x", "float* x")
        .replace("const float* in", "float* in"),
        "written between",
    ),
    "written through another name": (
        softmax(*PLAIN, between="out[t] = m;").replace("(x, y, rows", "(x, x, rows").replace("cols] in", "cols] inout"),
        "written between",
    ),
    "other elements": (softmax(*PLAIN).replace("expf(in[i] - m);", "expf(in[i + 1] - m);"), "no second pass"),
    "other buffer": (softmax(*PLAIN).replace("sum += expf(in[i] - m);", "sum += expf(out[i] - m);"), "no second pass"),
    "other range": (
        softmax(*PLAIN).replace("float sum = 0.f;\n    for (int i = t;", "float sum = 0.f;\n    for (int i = t + 64;"),
        "same elements in the same order",
    ),
    "moving pivot": (softmax("top = fmaxf(top, in[i]);", "sum += expf(in[i] - (m + i));"), "no second pass"),
    "not from zero": (softmax(*PLAIN).replace("float sum = 0.f;", "float sum = 1.f;"), "is zero when"),
    "sum used between": (
        softmax(*PLAIN, between="").replace("float sum = 0.f;\n", "float sum = 0.f; if (sum < m) m = sum;\n"),
        "is zero when",
    ),
    "leaves early": (softmax("{ if (i > 500) break; top = fmaxf(top, in[i]); }", PLAIN[1]), "no two loops"),
    "side effect in the pass": (softmax(PLAIN[0], "{ sum += expf(in[i] - m); atomicAdd(out, 1.0f); }"), "no two loops"),
    "call that may write": (
        "__device__ void touch(float* p) { p[0] = 1.0f; }\n" + softmax(*PLAIN, between="touch(out);"),
        "may write",
    ),
    "minimum": (softmax("top = fminf(top, in[i]);", PLAIN[1]), "no second pass"),
    "stored and used elsewhere": (
        softmax(PLAIN[0], "{ out[i] = expf(in[i] - m); sum += out[i]; }", "out[i] = out[i] / total + out[0];"),
        "stored in the second pass",
    ),
    "integer sum": (softmax(*PLAIN).replace("float sum = 0.f;", "int sum = 0;"), "not float or double"),
    "one pass": (
        block("    float v = 0;\n    for (int i = t; i < cols; i += 64) v += in[i];\n    out[t] = v;"),
        "no two loops",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(SOFTMAX["plain"])
    for candidate in candidates(request, NAME):
        assert refusal(after(request, candidate), NAME)


@pytest.mark.parametrize("text", [SOFTMAX["plain"], SOFTMAX["stored"], NORMS["named difference"]])
def test_carriage_returns_change_nothing_else(text: str) -> None:
    plain, wide = ask(text), ask(text.replace("\n", "\r\n"))
    for one, other in zip(candidates(plain, NAME), candidates(wide, NAME), strict=True):
        written = rewritten(wide, other).document.text
        assert written == rewritten(plain, one).document.text.replace(b"\n", b"\r\n")
