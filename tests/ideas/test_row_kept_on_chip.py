"""Rows kept in shared memory give NumPy's results at every length, and what could change a row is noticed."""

import numpy as np
import pytest
from attrs import evolve

from agent.ideas.idea import Scope
from agent.ideas.source import propose, retune
from tests.ideas.running import Array, after, ask, candidates, diff, refusal, rewritten, run

NAME = "row-kept-on-chip"

TREE = """s[t] = VALUE;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {
        if (t < h) s[t] = FOLD;
        __syncthreads();
    }"""
MAX_TREE = TREE.replace("FOLD", "fmaxf(s[t], s[t + h])")
SUM_TREE = TREE.replace("FOLD", "s[t] + s[t + h]")


def kernel(
    body: str, threads: int = 128, parameters: str = "const float* x, float* y, int rows, int cols", given: str = "x, y"
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 600, cols = 60000
//   buffer   x: f32[rows * cols] inout
//   buffer   y: f32[rows * cols] out
//   launch   rowwise<<<rows, {threads}>>>({given}, rows, cols)
__global__ void rowwise({parameters}) {{
    __shared__ float s[{threads}];
    const int t = threadIdx.x;
    const float* in = x + blockIdx.x * cols;
    float* out = y + blockIdx.x * cols;
{body}
}}
"""


def softmax(first: str, second: str, third: str, threads: int = 128, given: str = "x, y") -> str:
    return kernel(
        f"""\
    float top = -INFINITY;
    for (int i = t; i < cols; i += blockDim.x) {first}
    {MAX_TREE.replace("VALUE", "top")}
    float m = s[0];
    __syncthreads();
    float sum = 0.f;
    for (int i = t; i < cols; i += blockDim.x) {second}
    {SUM_TREE.replace("VALUE", "sum")}
    float total = s[0];
    for (int i = t; i < cols; i += blockDim.x) {third}""",
        threads,
        given=given,
    )


FORMS = {
    "plain": softmax("top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);", "out[i] = expf(in[i] - m) / total;"),
    "named": softmax(
        "{\n        float v = in[i];\n        top = fmaxf(v, top);\n    }",
        "{ float v = in[i]; sum += __expf(v - m); }",
        "{\n        const float v = in[i];  // once more\n        out[i] = __expf(v - m) / total;\n    }",
    ),
    "read twice": softmax(
        "if (in[i] > top) top = in[i];",
        "sum += expf(in[i] - m);",
        "out[i] = in[i] > m ? 1.0f : expf(in[i] - m) / total;",
    ),
    "scaled": softmax(
        "top = fmaxf(top, in[i] * 0.5f);", "sum += expf(in[i] * 0.5f - m);", "out[i] = expf(in[i] * 0.5f - m) / total;"
    ),
    "in place": softmax(
        "top = fmaxf(top, in[i]);", "sum += expf(in[i] - m);", "out[i] = expf(in[i] - m) / total;", given="x, x"
    ),
}


def exact(x: Array) -> Array:
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    weights: Array = np.exp(shifted)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_length(form: str) -> None:
    request = ask(FORMS[form])
    for candidate in candidates(request, NAME):
        for rows, cols in ((2, 1), (2, 127), (3, 640), (1, 60000)):
            if cols > 640 and form != "plain":
                continue
            x = (np.random.default_rng(cols).standard_normal((rows, cols)) * 3).astype(np.float32)
            found = run(rewritten(request, candidate), request.workload, {"x": x}, rows=rows, cols=cols)
            y = found["x" if form == "in place" else "y"].reshape(rows, cols)
            np.testing.assert_allclose(y, exact(x * np.float32(0.5) if form == "scaled" else x), rtol=3e-5)


ODD = FORMS["plain"].replace("cols = 60000", "cols = 60001")
"""Rows that do not start aligned, in which no packs can be kept."""
LONG = FORMS["plain"].replace("cols = 60000", "cols = 110000")
"""Rows that no block can keep as a whole."""
SOME_IN_REGISTERS = FORMS["plain"].replace("cols = 60000", "cols = 69000")


def test_larger_blocks_in_every_size() -> None:
    request = ask(ODD)
    (candidate,) = [one for one in candidates(request, NAME) if one.variant == "larger blocks"]
    (tunable,) = candidate.tunables
    assert tunable.values == (256, 512, 1024)
    x = np.random.default_rng(1).standard_normal((2, 700)).astype(np.float32)
    for threads in tunable.values:
        tuned = retune(candidate, request, {"threads": threads})
        assert tuned is not None
        (launch,) = tuned.plan.launches()
        assert launch.block[0].constant == threads
        y = run(rewritten(request, tuned), request.workload, {"x": x}, rows=2, cols=700)["y"].reshape(2, 700)
        np.testing.assert_allclose(y, exact(x), rtol=3e-5)


@pytest.mark.parametrize("values", [(256, 2, 1), (512, 4, 8), (1024, 8, 4)])
def test_packs_of_every_width(values: tuple[int, int, int]) -> None:
    request = ask(LONG)
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == "packs in larger blocks"
    assert [one.values for one in candidate.tunables] == [(256, 512, 1024), (2, 4, 8), (1, 2, 4, 8)]
    tuned = retune(candidate, request, dict(zip(("threads", "width", "at_once"), values, strict=True)))
    assert tuned is not None
    for cols in (1, 703, 60001):  # a tail, unaligned rows, and more than a block keeps
        x = np.random.default_rng(1).standard_normal((2, cols)).astype(np.float32)
        y = run(rewritten(request, tuned), request.workload, {"x": x}, rows=2, cols=cols)["y"].reshape(2, cols)
        np.testing.assert_allclose(y, exact(x), rtol=3e-5)


@pytest.mark.parametrize("threads", [512, 1024])
@pytest.mark.parametrize("cols", [3, 704, 56832, 57001, 57004, 69000, 80004])
def test_whole_rows_in_shared_memory_and_registers(threads: int, cols: int) -> None:
    """Rows that fit into shared memory, rows whose rest goes to registers, and longer ones."""
    request = ask(SOME_IN_REGISTERS)
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == "whole row in larger blocks"
    tuned = retune(candidate, request, {"threads": threads})
    assert tuned is not None
    x = np.random.default_rng(1).standard_normal((1, cols)).astype(np.float32)
    y = run(rewritten(request, tuned), request.workload, {"x": x}, rows=1, cols=cols)["y"].reshape(1, cols)
    np.testing.assert_allclose(y, exact(x), rtol=3e-5)


def test_registers_of_the_threads() -> None:
    request = ask(SOME_IN_REGISTERS)
    change = diff(request, candidates(request, NAME)[0])
    assert "Pack<float, 4> more[3];" in change  # (69000 - 56832) / 4 packs for 1024 threads
    assert "__launch_bounds__(1024) rowwise(" in change  # else a thread could take more registers than there are
    assert "more[turn].v[k] = expf(more[turn].v[k] - m);" in change


def test_a_first_pass_with_a_name_for_the_place() -> None:
    """What the copies' address is made of is declared inside the pass."""
    first = "{ const int at = i; top = fmaxf(top, in[at]); }"
    text = softmax(first, "sum += expf(in[i] - m);", "out[i] = expf(in[i] - m) / total;", threads=512)
    for changed in (text, text.replace("cols = 60000", "cols = 60001")):
        request = ask(changed)
        (candidate,) = candidates(request, NAME)
        x = np.random.default_rng(1).standard_normal((2, 704)).astype(np.float32)
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=2, cols=704)["y"].reshape(2, 704)
        np.testing.assert_allclose(y, exact(x), rtol=3e-5)


