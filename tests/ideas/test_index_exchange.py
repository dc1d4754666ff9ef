"""Threads that stride get each other's work; where that is not proved, nothing is offered."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import implement
from tests.ideas.running import after, ask, candidates, idea_of, refusal, rewritten, run

NAME = "index-exchange"


def matmul(block: str = "dim3(16, 16)", grid: str = "dim3((m + 15) / 16, (n + 15) / 16)", body: str = "") -> str:
    return f"""\
// cuda-lsp: workload
//   size     m = 50, n = 70, k = 33
//   buffer   a: f32[m * k] in
//   buffer   b: f32[k * n] in
//   buffer   c: f32[m * n] out
//   launch   matmul<<<{grid}, {block}>>>(a, b, c, m, n, k)
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    {body}
    c[row * n + col] = sum;
}}
"""


def product(request, candidate) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((50, 33), (33, 70)))
    c = run(rewritten(request, candidate), request.workload, {"a": a, "b": b}, m=50, n=70, k=33)["c"]
    np.testing.assert_array_equal(c.reshape(50, 70), a @ b)


LAYOUTS = {
    "square": ("dim3(16, 16)", "dim3((m + 15) / 16, (n + 15) / 16)", ["threads", "threads and blocks"]),
    "wide": ("dim3(32, 8)", "dim3((m + 31) / 32, (n + 7) / 8)", ["linear index", "threads and blocks"]),
    "tall": ("dim3(8, 32)", "dim3((m + 7) / 8, (n + 31) / 32)", ["linear index", "threads and blocks"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_product_stays_a_product(layout: str) -> None:
    block, grid, variants = LAYOUTS[layout]
    request = ask(matmul(block, grid))
    made = candidates(request, NAME)
    assert [candidate.variant for candidate in made] == variants
    for candidate in made:
        product(request, candidate)


def test_the_scope_decides_what_is_offered() -> None:
    request = ask(matmul(), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    assert candidate.variant == "threads" and candidate.plan == request.plan
    assert "blockIdx.x * blockDim.x + threadIdx.y" in candidate.code


def test_a_symmetrical_launch_needs_no_change() -> None:
    request = ask(matmul(grid="dim3((n + 15) / 16, (n + 15) / 16)"), Scope.DROP_IN)
    assert [candidate.variant for candidate in candidates(request, NAME)] == ["threads", "threads and blocks"]


def test_the_launch_is_turned_with_the_kernel() -> None:
    request = ask(matmul())
    turned = candidates(request, NAME)[1]
    (launch,) = turned.plan.launches()
    assert [str(extent) for extent in launch.grid] == ["(n + 15) / 16", "(m + 15) / 16", "1"]
    assert turned.scope is Scope.RELAUNCH


def test_what_is_expected_is_counted() -> None:
    """A 16 x 16 block: a warp is 16 rows of a (or c) by 2 columns. Sectors of a, b and c before: 16, 1, 16; after, with
    rows of n = 70 and k = 33 floats apart: 2 rows of a, 16 neighbours of b, 2 x 16 neighbours of c."""
    idea = idea_of(ask(matmul()), NAME)
    assert idea.line == 12 and "`a[row * k + i]` takes 16 sectors" in idea.why
    assert idea.expects[0].counter == "sectors" and 0.2 < idea.expects[0].factor < 0.35


def test_it_does_not_apply_twice() -> None:
    request = ask(matmul())
    for candidate in candidates(request, NAME):
        assert refusal(after(request, candidate), NAME)


def test_repeats_are_turned_too() -> None:
    text = """\
