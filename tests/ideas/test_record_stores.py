"""Records staged by warps hold what NumPy says, also where no warp is full; what might read them early is noticed."""

import numpy as np
import pytest

from tests.ideas.running import ask, candidates, diff, refusal, rewritten, run

NAME = "record-stores"


def kernel(body: str, record: int, grid: str = "(n + 63) / 64", block: str = "64", extra: str = "") -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 1000, rows = 3
//   buffer   x: f32[n * rows * {record}] in
//   buffer   y: f32[n * rows * {record}] inout
//   launch   fill<<<{grid}, {block}>>>(x, y, n, rows)
{extra}__global__ void fill(const float* x, float* y, int n, int rows) {{
{body}
}}
"""


def line(stores: str, record: int, guard: str = "    if (i >= n) return;\n") -> str:
    return kernel(f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n{guard}{stores}", record)


PLANE = kernel(
    """\
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && row < rows) {
        float* cell = y + (row * n + i) * 9;
        for (int q = 0; q < 9; ++q) cell[q] = 2.0f * x[(row * n + i) * 9 + q];
    }""",
    9,
    "dim3((n + 31) / 32, (rows + 1) / 2)",
    "dim3(32, 2)",
)
STRIDED = kernel(
    """\
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i * 8 + 2] = 2.0f * x[i * 8 + 2];
        y[i * 8] = 2.0f * x[i * 8];
        y[1 + i * 8] = 2.0f * x[i * 8 + 1];
        for (int q = 3; q < 8; ++q) y[i * 8 + q] = 2.0f * x[i * 8 + q];
    }""",
    8,
    "2",
)
CASES = {
    "written out": (line("\n".join(f"    y[11 * i + {q}] = 2.0f * x[11 * i + {q}];" for q in range(11)), 11), 11, 1),
    "loop": (line("    for (int q = 0; q < 9; q++)\n        y[i * 9 + q] = 2.0f * x[i * 9 + q];", 9), 9, 1),
    "padded": (line("    for (int q = 0; q < 8; q++) {\n        y[i * 8 + q] = 2.0f * x[i * 8 + q];\n    }", 8), 8, 1),
    "two loops": (line("    for (int a = 0; a < 4; a++) for (int b = 0; b < 3; b++)\n"
                       "            y[i * 12 + (a * 3 + b)] = 2.0f * x[i * 12 + a * 3 + b];", 12), 12, 1),
    "unsigned": (line("    for (int q = 0; q < 9; q++) y[(size_t)i * 9 + q] = 2.0f * x[i * 9 + q];", 9)
                 .replace("int i =", "unsigned i ="), 9, 1),
    "bound by bytes": (line("    for (int q = 0; q < 9; q++) y[i * 9 + q] = 2.0f * x[i * 9 + q];", 9,
                            "    if (!(i < n)) return;\n").replace("!(i < n)", "n <= i"), 9, 1),
    "plane": (PLANE, 9, 3),
    "strided": (STRIDED, 8, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_record_arrives(case: str) -> None:
    text, record, rows = CASES[case]
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    for n in (1, 31, 32, 33, 257):
        x = np.random.default_rng(n).standard_normal(n * rows * record).astype(np.float32)
        before = np.full_like(x, 7)
        found = run(rewritten(request, candidate), request.workload, {"x": x, "y": before}, n=n, rows=rows)
        np.testing.assert_array_equal(found["y"], 2 * x)


def test_own_elements_may_be_read_first() -> None:
    stores = "\n".join(f"    y[9 * i + {q}] = y[9 * i + {q}] + x[9 * i + {q}];" for q in range(9))
    request = ask(line(stores, 9))
    (candidate,) = candidates(request, NAME)
    x = np.arange(9 * 100, dtype=np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x, "y": x}, n=100, rows=1)
    np.testing.assert_array_equal(found["y"], 2 * x)


def test_names_of_the_kernel_are_not_taken() -> None:
    request = ask(line("    int lane = 2, k = 1;\n    for (int q = 0; q < 9; q++) y[i * 9 + q] = lane + k + q;", 9))
    change = diff(request, candidates(request, NAME)[0])
    assert "const int lane_2 = threadIdx.x % 32;" in change and "for (int k_2 = lane_2;" in change


def test_layout_is_kept() -> None:
    text = CASES["loop"][0].replace("    ", "\t").replace("\n", "\r\n")
    request = ask(text)
    document = rewritten(request, candidates(request, NAME)[0]).document
    assert document.text.count(b"\n") == document.text.count(b"\r\n")
    assert b"\r\n\t__shared__ float records[64 * 9];" in document.text


THREE = "    y[3 * i] = 1;\n    {}\n    y[3 * i + 1] = 2;\n    y[3 * i + 2] = 3;"
LOOP = "    for (int q = 0; q < 3; q++) {}y[i * 3 + q] = x[i * 3 + q];"
REFUSED = {
    "small": (line(LOOP.format(""), 3), "records of 12 bytes"),
    "gap": (line("    y[3 * i] = 1;\n    y[3 * i + 1] = 2;", 3), "no thread writes all elements"),
    "sometimes": (line(LOOP.format("if (x[q] > 0) "), 3), "no thread writes all elements"),
    "skipped": (line(LOOP.format("{ if (x[q] > 0) continue; ") + " }", 3), "no thread writes all elements"),
    "two at most": (line("    y[2 * i] = 1;\n    y[2 * i + 1] = 2;", 2), "no thread writes all elements"),
    "added to": (line("    for (int q = 0; q < 3; q++) y[i * 3 + q] += 1.0f;", 3), "no thread writes all elements"),
    "backwards": (line("    for (int q = 0; q < 3; q++) y[(n - 1 - i) * 3 + q] = 1.0f;", 3), "no thread"),
    "apart": (line("    for (int q = 0; q < 3; q++) y[i * 4 + q] = 1.0f;", 4), "no thread writes all elements"),
    "holes among lanes": (line(LOOP.format(""), 3, "    if (i >= n || x[i] > 0) return;\n"), "any lanes of a warp"),
    "every other lane": (line(LOOP.format(""), 3, "    if (i % 2) return;\n"), "any lanes of a warp"),
    "two bounds": (line(LOOP.format(""), 3, "    if (i >= n || i >= rows * 4) return;\n"), "are kept away by"),
    "read again": (line(LOOP.format("") + "\n    y[0 * n + i * 3] = y[i * 3];", 3), "may be part of a record"),
    "neighbour's": (line("    for (int q = 0; q < 3; q++) y[i * 3 + q] = y[i * 3 + 3 + q];", 3), "may be part"),
    "barrier between": (line(THREE.format("__syncthreads();"), 3), "stands between"),
    "leaves between": (line(THREE.format("if (n > 5) return;"), 3), "stands between"),
    "start that moves": (
        line("    int base = 0;\n    for (int q = 0; q < 3; q++) { y[base + i * 3 + q] = x[q]; base += 3; }", 3),
        "no thread writes all elements",
    ),
    "bound that moves": (
        line("    m = 2;\n" + LOOP.format(""), 3, "    int m = n;\n    if (i >= m) return;\n"), "any lanes of a warp"),
    "half warps": (line(LOOP.format(""), 3).replace(", 64>>>", ", dim3(16, 4)>>>"), "whole warps"),
    "volatile": (line(LOOP.format(""), 3).replace("float* y", "volatile float* y"), "volatile"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    assert reason in refusal(ask(text), NAME)
