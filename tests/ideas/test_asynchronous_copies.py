"""The next step is on its way while the block computes: same results, and only where nothing else is staged."""

import numpy as np
import pytest

from agent.ideas import source
from agent.ideas.idea import Scope
from tests.ideas.running import after, ask, candidates, refusal, rewritten, run
from tests.ideas.test_register_blocking import inputs, matmul

NAME = "asynchronous-copies"
BLOCKED = "register-blocking"


def tiled(**changes: str) -> str:
    parts = {
        "staging": "a_tile[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.0f;\n"
        "        if (k0 + y < k && col < n) b_tile[y][x] = b[(k0 + y) * n + col];\n"
        "        else b_tile[y][x] = 0.0f;",
        "work": "for (int i = 0; i < 8; ++i) sum += a_tile[y][i] * b_tile[i][x];",
        "head": "for (int k0 = 0; k0 < k; k0 += 8)",
        "array": "__shared__ float a_tile[8][8];",
        "close": "__syncthreads();",
        "after": "if (row < m && col < n) c[row * n + col] = sum;",
        **changes,
    }
    return """\
// cuda-lsp: workload
//   size     m = 100, n = 100, k = 100
//   buffer   a: f32[m * k] in
//   buffer   b: f32[k * n] in
//   buffer   c: f32[m * n] out
//   launch   multiply<<<dim3((n + 7) / 8, (m + 7) / 8), dim3(8, 8)>>>(a, b, c, m, n, k)
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {{
    {array}
    __shared__ float b_tile[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
    float sum = 0.0f;
    {head} {{
        {staging}
        __syncthreads();
        {work}
        {close}
    }}
    {after}
}}
""".format(**parts)


