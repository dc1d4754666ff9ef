"""Trees of a value and its place become shuffles: ties as before, refused where the winner hangs on the order."""

import numpy as np
import pytest

from tests.ideas.running import ask, candidates, refusal, rewritten, run

NAME = "argmax-by-shuffles"
WINS = "other > best[t] || (other == best[t] && where[t + h] < where[t])"


def kernel(
    wins: str = WINS,
    *,
    threads: int = 128,
    start: str = "-INFINITY",
    better: str = ">",
    after: str = "",
    type: str = "float",
    dtype: str = "f32",
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 3, cols = 1000
//   buffer   x: {dtype}[rows * cols] in
//   buffer   y: i32[rows] out
//   launch   find<<<rows, {threads}>>>(x, y, cols)
__global__ void find(const {type}* x, int* y, int cols) {{
    __shared__ {type} best[{threads}];
    __shared__ int where[{threads}];
    int t = threadIdx.x;
    {type} peak = {start};
    int at = cols;
    for (int i = t; i < cols; i += blockDim.x) {{
        {type} v = x[blockIdx.x * cols + i];
        if (v {better} peak) {{
            peak = v;
            at = i;
        }}
    }}
    best[t] = peak;
    where[t] = at;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {{
        if (t < h) {{
            {type} other = best[t + h];
            if ({wins}) {{
                best[t] = other;
                where[t] = where[t + h];
            }}
        }}
        __syncthreads();
    }}
    {after}if (t == 0) y[blockIdx.x] = where[0];
}}
"""  # fmt: skip


ORDERS = {
    "greatest, first": (WINS, ">", "-INFINITY", np.argmax),
    "turned round": ("(where[t] > where[t + h] && best[t] == other) || best[t] < other", ">", "-INFINITY", np.argmax),
    "written out": (WINS.replace("other", "best[t + h]"), ">", "-INFINITY", np.argmax),
    "least, first": (WINS.replace("other >", "other <"), "<", "INFINITY", np.argmin),
    "greatest, last": (
        WINS.replace("where[t + h] <", "where[t + h] >"), ">=", "-INFINITY",
        lambda x: x.size - 1 - np.argmax(x[::-1])),
}  # fmt: skip


@pytest.mark.parametrize("case", ORDERS)
@pytest.mark.parametrize("threads", [32, 128, 1024])
def test_the_winner_is_numpys(case: str, threads: int) -> None:
    wins, better, start, golden = ORDERS[case]
    text = kernel(wins, threads=threads, start=start, better=better)
    if case == "greatest, last":
        text = text.replace("int at = cols;", "int at = -1;")
    request = ask(text)
    for candidate in candidates(request, NAME):
        for cols in (1, 31, 33, 1000, 1025):
            x = np.random.default_rng(cols).integers(-4, 5, (3, cols)).astype(np.float32)  # many ties
            made = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=cols)["y"]
            np.testing.assert_array_equal(made, [golden(row) for row in x])


def test_reads_by_all_threads_stay() -> None:
    after = "float top = best[0];\n    if (t == 5 && top > 1e9f) y[blockIdx.x] = -1;\n    "
    request = ask(kernel(after=after))
    x = np.arange(300, dtype=np.float32).reshape(3, 100)
    for candidate in candidates(request, NAME):
        made = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=100)["y"]
        np.testing.assert_array_equal(made, [99, 99, 99])


REFUSED = {
    "ties by the order": (kernel("other > best[t]"), "hangs on the order"),
    "not strict": (kernel(WINS.replace("other > best", "other >= best")), "hangs on the order"),
    "another tie": (kernel(WINS.replace("other == best[t]", "other != best[t]")), "hangs on the order"),
    "the same array twice": (kernel("other > best[t] || (other == best[t] && other < best[t])"), "hangs on the order"),
    "an odd block": (kernel(threads=96), "no tree that carries"),
    "later elements": (kernel(after="if (t == 1) y[0] = where[1];\n    "), "used after the tree"),
    "before": (kernel().replace("float peak", "best[t] = 0; float peak"), "is used before"),
    "no stores": (
        kernel().replace("    where[t] = at;\n", "    if (t < 200) where[t] = at;\n"),
        "not stored right before",
    ),
    "some leave": (kernel().replace("float peak", "if (x[t] > 5) return;\n    float peak"), "may return"),
    "bytes": (kernel(type="short", dtype="i16", start="-32768"), "cannot shuffle"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_tabs_and_carriage_returns_stay() -> None:
    request = ask(kernel().replace("    ", "\t").replace("\n", "\r\n"))
    for candidate in candidates(request, NAME):
        written = rewritten(request, candidate).document.text
        assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