def test_copies_one_by_one() -> None:
    request = ask(ODD)
    change = diff(request, candidates(request, NAME)[0])
    assert "+        __pipeline_memcpy_async(&kept_row[i], &in[i], sizeof(float));" in change
    assert "const float element = i < kept ? kept_row[i] : in[i];\n+        top = fmaxf(top, element);" in change


def test_no_header_inside_a_namespace() -> None:
    text = FORMS["plain"].replace("// cuda-lsp: workload", "namespace rows {\n// cuda-lsp: workload") + "}\n"
    for changed, variant in ((text, "packs in"), (text.replace("60000", "60001"), "larger blocks")):
        request = ask(changed)
        (candidate,) = candidates(request, NAME)
        assert candidate.variant.startswith(variant) and "__pipeline" not in diff(request, candidate)


def test_a_row_that_starts_anywhere() -> None:
    """Shapes where the input starts aligned and the output does not, in rows whose length fits packs."""
    text = FORMS["plain"].replace("y + blockIdx.x * cols", "y + 1 + blockIdx.x * cols")
    text = text.replace("y: f32[rows * cols]", "y: f32[rows * cols + 1]")
    request = ask(text)
    assert {one.variant for one in candidates(request, NAME)} == {"larger blocks"}  # no packs to be had
    text = FORMS["plain"].replace("x + blockIdx.x * cols", "x + blockIdx.x * (cols + lead)")
    text = text.replace("cols = 60000", "cols = 60000, lead = 4").replace("int cols)", "int cols, int lead)")
    text = text.replace("rows, cols)", "rows, cols, lead)").replace(
        "x: f32[rows * cols]", "x: f32[rows * (cols + lead)]"
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert "const bool aligned = ((size_t)in | (size_t)out) % 16 == 0;" in diff(request, candidate)
    for lead in (1, 2, 4):
        x = np.random.default_rng(1).standard_normal((3, 600 + lead)).astype(np.float32)
        made = rewritten(request, candidate)
        y = run(made, request.workload, {"x": x}, rows=3, cols=600, lead=lead)["y"].reshape(3, 600)
        np.testing.assert_allclose(y, exact(x[:, :600]), rtol=3e-5)


def test_no_packs_where_the_alignment_is_not_known_in_time() -> None:
    text = FORMS["plain"].replace(
        "float total = s[0];", "float total = s[0];\n    float* other = y + blockIdx.x * cols;"
    )
    request = ask(text.replace("out[i] =", "other[i] ="))
    assert {one.variant for one in candidates(request, NAME)} == {"larger blocks"}


def test_arrays_of_other_types_beside_the_row() -> None:
    text = plain(last="out[i] = in[i] / total * scale[i];", parameters=SCALED, given="x, y, scale")
    text = text.replace("//   launch", "//   buffer   scale: f64[cols] in uniform(1, 2)\n//   launch")
    request = ask(text)
    candidate = candidates(request, NAME)[0]
    assert "((size_t)in | (size_t)out | (size_t)scale) % 16 == 0" in diff(request, candidate)
    rng = np.random.default_rng(1)
    x, scale = rng.uniform(1, 2, (2, 700)).astype(np.float32), rng.uniform(1, 2, 700)
    y = run(rewritten(request, candidate), request.workload, {"x": x, "scale": scale}, rows=2, cols=700)["y"]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y.reshape(2, 700), wide / wide.sum(axis=1, keepdims=True) * scale, rtol=1e-5)


