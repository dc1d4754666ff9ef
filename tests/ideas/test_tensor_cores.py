"""Warps on tensor cores compute what threads did; where types, precision or cards forbid it, the reason is given."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from agent.ideas.catalog import tensor_cores
from agent.ideas.idea import Candidate
from agent.ideas.source import Request, retune
from agent.ideas.tensor import site
from agent.workload.program import Program
from tests.ideas.running import ask, candidates, idea_of, refusal, rewritten, run

NAME = "tensor-cores"
Matrix = npt.NDArray[np.float64]
HALF = {"type": "half", "dtype": "f16", "update": "sum += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);"}
BFLOAT = {
    "type": "__nv_bfloat16", "dtype": "bf16", "header": "cuda_bf16.h",
    "update": "sum += __bfloat162float(a[row * k + i]) * __bfloat162float(b[i * n + col]);",
}  # fmt: skip


def matmul(**changes: str) -> str:
    """c = a b, of floats where nothing else is said, with parts replaced."""
    parts = {
        "header": "cuda_fp16.h",
        "type": "float",
        "dtype": "f32",
        "guard": "if (row >= m || col >= n) return;",
        "before": "float sum = 0.0f;",
        "loop": "for (int i = 0; i < k; ++i)",
        "update": "sum += a[row * k + i] * b[i * n + col];",
        "after": "c[row * n + col] = sum;",
        "grid": "dim3((n + 15) / 16, (m + 15) / 16)",
        "sizes": "m = 200, n = 150, k = 40",
        "result": "float",
        "c": "f32[m * n] out",
        "arguments": "a, b, c, m, n, k",
        "lossy": "",
        **changes,
    }
    return """\
#include <{header}>

