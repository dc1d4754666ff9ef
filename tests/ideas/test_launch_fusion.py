"""Two launches as one give NumPy's results in every buffer; launches that are not element by element stay apart."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import Request, implement, program, propose
from agent.source.document import parse
from agent.workload.directive import read_directive
from tests.ideas.running import Array, run

NAME = "launch-fusion"

ROWS = """\
__global__ void first(const float* x, float* y, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    if (col >= cols) return;
    y[row * cols + col] = 2.0f * x[row * cols + col] - 1.0f;
}
"""
RELU = """\
__global__ void second(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(y[i], 0.0f);
}
"""


def file(
    first: str = ROWS,
    second: str = RELU,
    launch: str = "first<<<dim3((cols + 63) / 64, rows), 64>>>(x, y, rows, cols)",
    then: str = "second<<<(rows * cols + 127) / 128, 128>>>(y, rows * cols)",
    between: str = "",
) -> str:
    more = f"//   {between}\n" if between else ""
    return f"""\
// cuda-lsp: workload
//   size     rows = 40, cols = 100
//   buffer   x: f32[rows * cols] in
//   buffer   r: f32[rows * cols] in
//   buffer   y: f32[rows * cols] inout
//   buffer   z: f32[rows * cols] inout
//   launch   {launch}
{more}//   launch   {then}
{first}
{second}"""


def asked(text: str, scope: Scope = Scope.PLAN) -> Request:
    document = parse(text.encode(), "test.cu")
    kernel = document.kernel("first")
    workload = read_directive(document, kernel)
    assert workload is not None
    return Request(document, kernel, workload, workload.plan, scope)


def after(text: str, rows: int, cols: int) -> tuple[str, dict[str, Array], dict[str, Array]]:
    """(the new text, the buffers before, the buffers after the run); fails where the idea does not apply."""
    request = asked(text)
    proposal = propose(request)
    found = [idea for idea in proposal.ideas if idea.name == NAME]
    assert found, dict(proposal.considered)[NAME]
    (candidate,) = implement(found[0], request)
    assert len(candidate.plan.launches()) == len(request.plan.launches()) - 1
    made = program(request.document, request.kernel, candidate, "candidate")
    generator = np.random.default_rng(cols)
    given = {name: generator.standard_normal(rows * cols).astype(np.float32) for name in "xryz"}
    return made.document.text.decode(), given, run(made, request.workload, given, rows=rows, cols=cols)


def sizes() -> list[tuple[int, int]]:
    return [(1, 1), (3, 64), (5, 130)]


FORMS = {
    "one expression": (RELU, lambda y: np.maximum(y, 0)),
    "leaves": (RELU.replace("if (i < n) y[i] =", "if (n <= i) return;\n    y[i] ="), lambda y: np.maximum(y, 0)),
    "conditional": (RELU.replace("y[i] = fmaxf(y[i], 0.0f)", "{ if (y[i] < 0) y[i] = 0.1f * y[i]; }"),
                    lambda y: np.where(y < 0, 0.1 * y, y)),
    "compound": (RELU.replace("y[i] = fmaxf(y[i], 0.0f)", "y[i] *= 3.0f"), lambda y: 3 * y),
    "several": (RELU.replace("y[i] = fmaxf(y[i], 0.0f);", "{\n        float v = y[i];\n        y[i] = v*v + 1;\n    }"),
                lambda y: y * y + 1),
    "a local of that name": (
        RELU.replace("y[i] = fmaxf(y[i], 0.0f);", "{\n        float value = y[i];\n        y[i] = value * 5;\n    }"),
        lambda y: 5 * y),
    "read twice": (RELU.replace("fmaxf(y[i], 0.0f)", "y[i] / (1.0f + fabsf(y[i]))"), lambda y: y / (1 + np.abs(y))),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_in_place(form: str) -> None:
    second, exact = FORMS[form]
    for rows, cols in sizes():
        _, given, found = after(file(second=second), rows, cols)
        wanted = exact(2.0 * given["x"].astype(np.float64) - 1)  # type: ignore[no-untyped-call]
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-6)


def test_short_work_stands_in_the_store() -> None:
    text, _, _ = after(file(), 3, 64)
    assert "y[row * cols + col] = fmaxf(2.0f * x[row * cols + col] - 1.0f, 0.0f);" in text
    text, _, _ = after(file(second=FORMS["conditional"][0]), 3, 64)
    assert "y[row * cols + col] = second_element(2.0f * x[row * cols + col] - 1.0f);" in text
    assert text.count("__device__ __forceinline__ float second_element(float value) {") == 1


ADD = """\
__global__ void second(const float* y, const float* r, float* z, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = a * y[i] + r[i];
    }
}
"""


@pytest.mark.parametrize("braces", [True, False])
def test_another_array_is_written(braces: bool) -> None:
    then = "second<<<(rows * cols + 127) / 128, 128>>>(y, r, z, 0.5f, rows * cols)"
    first = ROWS
    if not braces:
        first = ROWS.replace("    if (col >= cols) return;\n    y[", "    if (col < cols)\n        y[")
    for rows, cols in sizes():
        text, given, found = after(file(first, ADD, then=then), rows, cols)
        y = 2.0 * given["x"].astype(np.float64) - 1
        np.testing.assert_allclose(found["y"], y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["z"], 0.5 * y + given["r"], rtol=1e-5, atol=1e-6)
    assert "int rows, int cols, const float* r, float* z)" in text


def test_what_the_first_has_read_at_the_same_element_may_be_written() -> None:
    then = "second<<<(rows * cols + 127) / 128, 128>>>(y, r, x, 0.5f, rows * cols)"
    first = ROWS.replace("const float* x", "float* x")
    _, given, found = after(
        file(first, ADD, then=then).replace("x: f32[rows * cols] in", "x: f32[rows * cols] inout"), 5, 130
    )
    wanted = 0.5 * (2.0 * given["x"].astype(np.float64) - 1) + given["r"]
    np.testing.assert_allclose(found["x"], wanted, rtol=1e-5, atol=1e-6)


PLANES = """\
__global__ void first(const float* x, float* y, int rows, int cols) {
    int lane = blockIdx.x * blockDim.x + threadIdx.x;
    int a = blockIdx.z / cols, b = blockIdx.z % cols;
    if (lane < 4) y[(a * cols + b) * 4 + lane] = 2.0f * x[(a * cols + b) * 4 + lane] - 1.0f;
}
"""


def test_indices_that_were_taken_apart() -> None:
    text = file(
        PLANES, launch="first<<<dim3(1, 1, rows * cols), 4>>>(x, y, rows, cols)",
        then="second<<<(4 * rows * cols + 127) / 128, 128>>>(y, 4 * rows * cols)",
    ).replace("[rows * cols]", "[rows * cols * 4]").replace("y[i], 0.0f", "y[i], 0.5f")  # fmt: skip
    request = asked(text)
    proposal = propose(request)
    idea = next(idea for idea in proposal.ideas if idea.name == NAME)
    made = program(request.document, request.kernel, implement(idea, request)[0], "candidate")
    x = np.random.default_rng(0).standard_normal(3 * 5 * 4).astype(np.float32)
    found = run(made, request.workload, {"x": x, "y": np.zeros_like(x)}, rows=3, cols=5)
    np.testing.assert_allclose(found["y"], np.maximum(2 * x - 1, 0.5), rtol=1e-6)


def test_layout_and_scope() -> None:
    text = file(second=FORMS["several"][0]).replace("\n", "\r\n")
    request = asked(text)
    idea = next(idea for idea in propose(request).ideas if idea.name == NAME)
    made = program(request.document, request.kernel, implement(idea, request)[0], "candidate").document
    assert made.text.count(b"\n") == made.text.count(b"\r\n")
    narrow = dict(propose(asked(file(), Scope.RELAUNCH)).considered)
    assert "needs plan" in narrow[NAME]


SHIFTED = RELU.replace("y[i], 0.0f", "y[n - 1 - i], 0.0f")
REFUSED = {
    "in a struct": (
        file(
            second="struct P { float low; const float* r; };\n"
            + RELU.replace("int n)", "int n, P p)").replace("0.0f", "p.low"),
            then="second<<<(rows * cols + 127) / 128, 128>>>(y, rows * cols, {0, y})",
        ),
        "second is handed buffers in a struct",
    ),
    "alone": (file(then="first<<<dim3((cols + 63) / 64, rows), 64>>>(x, y, rows, cols)"), "exactly once"),
    "something between": (file(between="fill     y 0"), "no launch of another kernel"),
    "other buffer": (file(then="second<<<(rows * cols + 127) / 128, 128>>>(z, rows * cols)"), "works on nothing"),
    "part of it": (file(then="second<<<(cols + 127) / 128, 128>>>(y, cols)"), "exactly the elements"),
    "grid too small": (file(then="second<<<rows * cols / 128, 128>>>(y, rows * cols)"), "exactly the elements"),
    "other elements": (file(second=SHIFTED), "other elements"),
    "not all written": (file(ROWS.replace("col >= cols", "col >= cols - 1")), "each element once"),
    "by value": (file(ROWS.replace("    y[row", "    if (x[0] > 0) y[row")), "is written under"),
    "twice": (file(ROWS.replace("row * cols + col] = 2", "row * cols / 2 + col] = 2")), "each element once"),
    "more than a write": (file(ROWS.replace("= 2.0f *", "+= 2.0f *")), "write each element once"),
    "read later": (file(ROWS.replace("- 1.0f;", "- 1.0f;\n    y[row * cols] += 1.0f;")), "write each element once"),
    "writes what is read": (
        file(
            ROWS.replace("x[row * cols + col]", "x[row * cols + cols - 1 - col]"), ADD,
            then="second<<<(rows * cols + 127) / 128, 128>>>(y, r, x, 0.5f, rows * cols)",
        ),
        "may not have read yet",
    ),
    "works together": (file(second=RELU.replace("if (i", "__syncthreads();\n    if (i")), "more than compute"),
    "template": (
        file(second="template <int N>\n" + RELU, then="second<1><<<(rows * cols + 127) / 128, 128>>>(y, rows * cols)"),
        "template",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    proposal = propose(asked(text))
    assert all(idea.name != NAME for idea in proposal.ideas)
    assert reason in dict(proposal.considered)[NAME]