@pytest.mark.parametrize("threads", [256, 512, 1024])
@pytest.mark.parametrize("text", [LONG, SOME_IN_REGISTERS, ODD])
def test_memory_of_a_block(text: str, threads: int) -> None:
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    tuned = retune(candidate, request, {"threads": threads})
    if tuned is None:
        assert threads not in next(one.values for one in candidate.tunables if one.name == "threads")
        return
    (launch,) = tuned.plan.launches()
    dynamic = launch.shared.evaluate({"rows": 600, "cols": 10**6})
    assert isinstance(dynamic, int) and 200 * 1024 < dynamic + 4 * threads <= 227 * 1024  # the most it may have


def test_packs_hold_what_the_last_two_passes_make() -> None:
    change = diff(ask(LONG), candidates(ask(LONG), NAME)[0])
    assert "+            x_pack.v[k] = expf(x_pack.v[k] - m);\n+            sum += x_pack.v[k];" in change
    assert "+            for (int k = 0; k < 4; ++k) x_pack.v[k] = expf(x_pack.v[k] - m);" in change
    assert "+            y_pack.v[k] = x_pack.v[k] / total;" in change


@pytest.mark.parametrize("length", [60000, 110000])
def test_variables_that_take_the_row_s_own_value(length: int) -> None:
    """``top`` and ``sum`` hold a thread's own value first, and the block's after that."""
    text = FORMS["plain"].replace("float m = s[0];", "top = s[0];").replace("float total = s[0];", "sum = s[0];")
    text = text.replace("cols = 60000", f"cols = {length}")
    request = ask(text.replace("in[i] - m)", "in[i] - top)").replace("/ total", "/ sum"))
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == ("packs in larger blocks" if length > 60000 else "whole row in larger blocks")
    x = np.random.default_rng(1).standard_normal((2, 703)).astype(np.float32)
    y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=2, cols=703)["y"].reshape(2, 703)
    np.testing.assert_allclose(y, exact(x), rtol=3e-5)


def test_it_comes_before_packs_alone() -> None:
    names = [idea.name for idea in propose(ask(FORMS["plain"])).ideas]
    assert names.index(NAME) < names.index("vector-access")


def test_made_of_the_element_and_its_number() -> None:
    text = LONG.replace("expf(in[i] - m)", "expf(in[i] - m + 0 * i)")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert "(i_first < kept ? x_pack.v[k] : expf(x_pack.v[k] - m + 0 * i))" in diff(request, candidate)
    x = np.random.default_rng(1).standard_normal((2, 703)).astype(np.float32)
    y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=2, cols=703)["y"].reshape(2, 703)
    np.testing.assert_allclose(y, exact(x), rtol=3e-5)