// cuda-lsp: workload
//   size     {sizes}
//   buffer   a: {dtype}[m * k] in
//   buffer   b: {dtype}[k * n] in
//   buffer   c: {c}
//   launch   multiply<<<{grid}, dim3(16, 16)>>>({arguments})
{lossy}__global__ void multiply(const {type}* a, const {type}* b, {result}* c, int m, int n, int k) {{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    {guard}
    {before}
    {loop} {{
        {update}
    }}
    {after}
}}
""".format(**parts)


LOSSY = {"lossy": "//   lossy\n"}


def stored(numbers: Matrix, dtype: str) -> npt.NDArray[np.generic]:
    """Small whole numbers as a buffer holds them; the upper half of a float is its bfloat16."""
    if dtype == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype({"f16": np.float16, "f32": np.float32}[dtype])


def product(
    request: Request, candidate: Candidate, shape: tuple[int, int, int], dtype: str, turned: str = ""
) -> tuple[Matrix, Matrix, npt.NDArray[np.generic]]:
    """Both operands, and c. Small whole numbers, so that no order of sums and no tf32 rounds anything. ``turned`` names
    the operands that are stored by columns."""
    m, n, k = shape
    generator = np.random.default_rng(m + n + k)
    a, b = (generator.integers(-4, 5, one).astype(np.float64) for one in ((m, k), (k, n)))
    given = {
        "a": stored(a.T if "a" in turned else a, dtype),
        "b": stored(b.T if "b" in turned else b, dtype),
        "c": np.full((m, n), 2, np.float32),
    }
    answer = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
    return a, b, answer.reshape(m, n)


def retuned(request: Request, candidate: Candidate, **values: int) -> Candidate:
    found = retune(candidate, request, values)
    assert found is not None
    return found


SHAPES = [(1, 1, 1), (70, 33, 5), (131, 67, 19), (136, 72, 72)]
"""The last one has whole steps of aligned rows, and tails."""
TYPES = {"half": HALF, "bfloat16": BFLOAT, "tf32": LOSSY}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_product_stays_a_product(kind: str, shape: tuple[int, int, int]) -> None:
    parts = TYPES[kind]
    request = ask(matmul(**parts))
    (candidate,) = candidates(request, NAME)
    a, b, answer = product(request, candidate, shape, parts.get("dtype", "f32"))
    np.testing.assert_array_equal(answer, a @ b)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("values", [(128, 64, 16), (64, 128, 32), (128, 128, 32)], ids=str)
def test_every_tunable_is_right(kind: str, values: tuple[int, int, int]) -> None:
    parts = TYPES[kind]
    request = ask(matmul(**parts))
    (candidate,) = candidates(request, NAME)
    candidate = retuned(request, candidate, **dict(zip(("rows", "cols", "step"), values, strict=True)))
    a, b, answer = product(request, candidate, (136, 144, 40), parts.get("dtype", "f32"))
    np.testing.assert_array_equal(answer, a @ b)


@pytest.mark.parametrize("shape", [(33, 20, 19), (80, 72, 64)], ids=str)
@pytest.mark.parametrize("turned", ["a", "b", "ab"])
def test_operands_stored_by_columns(turned: str, shape: tuple[int, int, int]) -> None:
    one = "a[i * m + row]" if "a" in turned else "a[row * k + i]"
    two = "b[col * k + i]" if "b" in turned else "b[i * n + col]"
    request = ask(matmul(**{**HALF, "update": f"sum += __half2float({one}) * __half2float({two});"}))
    (candidate,) = candidates(request, NAME)
    a, b, answer = product(request, candidate, shape, "f16", turned)
    np.testing.assert_array_equal(answer, a @ b)


SPELLED = {
    "casts": "sum += (float)a[row * k + i] * (float)b[i * n + col];",
    "locals": "float x = __half2float(a[row * k + i]);\n        float y = b[i * n + col];\n        sum += x * y;",
    "half locals": "half x = a[row * k + i];\n        half y = b[i * n + col];\n"
    "        sum += float(x) * static_cast<float>(y);",
    "fused": "sum = fmaf(__half2float(a[row * k + i]), __half2float(b[i * n + col]), sum);",
    "product first": "const float p = (float)b[i * n + col] * (float)a[row * k + i];\n        sum = sum + p;",
}


@pytest.mark.parametrize("spelled", SPELLED)
def test_however_the_product_is_spelled(spelled: str) -> None:
    request = ask(matmul(**{**HALF, "update": SPELLED[spelled]}))
    (candidate,) = candidates(request, NAME)
    a, b, answer = product(request, candidate, (33, 20, 19), "f16")
    np.testing.assert_array_equal(answer, a @ b)


def test_what_is_done_with_the_sum_stays() -> None:
    after = "float scale = row % 2 ? 3.0f : 1.0f;\n    sum *= scale;\n    if (sum > 0.0f) c[row * n + col] += sum;"
    request = ask(matmul(**HALF, after=after, c="f32[m * n] inout"))
    (candidate,) = candidates(request, NAME)
    a, b, answer = product(request, candidate, (33, 20, 19), "f16")
    wanted = (a @ b) * np.where(np.arange(33) % 2, 3.0, 1.0)[:, None]
    np.testing.assert_array_equal(answer, 2 + np.maximum(wanted, 0))


def test_a_batch_of_products() -> None:
    text = matmul(
        **HALF,
        grid="dim3((n + 15) / 16, (m + 15) / 16, 3)",
        before="int z = blockIdx.z;\n    float sum = 0.0f;",
    )
    text = text.replace("a[row * k", "a[z * m * k + row * k").replace("c[row", "c[z * m * n + row")
    text = text.replace("f16[m * k]", "f16[3 * m * k]").replace("f32[m * n]", "f32[3 * m * n]")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    m, n, k = 17, 20, 9
    a = np.random.default_rng(5).integers(-4, 5, (3, m, k)).astype(np.float64)
    b = np.random.default_rng(6).integers(-4, 5, (k, n)).astype(np.float64)
    given = {"a": a.astype(np.float16), "b": b.astype(np.float16)}
    answer = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
    np.testing.assert_array_equal(answer.reshape(3, m, n), a @ b)


@pytest.mark.parametrize("kind", ["half", "tf32"])
@pytest.mark.parametrize("moved", ["a", "b"])
def test_operands_that_begin_between_sixteen_bytes(kind: str, moved: str) -> None:
    parts = TYPES[kind]
    dtype = parts.get("dtype", "f32")
    text = matmul(
        **parts, arguments=f"{'a + 1' if moved == 'a' else 'a'}, {'b + 1' if moved == 'b' else 'b'}, c, m, n, k"
    )
    request = ask(text.replace("[m * k]", "[m * k + 1]").replace("[k * n]", "[k * n + 1]"))
    (candidate,) = candidates(request, NAME)
    m, n, k = 64, 64, 64
    a = np.random.default_rng(7).integers(-4, 5, m * k + 1).astype(np.float64)
    b = np.random.default_rng(8).integers(-4, 5, k * n + 1).astype(np.float64)
    given = {"a": stored(a, dtype), "b": stored(b, dtype)}
    answer = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"].reshape(m, n)
    one = a[1:] if moved == "a" else a[:-1]
    two = b[1:] if moved == "b" else b[:-1]
    np.testing.assert_array_equal(answer, one.reshape(m, k) @ two.reshape(k, n))


CONVOLUTION = """\
#include <cuda_fp16.h>

