"""Values that hang on a loop's counter alone come from a table of the block; what a thread has of its own does not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "block-table"
THREADS = 64


def kernel(body: str, *, turns: int = 6, block: str = "64", float_: str = "float", dtype: str = "f32") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 200
//   size     m = {turns}
//   buffer   x: {dtype}[n * m] in uniform(0.5, 2)
//   buffer   y: {dtype}[n] inout zeros
//   launch   wave<<<(n + {THREADS - 1}) / {THREADS}, {block}>>>(x, y, n, m, 1.7)
__global__ void wave(const {float_}* x, {float_}* y, int n, int m, {float_} h) {{
    {body}
}}
"""


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    "
LOOP = "for (int k = 0; k < m; ++k) "

WRITTEN: dict[str, tuple[list[str], Callable[..., Any] | None, range]] = {
    INDEX + LOOP + "y[i] += x[i] * expf(-k / h);": (
        ["__shared__ float expf_table[32];",
         "for (int turn = threadIdx.x; turn < m && turn < 32; turn += blockDim.x) {",
         "expf_table[turn] = expf(-k / h);",
         "for (int k = 0; k < m; ++k) y[i] += x[i] * (k < 32 ? expf_table[k] : expf(-k / h));"],
        lambda x, k, h: x * np.exp(-k / h), range(0, 6)),
    # seen through locals of the loop, in their types; the same twice is kept once
    INDEX + "for (int k = 1; k <= m; k++) {\n        int q = k * 1.5f;\n        float w = powf(h, q);\n"
    "        y[i] += w * x[i] + powf(h, q);\n    }": (
        ["__shared__ float powf_table[32];", "const int k = 1 + turn;", "powf_table[turn] = powf(h, (int)(k * 1.5f));",
         "float w = k - 1 < 32 ? powf_table[k - 1] : powf(h, q);",
         "y[i] += w * x[i] + (k - 1 < 32 ? powf_table[k - 1] : powf(h, q));"],
        lambda x, k, h: x * h ** np.floor(k * 1.5) + h ** np.floor(k * 1.5), range(1, 7)),
    # a window of fixed size: as many values as it has places
    INDEX + "float s = 0;\n    for (int a = -2; a <= 2; ++a)\n        for (int b = 0; b < 3; ++b)\n"
    "            s += x[i] * expf(-(a * a + b * b) / (2.0f * h));\n    y[i] = s;": (
        ["__shared__ float expf_table[15];", "for (int turn = threadIdx.x; turn < 5 * 3; turn += blockDim.x) {",
         "const int a = -2 + turn / 3;", "const int b = turn % 3;",
         "s += x[i] * expf_table[(a + 2) * 3 + b];"],
        lambda x, k, h: sum(x * np.exp(-(a * a + b * b) / (2 * h)) for a in range(-2, 3) for b in range(3)),
        range(1)),
    # behind the locals that it is made of
    "const float g = 2.0f * h + blockIdx.x;\n    " + INDEX + LOOP + "y[i] += sinf(g * k);": (
        ["sinf_table[turn] = sinf(g * k);"], None, range(0)),
}  # fmt: skip


