"""A thread's own array that data index becomes a column of shared memory; any other stays where it is."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from tests.ideas.running import Array, ask, candidates, refusal, rewritten, run

NAME = "private-array-in-shared-memory"
COUNT = "int count[8];\n    for (int k = 0; k < 8; ++k) count[k] = 0;"
TURN = "for (int j = 0; j < 9; ++j) count[x[j * n + i]]++;"
BEST = """\
int best = 0;
    for (int k = 1; k < 8; ++k) {
        if (count[k] > count[best]) best = k;
    }
    top[i] = best;"""


def kernel(body: str, block: str = "96", index: str = "blockIdx.x * 96 + threadIdx.x", threads: int = 96) -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 700
//   buffer   x: u8[n * 9] in integers(0, 7)
//   buffer   top: i32[n] out
//   launch   most<<<(n + {threads} - 1) / {threads}, {block}>>>(x, top, n)
__global__ void most(const unsigned char* x, int* top, int n) {{
    int i = {index};
    if (i >= n) return;
    {body}
}}
"""


def given(n: int) -> Array:
    return np.random.default_rng(n).integers(0, 8, (9, n)).astype(np.uint8)


def expected(x: Array) -> Array:
    """The most frequent value of each column, the least of equals."""
    return np.stack([np.bincount(column, minlength=8).argmax() for column in x.T]).astype(np.int32)


SHAPES = {
    "a line": ("96", "blockIdx.x * 96 + threadIdx.x", "threadIdx.x"),
    "a plane": (
        "dim3(32, 3)",
        "blockIdx.x * 96 + threadIdx.y * 32 + threadIdx.x",
        "threadIdx.y * blockDim.x + threadIdx.x",
    ),
    "a box": (
        "dim3(8, 4, 3)",
        "blockIdx.x * 96 + (threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x",
        "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("element", "spread"), [("int", 1), ("char", 4), ("unsigned short", 2), ("double", 1)])
def test_every_block_and_type(shape: str, element: str, spread: int) -> None:
    block, index, thread = SHAPES[shape]
    request = ask(kernel("\n    ".join((COUNT.replace("int count", f"{element} count"), TURN, BEST)), block, index))
    (made,) = candidates(request, NAME)
    assert made.scope is Scope.DROP_IN
    assert f"__shared__ {element} count[8][{96 * spread}];" in made.code
    own = thread if spread == 1 else f"{spread} * {thread}" if shape == "a line" else f"{spread} * ({thread})"
    assert f"const int column = {own};" in made.code and "count[x[j * n + i]][column]++" in made.code
    for n in (1, 97, 700):
        found = run(rewritten(request, made), request.workload, {"x": given(n)}, n=n)["top"]
        np.testing.assert_array_equal(found, expected(given(n)))


def test_two_dimensions_and_a_loop_around() -> None:
    body = """\
int column = 0;
    for (int round = 0; round < 2; ++round) {
        int seen[2][4];
        for (int k = 0; k < 8; ++k) seen[k / 4][k % 4] = k == 0 ? round : 0;
        for (int j = 0; j < 9; ++j) seen[x[j * n + i] / 4][x[j * n + i] % 4] += 1;
        column += seen[0][0] + 10 * seen[1][2];
    }
    top[i] = column;"""
    request = ask(kernel(body))
    (made,) = candidates(request, NAME)
    assert "__shared__ int seen[2][4][96];\n        const int column_2 = threadIdx.x;" in made.code
    x = given(300)
    found = run(rewritten(request, made), request.workload, {"x": x}, n=300)["top"]
    np.testing.assert_array_equal(found, 2 * ((x == 0).sum(0) + 10 * (x == 6).sum(0)) + 1)


REFUSED = {
    COUNT
    + "\n    for (int j = 0; j < 9; ++j) { int& c = count[x[j * n + i]]; c += 1; int* p = &c; p[0] += 0; }\n    "
    + BEST: "used by more than subscripts",
    COUNT + "\n    for (int j = 0; j < 9; ++j) bump(count[x[j * n + i]]);\n    " + BEST: "used by more than subscripts",
    f"{COUNT}\n    for (int j = 0; j < 9; ++j) count[j % 8] += x[j * n + i];\n    top[i] = 0;": "the same element",
    # counted in a branch that only some threads take: its variable still runs alike in them
    "int k;\n    if (x[i] > 3) {\n        int sums[9];\n        for (k = 0; k < 9; ++k) sums[k] = x[k * n + i];\n"
    "        for (k = 1; k < 9; ++k) sums[k] += sums[k - 1];\n        top[i] = sums[8];\n    }": "the same element",
    f"int count[8] = {{}};\n    {TURN}\n    {BEST}": "with its contents",
    f"int count[8], other[8];\n    {TURN}\n    {BEST}": "declared with others",
    f"{COUNT}\n    {TURN}\n    int* at = count;\n    top[i] = at[2];": "more than subscripts",
    f"{COUNT}\n    {TURN}\n    int* at = &count[2];\n    top[i] = *at;": "more than subscripts",
    f"{COUNT.replace('8', '64')}\n    {TURN}\n    {BEST}": "too much for shared memory",
    f"{COUNT.replace('8', '2')}\n    {TURN}\n    top[i] = count[1];": "so small",
    "top[i] = x[i];": "no thread has an array of its own",
    "__shared__ int count[8];\n    count[x[i]] = 1;\n    top[i] = 1;": "no thread has an array of its own",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_left_alone(body: str) -> None:
    assert REFUSED[body] in refusal(ask(kernel(body)), NAME)


def test_a_block_that_is_not_fixed() -> None:
    text = kernel("\n    ".join((COUNT, TURN, BEST)), "n", "blockIdx.x * n + threadIdx.x").replace(
        "(n + 96 - 1) / 96", "1"
    )
    assert "not fixed numbers" in refusal(ask(text), NAME)