// cuda-lsp: workload
//   size     images = 2, channels = 24, outputs = 40, height = 13, width = 17
//   buffer   x: f16[images * channels * height * width] in
//   buffer   w: f16[outputs * channels * 9] in
//   buffer   y: f16[images * outputs * height * width] out
//   launch   conv<<<dim3((width + 15) / 16, (height + 15) / 16, images * outputs), dim3(16, 16)>>>(
//                x, w, y, channels, outputs, height, width)
__global__ void conv(const half* x, const half* w, half* y, int channels, int outputs, int height, int width) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int o = blockIdx.z % outputs;
    int image = blockIdx.z / outputs;
    if (col >= width || row >= height) return;
    float sum = 0.0f;
    for (int c = 0; c < channels; ++c) {
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) {
                int u = row + i - 1, v = col + j - 1;
                if (u < 0 || u >= height || v < 0 || v >= width) continue;
                sum += __half2float(x[((image * channels + c) * height + u) * width + v])
                    * __half2float(w[((o * channels + c) * 3 + i) * 3 + j]);
            }
        }
    }
    y[((image * outputs + o) * height + row) * width + col] = __float2half(sum);
}
"""


def test_a_convolution_is_a_product_too() -> None:
    request = ask(CONVOLUTION)
    (candidate,) = candidates(request, NAME)
    generator = np.random.default_rng(0)
    x = generator.integers(-2, 3, (2, 24, 13, 17)).astype(np.float16)
    w = generator.integers(-2, 3, (40, 24, 3, 3)).astype(np.float16)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "w": w})["y"].reshape(2, 40, 13, 17)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    wanted = sum(
        np.einsum("nchw,oc->nohw", padded[:, :, i : i + 13, j : j + 17], w[:, :, i, j].astype(np.float64))
        for i in range(3)
        for j in range(3)
    )
    np.testing.assert_array_equal(answer, wanted)


def test_floats_are_cut_to_ten_bits() -> None:
    """1 + 2^-12 becomes 1 on its way, 1 + 2^-10 stays: by hand, exact in every other step."""
    request = ask(matmul(**LOSSY))
    (candidate,) = candidates(request, NAME)
    m, n, k = 3, 2, 4
    a = np.full((m, k), float(1 + Fraction(1, 4096)), np.float32)
    a[1] = float(1 + Fraction(1, 1024))
    given = {"a": a, "b": np.ones((k, n), np.float32)}
    answer = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"].reshape(m, n)
    np.testing.assert_array_equal(answer, np.array([[4, 4], [4 + 4 / 1024] * 2, [4, 4]], np.float32))


def test_halves_lose_nothing() -> None:
    """Against sums in float64: the products are exact in float, and fewer sums are rounded than before."""
    request = ask(matmul(**HALF))
    (candidate,) = candidates(request, NAME)
    m, n, k = 48, 40, 300
    generator = np.random.default_rng(3)
    given = {
        "a": generator.normal(size=(m, k)).astype(np.float16),
        "b": generator.normal(size=(k, n)).astype(np.float16),
    }
    truth = given["a"].astype(np.float64) @ given["b"].astype(np.float64)
    before = Program(request.document, request.plan, "original")
    errors = [
        np.abs(run(one, request.workload, given, m=m, n=n, k=k)["c"].reshape(m, n) - truth).max()
        for one in (rewritten(request, candidate), before)
    ]
    assert 0 < errors[0] <= errors[1] < 1e-3


def test_the_header_goes_to_the_file_s_own() -> None:
    request = ask(matmul(**HALF))
    (candidate,) = candidates(request, NAME)
    text = rewritten(request, candidate).document.text.decode()
    assert text.startswith("#include <cuda_fp16.h>\n#include <mma.h>\n\n// cuda-lsp")


REFUSED = {
    "integers": ({"type": "int", "dtype": "i32", "before": "int sum = 0;"}, "half"),
    "doubles": ({"type": "double", "dtype": "f64", "before": "double sum = 0;"}, "both half"),
    "a double sum": ({**HALF, "before": "double sum = 0.0;"}, "type double"),
    "a half sum": (
        {**HALF, "before": "half sum = 0.0f;", "update": "sum += a[row * k + i] * b[i * n + col];"},
        "type half",
    ),
    "products in half": ({**HALF, "update": "sum += __half2float(a[row * k + i] * b[i * n + col]);"}, "product of two"),
    "products in double": (
        {**LOSSY, "update": "sum += (double)a[row * k + i] * b[i * n + col];"}, "in float"
    ),
    "one converted": ({**HALF, "update": "sum += __half2float(a[row * k + i]) * b[i * n + col];"}, "in float"),
    "squares": ({**LOSSY, "update": "sum += a[row * k + i] * a[row * k + i] * b[i * n + col];"}, "in float"),
    "differences": ({**LOSSY, "update": "sum -= a[row * k + i] * b[i * n + col];"}, "product of two"),
    "another start": ({**HALF, "before": "float sum = 1.5f;"}, "begin at zero"),
    "the sum read on the way": (
        {**LOSSY, "update": "sum += a[row * k + i] * b[i * n + col];\n        if (sum > 9.0f) c[row * n + col] = sum;"},
        "",
    ),
    "the sum scaled on the way": (
        {**LOSSY, "update": "sum += a[row * k + i] * b[i * n + col];\n        sum *= 0.5f;"}, "something else"
    ),
    "an early exit": ({**LOSSY, "update": "if (i == 9) break;\n        sum += a[row * k + i] * b[i * n + col];"}, ""),
    "the result is an operand": ({**LOSSY, "arguments": "a, c, c, m, n, k", "c": "f32[k * n] inout"}, "hands c"),
    "few outputs": ({**HALF, "sizes": "m = 8, n = 150, k = 40"}, "too few"),
    "a short sum": ({**HALF, "sizes": "m = 200, n = 150, k = 9"}, "do not fill"),
    "floats without permission": ({}, "`lossy`"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_left_alone(case: str) -> None:
    parts, reason = REFUSED[case]
    assert reason in refusal(ask(matmul(**parts)), NAME)


def test_less_precision_is_announced() -> None:
    assert "less precise" in idea_of(ask(matmul(**LOSSY)), NAME).title
    assert "less precise" in idea_of(evolve(ask(matmul()), lossy=True), NAME).title
    assert "less precise" not in idea_of(ask(matmul(**HALF)), NAME).title


@pytest.mark.parametrize(
    ("parts", "architectures", "named"),
    [
        (HALF, ("sm_90", "sm_61"), "sm_61"),
        (HALF, ("sm_90a", "sm_70"), ""),
        (BFLOAT, ("sm_75",), "sm_75"),
        (LOSSY, ("sm_90", "sm_75"), "sm_75"),
        (LOSSY, ("sm_80", "sm_120"), ""),
    ],
)
def test_older_cards_do_not_get_it(parts: dict[str, str], architectures: tuple[str, ...], named: str) -> None:
    request = evolve(ask(matmul(**parts)), architectures=architectures)
    if named:
        assert refusal(request, NAME).startswith(f"{named} has no tensor cores")
    else:
        assert candidates(request, NAME)


def test_without_the_header_it_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "include_folders", lambda: ())
    assert "mma.h" in refusal(ask(matmul(**HALF)), NAME)


def test_large_outputs_get_large_tiles_and_small_ones_small() -> None:
    (large,) = candidates(ask(matmul(**HALF, sizes="m = 4096, n = 4096, k = 64")), NAME)
    (small,) = candidates(ask(matmul(**HALF)), NAME)
    assert (dict(large.values)["rows"], dict(large.values)["cols"]) == (128, 128)
    assert (dict(small.values)["rows"], dict(small.values)["cols"]) == (64, 64)
    assert tensor_cores.SIDES == (64, 128)