def test_exponentials_are_made_once() -> None:
    request = ask(ODD)
    change = diff(request, candidates(request, NAME)[0])
    assert "+        const float element = expf((i < kept ? kept_row[i] : in[i]) - m);" in change
    assert "out[i] = (i < kept ? kept_row[i] : expf(in[i] - m)) / total;" in change


def test_shared_memory_follows_the_row() -> None:
    request = ask(FORMS["plain"])
    (launch,) = candidates(request, NAME)[0].plan.launches()
    assert launch.shared.evaluate({"rows": 600, "cols": 1000}) == 4000
    most = launch.shared.evaluate({"rows": 600, "cols": 10**6})
    assert 200 * 1024 < most <= 227 * 1024 - 1024 * 4


def test_narrower_scopes_and_later_rounds() -> None:
    assert "needs relaunch" in refusal(ask(FORMS["plain"], Scope.DROP_IN), NAME)
    request = ask(ODD)
    assert "no two loops" in refusal(after(request, candidates(request, NAME)[0]), NAME)


def test_the_row_lies_behind_dynamic_memory_in_use() -> None:
    text = FORMS["plain"].replace("__shared__ float s[128];", "extern __shared__ float s[];")
    request = ask(text.replace("rows, 128>>>", "rows, 128, 128 * sizeof(float)>>>"))
    x = np.random.default_rng(1).standard_normal((2, 700)).astype(np.float32)
    made = candidates(request, NAME)
    assert [one.variant for one in made] == ["whole row in larger blocks"]
    for candidate in (made[0], retune(made[0], request, {"threads": 256})):
        assert candidate is not None
        (launch,) = candidate.plan.launches()
        threads = launch.block[0].constant
        assert isinstance(threads, int) and launch.shared.evaluate({"cols": 700}) == 4 * threads + 2800
        assert f"float* const kept_row = s + {threads};" in diff(request, candidate)
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=2, cols=700)["y"].reshape(2, 700)
        np.testing.assert_allclose(y, exact(x), rtol=3e-5)


def test_layout_is_kept() -> None:
    text = FORMS["plain"].replace("    ", "\t").replace("\n", "\r\n")
    request = ask(text)
    document = rewritten(request, candidates(request, NAME)[0]).document
    assert document.text.count(b"\n") == document.text.count(b"\r\n")
    assert b"\r\n\textern __shared__ __align__(16) float kept_row[];" in document.text


def plain(first: str = "sum += in[i];", between: str = "", last: str = "out[i] = in[i] / total;", **words: str) -> str:
    return kernel(
        f"""\
    float sum = 0.f;
    for (int i = t; i < cols; i += blockDim.x) {first}
    {SUM_TREE.replace("VALUE", "sum")}
    float total = s[0];
    {between}
    for (int i = t; i < cols; i += blockDim.x) {last}""",
        **words,  # type: ignore[arg-type]
    )


SEVERAL = f"""\
// cuda-lsp: workload
//   size     rows = 600, cols = 60000
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   rowwise<<<(rows + 1) / 2, 512>>>(x, y, rows, cols)
__global__ void rowwise(const float* x, float* y, int rows, int cols) {{
    __shared__ float s[512];
    const int t = threadIdx.x;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {{
    const float* in = x + row * cols;
    float* out = y + row * cols;
    float sum = 0.f;
    for (int i = t; i < cols; i += blockDim.x) sum += in[i];
    {SUM_TREE.replace("VALUE", "sum")}
    float total = s[0];
    __syncthreads();
    for (int i = t; i < cols; i += blockDim.x) out[i] = in[i] / total;
    }}
}}
"""
SCALED = "const float* x, float* y, const double* scale, int rows, int cols"


