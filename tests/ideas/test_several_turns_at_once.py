"""Turns of a loop whose step only the launch knows are taken in batches; the values stay what they were, bit by bit."""

import numpy as np
import pytest

from agent.ideas.source import Request, retune
from agent.workload.program import Program
from tests.ideas.running import Array, ask, candidates, refusal, rewritten, run

NAME = "several-turns-at-once"
LOOP = """\
for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = x[blockIdx.x * cols + i];
        sum += v * v;
    }"""


def kernel(loop: str, cols: str = "cols = 5000", launch: str = "<<<rows, 64>>>", extent: str = "int cols") -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 3
//   size     {cols}
//   buffer   x: f32[rows * cols] in normal
//   buffer   parts: f32[rows * 64] out
//   launch   squares{launch}(x, parts, cols)
__global__ void squares(const float* x, float* parts, {extent}) {{
    __shared__ float tile[64];
    float sum = 0.0f;
    {loop}
    parts[blockIdx.x * 64 + threadIdx.x] = sum;
}}
"""


def given(cols: int) -> Array:
    return np.random.default_rng(cols).standard_normal((3, cols)).astype(np.float32)


def squares(x: Array) -> Array:
    """In the order of the loop: a column of every 64th element, one after the other, in single precision."""
    wide = np.zeros((3, -(-x.shape[1] // 64) * 64), np.float32)
    wide[:, : x.shape[1]] = x * x
    return np.add.accumulate(wide.reshape(3, -1, 64), axis=1, dtype=np.float32)[:, -1].reshape(-1)


@pytest.mark.parametrize("turns", [2, 4, 8, 16])
def test_every_size_and_number_of_turns(turns: int) -> None:
    request = ask(kernel(LOOP.replace("sum += v * v;", "sum = __fadd_rn(sum, __fmul_rn(v, v));")))
    (first,) = candidates(request, NAME)
    made = retune(first, request, {"turns": turns})
    assert made is not None
    assert f"    while (i < cols && cols - i > {turns - 1} * blockDim.x) {{\n        #pragma unroll\n" in made.code
    assert f"        for (int k = 0; k < {turns}; ++k, i += blockDim.x) {{\n            float v = x[" in made.code
    assert "    for (; i < cols; i += blockDim.x) {\n        float v = x[" in made.code
    for cols in (1, 63, 64, 64 * turns - 1, 64 * turns, 64 * turns + 1, 3000):
        found = run(rewritten(request, made), request.workload, {"x": given(cols)}, cols=cols)["parts"]
        np.testing.assert_array_equal(found, squares(given(cols)))


FORMS = {
    "one statement": "for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += x[blockIdx.x * cols + i];",
    "a name twice": (
        "for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += x[blockIdx.x * cols + i];\n"
        "    for (int i = 0; i < 2; ++i) sum += i;"
    ),
    "continue": LOOP.replace("float v", "if (i % 3 == 0) continue;\n        float v"),
    "through shared memory": LOOP.replace("sum += v * v;", "tile[threadIdx.x] = v;\n        sum += tile[threadIdx.x];"),
    "an inner loop that is written out": LOOP.replace(
        "sum += v * v;", "#pragma unroll\n        for (int k = 0; k < 3; ++k) sum += k * v;"
    ),
    "a pointer that was moved": "x += blockIdx.x * cols;\n    " + LOOP.replace("blockIdx.x * cols + i", "i"),
    "a parameter": LOOP.replace("blockDim.x)", "step)"),
    "a sum of bounds": LOOP.replace("i < cols", "i < cols / 2 + 1"),
    "unsigned": LOOP.replace("int i", "unsigned i"),
    "wide": LOOP.replace("int i", "size_t i"),
    "the grid": LOOP.replace("i += blockDim.x", "i += blockDim.x * gridDim.x"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    text = kernel(FORMS[form])
    if form == "a parameter":
        text = text.replace("(x, parts, cols)", "(x, parts, cols, 64)").replace("int cols)", "int cols, int step)")
    request = ask(text)
    (made,) = candidates(request, NAME)
    original = rewritten(request, made)
    assert original.document.text != request.document.text
    for cols in (1, 700, 1500):
        found = run(original, request.workload, {"x": given(cols)}, cols=cols)["parts"]
        again = run(_as_it_was(request), request.workload, {"x": given(cols)}, cols=cols)["parts"]
        np.testing.assert_array_equal(found, again)
    assert ("{\n        int i = threadIdx.x;" in made.code) == (form == "a name twice")


def _as_it_was(request: Request) -> Program:
    return Program(request.document, request.plan, "original")


REFUSED = {
    LOOP.replace("sum += v * v;", "if (v > 9.0f) break;\n        sum += v;"): "may be left early",
    LOOP.replace("sum += v * v;", "parts[i % 64] = v;"): "may not overtake",
    LOOP.replace("sum += v * v;", "atomicAdd(&parts[0], v);"): "which may wait or write",
    LOOP.replace("sum += v * v;", "for (int k = 0; k < cols; ++k) sum += v;"): "inside",
    LOOP.replace("sum += v * v;", "__syncthreads();"): "which may wait or write",
    LOOP.replace("sum += v * v;", "sum += __shfl_xor_sync(0xffffffffu, v, 1);"): "which may wait or write",
    LOOP.replace("float v = x[blockIdx.x * cols + i];", "float v = i;"): "loads nothing in each turn",
    LOOP.replace("float v = x[blockIdx.x * cols + i];", "float v = sum > 0.0f ? x[i] : 1.0f;"): "loads nothing in each",
    "#pragma unroll 4\n    " + LOOP: "has a pragma already",
    LOOP.replace("i < cols;", "i < cols && sum < 9.0f;"): "no loop waits",
    LOOP.replace("i < cols;", "i < (int)x[0];"): "bound that may change",
    f"int i;\n    {LOOP.replace('int i =', 'i =')}": "does not declare its variable",
}


@pytest.mark.parametrize("loop", REFUSED)
def test_what_is_left_alone(loop: str) -> None:
    assert REFUSED[loop] in refusal(ask(kernel(loop)), NAME)


def test_few_turns() -> None:
    assert "takes 7 turns" in refusal(ask(kernel(LOOP, "cols = 440")), NAME)


COLUMNS = """\
// cuda-lsp: workload
//   size     rows = 300
//   size     n = 700000
//   buffer   x: u8[rows * n] in integers(0, 3)
//   buffer   twos: i32[n] out
//   launch   count<<<(n + 255) / 256, 256>>>(x, twos, rows, n)
__global__ void count(const unsigned char* x, int* twos, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int found = 0;
    for (int r = 0; r < rows; r++) {
        if (x[r * n + i] == 2) found++;
    }
    twos[i] = found;
}
"""


def test_narrow_loads_of_a_counted_loop() -> None:
    """A byte a lane: the compiler's four turns at once are 8 KB on an SM, a third of what memory needs."""
    text = COLUMNS.replace(
        "if (x[r * n + i] == 2) found++;", "unsigned char y = x[r * n + i];\n        found += y == 2;"
    )
    request = ask(text)
    (made,) = candidates(request, NAME)
    assert "    #pragma unroll 16\n    for (int r = 0; r < rows; r++) {" in made.code
    x = np.random.default_rng(3).integers(0, 4, (37, 500)).astype(np.uint8)
    found = run(rewritten(request, made), request.workload, {"x": x}, rows=37, n=500)["twos"]
    np.testing.assert_array_equal(found, (x == 2).sum(0))


def test_all_loops_of_the_kind_are_unrolled() -> None:
    text = COLUMNS.replace("    twos[i]", "    for (int r = 3; r < rows; r += 2) found += x[r * n + i];\n    twos[i]")
    (made,) = candidates(ask(text), NAME)
    assert made.code.count("    #pragma unroll 16\n    for (int r = ") == 2


def test_wide_loads_are_enough() -> None:
    text = COLUMNS.replace("u8[", "i32[").replace("const unsigned char", "const int").replace("if (x[", "if (3 * x[")
    assert "KB under way on each SM" in refusal(ask(text), NAME)