@pytest.mark.parametrize("body", WRITTEN)
def test_the_block_works_the_values_out_once(body: str) -> None:
    request = ask(kernel(body))
    (candidate,) = candidates(request, NAME)
    changed = diff(request, candidate).split("\n")
    added = [line[1:].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]
    lines, golden, turns = WRITTEN[body]
    assert [line for line in lines if line not in added] == []
    assert not any(line != line.rstrip() for line in added)
    x = np.random.default_rng(3).uniform(0.5, 2, 200 * 6).astype(np.float32)
    made = run(rewritten(request, candidate), request.workload, {"x": x, "y": np.zeros(200, np.float32)}, n=200, m=6)
    if golden is None:
        number = np.arange(200)
        expected = sum(np.sin((3.4 + number // THREADS) * k) for k in range(6))
    else:
        expected = sum(golden(x[:200].astype(float), k, 1.7) for k in turns)
    np.testing.assert_allclose(made["y"], expected, rtol=2e-5, atol=2e-5)


def test_turns_that_the_table_has_no_room_for_are_worked_out_as_before() -> None:
    request = ask(kernel(INDEX + LOOP + "y[i] += x[i] * expf(-k / h);"))
    (candidate,) = candidates(request, NAME)
    for m in (1, 31, 32, 33, 70):
        x = np.random.default_rng(m).uniform(0.5, 2, 70 * m).astype(np.float32)
        given = {"x": x, "y": np.zeros(70, np.float32)}
        made = run(rewritten(request, candidate), request.workload, given, n=70, m=m)
        expected = x[:70] * np.exp(-np.arange(m) / 1.7).sum()
        np.testing.assert_allclose(made["y"], expected, rtol=2e-5)
    refusal(after(request, candidate), NAME)  # what the table has no room for gets no second one


def test_a_pragma_stays_with_its_loop() -> None:
    body = "#pragma unroll 2\n    " + LOOP + "{\n        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    request = ask(kernel(body + "        if (i < n) y[i] += x[i] * expf(-k / h);\n    }"))
    (candidate,) = candidates(request, NAME)
    written = rewritten(request, candidate).document.text.decode()
    assert "__syncthreads();\n    #pragma unroll 2\n    for (int k = 0" in written


def test_two_loops_whose_tables_are_made_at_two_places() -> None:
    body = (
        "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    float s = 0;\n    "
        "for (int k = 0; k < m; ++k) s += expf(-k / h);\n    const float g = 2.0f * h;\n    "
        "for (int k = 0; k < m; ++k) s += sinf(k / g);\n    if (i < n) y[i] = s * x[i];"
    )
    request = ask(kernel(body))
    (candidate,) = candidates(request, NAME)
    x = np.random.default_rng(2).uniform(0.5, 2, 600).astype(np.float32)
    given = {"x": x, "y": np.zeros(100, np.float32)}
    made = run(rewritten(request, candidate), request.workload, given, n=100, m=6)
    k = np.arange(6)
    np.testing.assert_allclose(made["y"], x[:100] * (np.exp(-k / 1.7).sum() + np.sin(k / 3.4).sum()), rtol=2e-5)
    assert diff(request, candidate).count("+    __syncthreads();") == 2


def test_doubles_and_blocks_of_two_dimensions() -> None:
    body = (
        "int i = blockIdx.x * 64 + threadIdx.y * 16 + threadIdx.x;\n    if (i >= n) return;\n    "
        "for (int k = 0; k < m; ++k) y[i] += x[i] * cos(k * h);"
    )
    request = ask(kernel(body, block="dim3(16, 4)", float_="double", dtype="f64"))
    (candidate,) = candidates(request, NAME)
    assert (
        "turn = threadIdx.x + blockDim.x * threadIdx.y; turn < m && turn < 32; turn += blockDim.x * blockDim.y"
        in diff(request, candidate)
    )
    x = np.random.default_rng(5).uniform(0.5, 2, 100 * 40)
    made = run(rewritten(request, candidate), request.workload, {"x": x, "y": np.zeros(100)}, n=100, m=40)
    np.testing.assert_allclose(made["y"], x[:100] * np.cos(1.7 * np.arange(40)).sum(), rtol=1e-9, atol=1e-12)


ONCE: dict[str, tuple[str, list[str], Callable[..., Any]]] = {
    "y[i] = x[i] * (1.0f - powf(h, 7.5f));": (
        "float", ["__shared__ float powf_of_block;", "powf_of_block = 1.0f - powf(h, 7.5f);",
                  "y[i] = x[i] * (powf_of_block);"], lambda x: x * (1 - 1.7**7.5)),
    # as far as it is the same for all threads: the root and the division too
    "y[i] = h * sqrt(2. + pow(h, m)) / (1. + pow(h, 3 * m)) * x[i];": (
        "float", ["__shared__ double pow_of_block;", "y[i] = pow_of_block * x[i];"],
        lambda x: 1.7 * np.sqrt(2 + 1.7**6) / (1 + 1.7**18) * x),
    "y[i] = x[i] + exp(h);": (
        "double", ["__shared__ double exp_of_block;", "y[i] = x[i] + exp_of_block;"], lambda x: x + np.exp(1.7)),
}  # fmt: skip


@pytest.mark.parametrize("line", ONCE)
def test_what_hangs_on_no_counter_at_all(line: str) -> None:
    float_, lines, golden = ONCE[line]
    kind, dtype = (np.float64, "f64") if float_ == "double" else (np.float32, "f32")
    request = ask(kernel(INDEX + line, float_=float_, dtype=dtype))
    (candidate,) = candidates(request, NAME)
    changed = diff(request, candidate).split("\n")
    added = [line[1:].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]
    assert [line for line in lines if line not in added] == []
    x = np.random.default_rng(3).uniform(0.5, 2, 200 * 6).astype(kind)
    made = run(rewritten(request, candidate), request.workload, {"x": x, "y": np.zeros(200, kind)}, n=200, m=6)
    np.testing.assert_allclose(made["y"], golden(x[:200].astype(float)), rtol=2e-5)
    assert "one thread alone" in refusal(after(request, candidate), NAME)


NOT = {
    "of the thread's own": (INDEX + LOOP + "y[i] += expf(-k / h - i);", "not the same for all threads"),
    "from memory": (INDEX + LOOP + "y[i] += expf(-x[k]);", "not the same for all threads"),
    "the same in every turn": (INDEX + LOOP + "y[i] += expf(-h) * k;", "hangs on no loop's counter"),
    "numbers alone": (INDEX + "for (int k = 0; k < 9; ++k) y[i] += x[i] * expf(-k);", "the compiler can work out"),
    "turns of its own": (INDEX + "for (int k = 0; k < i; ++k) y[i] += expf(-k / h);", "not the same for all threads"),
    "in steps": (INDEX + "for (int k = 0; k < m; k += 2) y[i] += expf(-k / h);", "does not go up by one"),
    "one thread alone": (
        INDEX + f"if (threadIdx.x == 0) {{\n        {LOOP}y[i] += expf(-k / h);\n    }}", "one thread alone"),
    "a value that changes": (INDEX + "float g = h;\n    " + LOOP + "{ y[i] += expf(-k / g); g += 1.0f; }",
                             "may not be known yet"),
    "behind a return": (INDEX + "const float g = 2.0f * h;\n    " + LOOP + "y[i] += expf(-k / g);",
                        "may have left before"),
    "numbers alone, once": (INDEX + "y[i] = x[i] * powf(1.5f, 2.5f);", "the compiler can work out"),
    "nothing dear": (INDEX + LOOP + "y[i] += k / h;", "no loop calls a function"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT)
def test_it_says_why_there_is_no_table(case: str) -> None:
    body, words = NOT[case]
    assert words in refusal(ask(kernel(body)), NAME)


def test_a_table_that_is_too_large_or_a_block_below_a_warp() -> None:
    body = INDEX + LOOP + "y[i] += expf(-k / h);"
    assert "too large for shared memory" in refusal(ask(kernel(body, turns=5000)), NAME)
    assert "a warp or more" in refusal(ask(kernel(body, block="n")), NAME)