REFUSED = {
    "short rows": (plain().replace("cols = 60000", "cols = 512"), "L1 keeps"),
    "rows in L2": (plain().replace("cols = 60000", "cols = 2048"), "L2 keeps"),
    "endless rows": (plain().replace("cols = 60000", "cols = 6000000"), "too little to help"),
    "written between": (plain(between="if (t == 0) out[0] = 1.0f;", given="x, x"), "may be the same buffer"),
    "read after its write": (plain(last="{ out[i] = 1.0f; out[i] = in[i] / total; }", given="x, x"), "same buffer"),
    "other elements": (plain(last="out[i] = in[cols - 1 - i] / total;"), "no two loops"),
    "other bound": (plain().replace("i < cols; i += blockDim.x) out", "i < cols - 1; i += blockDim.x) out"), "no two"),
    "not always read": (plain("if (i > 3) sum += in[i];"), "no two loops"),
    "another's turns": (plain().replace("int i = t;", "int i = t + 1;"), "no two loops"),
    "two dimensions": (plain().replace("rows, 128>>>", "rows, dim3(64, 2)>>>"), "in one dimension"),
    "gathered": (plain("sum += in[(int)y[i]];", last="out[i] = in[(int)y[i]] / total;"), "same buffer"),
    "called": (
        "__device__ void refill(float* x, int n);\n"
        + plain(between="refill(x, cols);").replace("const float* x", "float* x"),
        "may write what they read",
    ),
    "has other dynamic memory": (plain(between="extern __shared__ int more[]; more[0] = 1;"), "dynamic shared memory"),
    "dynamic memory that grows": (
        plain(between="extern __shared__ float more[]; more[0] = 1;").replace("rows, 128>>>", "rows, 128, cols>>>"),
        "hangs on the size",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    assert reason in refusal(ask(text), NAME)


FIXED_BLOCK = {
    "sum of the block's threads": plain(between="total += blockDim.x;"),
    "thread's own share": plain("sum += in[i] * (t + 1);"),
    "not neutral": plain().replace("sum = 0.f", "sum = 1.f"),
    "fold and tree differ": plain().replace("s[t] + s[t + h]", "fmaxf(s[t], s[t + h])"),
    "partial used": plain(between="total = s[1];"),
    "unfolded": plain(last="out[i] = in[i] / sum;"),
    "fixed tree": plain().replace("int h = blockDim.x / 2", "int h = 64"),
    "counted threads": plain(between="atomicAdd(&s[0], 1.0f);"),
    "counted turns": plain("{ sum += in[i]; s[0] += 1.0f; }"),
}


@pytest.mark.parametrize("case", FIXED_BLOCK)
def test_the_block_keeps_its_size(case: str) -> None:
    request = ask(FIXED_BLOCK[case].replace("cols = 60000", "cols = 9000"))
    assert {candidate.variant for candidate in candidates(request, NAME)} <= {"whole row", "same threads"}


@pytest.mark.parametrize("use", ["", "total += size;"])
def test_a_name_for_the_number_of_threads(use: str) -> None:
    """It grows with the block like the number itself, unless something else is made of it."""
    text = plain(between=use).replace("const int t =", "int size = blockDim.x;\n    const int t =")
    request = ask(text.replace("i += blockDim.x", "i += size").replace("h = blockDim.x / 2", "h = size / 2"))
    if use:
        assert "too few" in refusal(request, NAME)  # its own number of threads cannot keep the SM busy
        return
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == "whole row in larger blocks"
    x = np.random.default_rng(1).uniform(1, 2, (2, 703)).astype(np.float32)
    y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=2, cols=703)["y"].reshape(2, 703)
    np.testing.assert_allclose(y, x / x.astype(np.float64).sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("cols", [60000, 60001, 110000])
def test_blocks_that_take_several_rows(cols: int) -> None:
    """The next row takes the place of the last, with no barrier for it."""
    text = SEVERAL.replace("cols = 60000", f"cols = {cols}")
    request = ask(text)
    for candidate in candidates(request, NAME):
        x = np.random.default_rng(1).uniform(1, 2, (4, 703)).astype(np.float32)
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=4, cols=703)["y"].reshape(4, 703)
        np.testing.assert_allclose(y, x / x.astype(np.float64).sum(axis=1, keepdims=True), rtol=1e-5)


def test_launch_bounds_are_respected() -> None:
    text = plain().replace("__global__ void", "__global__ void __launch_bounds__(128)").replace("60000", "9000")
    assert {candidate.variant for candidate in candidates(ask(text), NAME)} <= {"whole row", "same threads"}


def test_several_launches_each_get_their_own_room() -> None:
    text = plain().replace(
        "//   launch   rowwise<<<rows, 128>>>(x, y, rows, cols)\n",
        "//   launch   rowwise<<<rows, 128>>>(x, y, rows, cols)\n"
        "//   launch   rowwise<<<rows, 128>>>(x, y, rows, cols / 2)\n",
    )
    request = ask(text)
    first, second = candidates(request, NAME)[0].plan.launches()
    names = {"rows": 1, "cols": 1000}
    assert (first.shared.evaluate(names), second.shared.evaluate(names)) == (4000, 2000)
    assert evolve(first, shared=second.shared, arguments=second.arguments) == second