@pytest.mark.parametrize("shape", [(1, 1, 1), (9, 20, 8), (17, 8, 37), (5, 30, 16)], ids=str)
def test_a_tiled_product_stays_one(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    request = ask(tiled(), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    assert candidate.plan == request.plan and "a_tile[4][8][8]" in candidate.code
    assert candidate.code.count("__pipeline_memcpy_async") == 2
    given = inputs(m, n, k)
    c = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
    np.testing.assert_array_equal(c.reshape(m, n), given["a"] @ given["b"])


@pytest.mark.parametrize(
    "head", ["for (int k0 = 0; k0 <= k - 1; k0 = k0 + 8)", "for (unsigned k0 = 0; k0 < k; k0 += 8)"]
)
def test_spellings_of_the_loop(head: str) -> None:
    request = ask(tiled(head=head))
    (candidate,) = candidates(request, NAME)
    given = inputs(10, 7, 21)
    c = run(rewritten(request, candidate), request.workload, given, m=10, n=7, k=21)["c"]
    np.testing.assert_array_equal(c.reshape(10, 7), given["a"] @ given["b"])


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_any_number_of_buffers(stages: int) -> None:
    """One barrier a step, none of the buffers written while another thread still reads it, and no step too many."""
    request = ask(tiled(), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    tuned = source.retune(candidate, request, {"stages": stages})
    assert tuned is not None and tuned.code.count("__syncthreads()") == 1
    for m, n, k in ((9, 20, 8), (5, 30, 16), (17, 8, 37), (8, 8, 1)):
        given = inputs(m, n, k)
        c = run(rewritten(request, tuned), request.workload, given, m=m, n=n, k=k)["c"]
        np.testing.assert_array_equal(c.reshape(m, n), given["a"] @ given["b"])


def test_a_loop_that_ends_at_one_value_gets_two_buffers() -> None:
    """Two steps past such an end, `!=` holds again."""
    request = ask(tiled(head="for (int k0 = 0; k0 != (k + 7) / 8 * 8; k0 += 8)"), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    (stages,) = candidate.tunables
    assert stages.values == (2,)
    given = inputs(9, 20, 21)
    c = run(rewritten(request, candidate), request.workload, given, m=9, n=20, k=21)["c"]
    np.testing.assert_array_equal(c.reshape(9, 20), given["a"] @ given["b"])


@pytest.mark.parametrize("stages", [2, 4])
def test_a_loop_that_runs_several_times_waits_before_it_begins_again(stages: int) -> None:
    text = tiled(head="for (int turn = 0; turn < 3; ++turn) for (int k0 = 0; k0 < k; k0 += 8)")
    request = ask(
        text.replace("(int turn = 0; turn < 3; ++turn) for", "(int turn = 0; turn < 3; ++turn) {\n    for").replace(
            "    }\n    if (row < m && col < n) c", "    }\n    }\n    if (row < m && col < n) c"
        )
    )
    (candidate,) = candidates(request, NAME)
    tuned = source.retune(candidate, request, {"stages": stages})
    assert tuned is not None
    given = inputs(9, 20, 21)
    c = run(rewritten(request, tuned), request.workload, given, m=9, n=20, k=21)["c"]
    np.testing.assert_array_equal(c.reshape(9, 20), 3 * (given["a"] @ given["b"]))


@pytest.mark.parametrize(
    ("after", "barriers"),
    [
        ("factors[x] = sum; __syncthreads(); if (row < m && col < n) c[row * n + col] = sum * factors[x] / sum;", 3),
        ("if (row < m && col < n) c[row * n + col] = sum;", 1),
    ],
)
def test_what_the_work_reads_is_not_written_before_all_have_read_it(after: str, barriers: int) -> None:
    text = tiled(after=after, work="for (int i = 0; i < 8; ++i) sum += factors[i] * a_tile[y][i] * b_tile[i][x];")
    text = text.replace("    int x = threadIdx.x", "    __shared__ float factors[8];\n    int x = threadIdx.x")
    text = text.replace("    float sum = 0.0f;", "    float sum = 0.0f;\n    if (y == 0) factors[x] = 1.0f;")
    (candidate,) = candidates(ask(text), NAME)
    assert candidate.code.count("__syncthreads()") == barriers


def test_a_pragma_stays_with_its_loop() -> None:
    text = tiled(head="#pragma unroll 2\n    for (int k0 = 0; k0 < k; k0 += 8)")
    (candidate,) = candidates(ask(text), NAME)
    assert "#pragma unroll 2\n    for (int k0" in candidate.code


def test_it_goes_on_from_register_blocking() -> None:
    first = ask(matmul())
    (blocked,) = candidates(first, BLOCKED)
    request = after(first, blocked)
    (candidate,) = candidates(request, NAME)
    assert "a_tile[buffer][at]" in candidate.code
    assert refusal(after(request, candidate), NAME)
    for m, n, k in ((33, 50, 40), (70, 9, 5)):
        given = inputs(m, n, k)
        c = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
        np.testing.assert_array_equal(c.reshape(m, n), given["a"] @ given["b"])


def test_elements_that_no_step_copies_stay_out() -> None:
    """What does not differ from step to step leaves out the same elements in each."""
    text = tiled(staging="if (x < 6) a_tile[y][x] = a[k0 + x];\n        if (x > 1) b_tile[y][x] = b[k0 + y];")
    request = ask(text.replace("int i = 0; i < 8", "int i = 2; i < 6").replace("b_tile[i][x]", "b_tile[x][i]"))
    (candidate,) = candidates(request, NAME)
    assert "if (x < 6) __pipeline_memcpy_async" in candidate.code


def test_pointers_that_move_from_step_to_step() -> None:
    text = tiled(
        staging="a_tile[y][x] = row < m && k0 + x < k ? a[row * k + x] : 0.0f;\n"
        "        b_tile[y][x] = k0 + y < k && col < n ? b[y * n + col] : 0.0f;",
        work="a += 8;\n        b += 8 * n;  // on to the next step\n"
        "        for (int i = 0; i < 8; ++i) sum += a_tile[y][i] * b_tile[i][x];",
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    for m, n, k in ((9, 20, 8), (17, 8, 37)):
        given = inputs(m, n, k)
        c = run(rewritten(request, candidate), request.workload, given, m=m, n=n, k=k)["c"]
        np.testing.assert_array_equal(c.reshape(m, n), given["a"] @ given["b"])
    late = text.replace("c[row * n + col] = sum;", "c[row * n + col] = sum + a[0];")
    assert "a, which the staging uses, changes in the work" in refusal(ask(late), NAME)


def test_line_ends_and_tabs_are_kept() -> None:
    request = ask(tiled().replace("    ", "\t").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    text = rewritten(request, candidate).document.text
    assert not text.replace(b"\r\n", b"").count(b"\n")
    assert b"\r\n\t\tif (k0 + y < k && col < n) __pipeline_memcpy_async(&b_tile" in text


REFUSED = {
    "stale elements": ("earlier step", {"staging": "if (k0 + x < k) a_tile[y][x] = a[k0 + x];\n b_tile[y][x] = b[x];"}),
    "computed": ("more than copy", {"staging": "a_tile[y][x] = 2.0f * a[k0 + x];\n b_tile[y][x] = b[x];"}),
    "a counter": ("more than copy", {"staging": "a_tile[y][x] = a[k0 + x];\n b_tile[y][x] = b[x];\n sum += 1.0f;"}),
    "no second barrier": ("no staging, a barrier", {"close": ""}),
    "used behind": ("used in another way", {"after": "if (row < m && col < n) c[row * n + col] = sum + a_tile[0][0];"}),
    "written by the work": ("used in another way", {"work": "a_tile[y][x] += 1.0f;\n sum += b_tile[x][y];"}),
    "what is stored": ("writes to c", {"work": "c[row] = a_tile[y][x] * b_tile[y][x];"}),
    "another type": ("not copied as they are", {"array": "__shared__ double a_tile[8][8];"}),
    "too large": ("more than a block has", {"array": "__shared__ float a_tile[100][100];"}),
    "no braces": ("without braces", {"head": "if (m > 1) for (int k0 = 0; k0 < k; k0 += 8)"}),
    "cut short": ("end the step early", {"work": "if (k0 == 8) continue;\n sum += a_tile[y][0] * b_tile[0][x];"}),
    "few steps": ("too few for an overlap", {"head": "for (int k0 = 0; k0 < k; k0 += 64)"}),
    "moving": ("changes in the work", {"work": "sum += a_tile[y][x] * b_tile[y][x]; row += 1;"}),
    "handed on": ("handed on", {"work": "float* p = &a_tile[0][0]; sum += *p + b_tile[0][0]; p = b_tile[0];"}),
}  # fmt: skip


def test_an_sm_full_of_threads_hides_its_loads_itself() -> None:
    """Blocks of 64 threads, of which an SM holds 32: as many as there are of them, or fewer with much in registers."""
    full = tiled().replace("m = 100, n = 100", "m = 1000, n = 1000")
    assert "hide each other's loads" in refusal(ask(full), NAME)
    blocked = full.replace("float sum = 0.0f;", "float sum = 0.0f, held[64];")
    assert candidates(ask(blocked), NAME)


@pytest.mark.parametrize("near", REFUSED)
def test_near_misses(near: str) -> None:
    words, changes = REFUSED[near]
    assert words in refusal(ask(tiled(**changes)), NAME)