// cuda-lsp: workload
//   size     h = 40, w = 70
//   buffer   now: f32[h * w] inout
//   buffer   next: f32[h * w] inout
//   repeat   3 { launch step<<<dim3((h + 15) / 16, (w + 15) / 16), dim3(16, 16)>>>(now, next, h, w)  swap now next }
__global__ void step(const float* now, float* next, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < h && j < w) next[i * w + j] = 2.0f * now[i * w + j];
}
"""
    request = ask(text)
    now = np.arange(2800, dtype=np.float32)
    made = candidates(request, NAME)
    assert [candidate.variant for candidate in made] == ["threads", "threads and blocks"]
    for candidate in made:
        result = run(rewritten(request, candidate), request.workload, {"now": now, "next": now * 0}, h=40, w=70)
        # Three steps end in the second buffer: 2 * 2 * 2 * now.
        np.testing.assert_array_equal(result["next"], 8 * now)


def flat(split: str, guard: str = "if (i >= rows * cols) return;", index: str = "row * cols + col") -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 37, cols = 51
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   scale<<<(rows * cols + 127) / 128, 128>>>(x, y, rows, cols)
__global__ void scale(const float* x, float* y, int rows, int cols) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {guard}
    {split}
    y[{index}] = 2.0f * x[{index}];
}}
"""


FLAT = {
    "two declarations": flat("int row = i % rows; int col = i / rows;"),
    "one declaration": flat("int row = i % rows, col = i / rows;"),
    "named product": flat("int row = i % rows, col = i / rows;", "int all = cols * rows; if (i >= all) return;"),
    "inline": flat("", index="(i % rows) * cols + i / rows").replace(
        "= 2.0f * x[(i % rows) * cols + i / rows]", "= 1.0f"
    ),
    "guarded block": flat("{ int row = i % rows, col = i / rows;", "if (i < rows * cols)").replace("];\n}", "]; }\n}"),
    "loop": flat("{ int row = i % rows, col = i / rows;")
    .replace("    if (i >= rows * cols) return;\n", "")
    .replace(
        "int i = blockIdx.x * blockDim.x + threadIdx.x;",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += gridDim.x * blockDim.x)",
    )
    .replace("];\n}", "]; }\n}"),
}


@pytest.mark.parametrize("case", FLAT)
def test_a_flat_index_is_split_the_other_way(case: str) -> None:
    request = ask(FLAT[case])
    x = np.arange(37 * 51, dtype=np.float32)
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=37, cols=51)["y"]
        np.testing.assert_array_equal(y, 2 * x if case != "inline" else np.ones_like(x))


REFUSED = {
    "a row per thread": (
        flat("float s = 0; for (int k = 0; k < cols; ++k) s += x[i * cols + k];", "if (i >= rows) return;", "i"),
        "each thread owns a whole row",
    ),
    "coalesced": (flat(""" """, "if (i >= rows) return;", "i"), "already run along memory"),
    "split unguarded": (flat("int row = i % rows, col = i / rows;", ""), "no guard shows"),
    "guard of another size": (
        flat("int row = i % rows, col = i / rows;", "if (i >= cols * cols) return;"),
        "no guard shows",
    ),
    "flat index used otherwise": (
        flat("int row = i % rows, col = i / rows;", index="row * cols + col + 0 * i"),
        "each thread owns",
    ),
    "read gains, write loses": (
        matmul()
        .replace("a[row * k + i] * b[i * n + col]", "a[0]")
        .replace("c[row * n + col] = sum", "c[row * n + col] = a[col * k + row]")
        .replace("sum += a[0];", "sum += 1.0f;"),
        "would lose",
    ),
    "loaded index": (matmul(body="sum += a[(int)b[row]];"), "cannot be told"),
    "warp operation": (matmul(body="sum += __shfl_xor_sync(0xffffffffu, sum, 1);"), "works on the warp"),
    "macro": (
        "#define ROW (blockIdx.x * blockDim.x + threadIdx.x)\n" + matmul(body="if (ROW > m) return;"),
        "macro ROW",
    ),
    "function of its own": (
        "__device__ int lane() { return threadIdx.x % 32; }\n" + matmul(body="sum += lane();"),
        "looks at the thread index",
    ),
    "block of another size at run time": (matmul("dim3(n / 7, 16)"), "not fixed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_nothing_comes_of_an_idea_that_no_longer_applies() -> None:
    idea = idea_of(ask(matmul()), NAME)
    assert implement(idea, ask(REFUSED["warp operation"][0])) == ()
