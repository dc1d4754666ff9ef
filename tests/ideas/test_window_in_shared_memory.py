"""Windows from shared memory hold what NumPy's padded arrays say; windows that are not what they seem stay."""

from itertools import product

import numpy as np
import pytest
from attrs import evolve

from tests.ideas.running import Array, ask, candidates, diff, refusal, rewritten, run

NAME = "window-in-shared-memory"


def kernel(
    read: str,
    guard: str = "if (x >= width || y >= height) return;",
    block: str = "32, 4",
    size: str = "",
    above: str = "",
) -> str:
    x, y = block.split(", ")
    return f"""\
// cuda-lsp: workload
//   size     height = 300, width = 300
//   buffer   in: f32[{size or "height * width"}] in
//   buffer   out: f32[height * width] inout
//   launch   blur<<<dim3((width + {x} - 1) / {x}, (height + {y} - 1) / {y}), dim3({block})>>>(in, out, height, width)
__global__ void blur(const float* in, float* out, int height, int width) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    {above}{guard}
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy) {{
        for (int dx = -2; dx <= 2; ++dx) {{
            {read}
        }}
    }}
    out[y * width + x] = sum;
}}
"""


CLAMPED = """int row = min(max(y + dy, 0), height - 1);
            int col = max(min(x + dx, width - 1), 0);
            sum += (dy + 2) * in[row * width + col];"""
PADDED = """int row = y + dy;
            int col = x + dx;
            if (row >= 0 && row < height && col >= 0 && col < width) sum += (dy + 2) * in[row * width + col];"""
SET = """float t;
            t = 0.0f;
            // inside only
            if (y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width) {
                t = in[(y + dy) * width + x + dx];
            }
            sum += (dy + 2) * t;"""
SKIPPED = """int row = y + dy, col = x + dx;
            if (row < 0 || row >= height || col < 0 || col >= width) continue;
            sum += (dy + 2) * in[row * width + col];"""
CHOSEN = "sum += (dy + 2) * (0 > y + dy || y + dy >= height || 0 > x + dx || x + dx >= width ? 0.0f : in[(y + dy) * width + x + dx]);"  # noqa: E501
PERIODIC = "sum += (dy + 2) * in[(y + dy + height) % height * width + (x + dx + width) % width];"
HALO = "sum += (dy + 2) * in[(y + dy + 1) * (width + 4) + x + dx + 2];"
INTERIOR = "sum += (dy + 2) * in[(y + dy) * width + x + dx];"
WITHIN = "if (x < 2 || x >= width - 2 || y < 1 || height - 1 <= y) return;"

CASES = {
    "clamped": (kernel(CLAMPED), "edge"),
    "padded": (kernel(PADDED), "constant"),
    "set to zero": (kernel(SET), "constant"),
    "set to zero at once": (kernel(SET.replace("t = 0.0f", "float t = 0").replace("float t;", "")), "constant"),
    "not kept at zero": (kernel(SET.replace("t = 0.0f", "t = 0.5f").replace("* t", "* (t - 0.5f)")
                         .replace("t = in", "t = 0.5f + in")), "constant"),
    "another value": (kernel(PADDED.replace(";\n            if", ";\n            if", 1)
                      .replace("sum += (dy + 2) * in[row * width + col]",
                               "sum += (dy + 2) * (in[row * width + col] + 1.0f) - (dy + 2)")), "constant"),
    "skipped": (kernel(SKIPPED), "constant"),
    "chosen": (kernel(CHOSEN), "constant"),
    "periodic": (kernel(PERIODIC), "wrap"),
    "masked": (kernel(CLAMPED.replace("sum +=", "if (out[(dy + 1) * 5 + dx + 2] == 0.0f) sum +=")), "edge"),
    "halo in memory": (kernel(HALO, size="(height + 2) * (width + 4)"), "memory"),
    "interior": (kernel(INTERIOR, WITHIN), "interior"),
    "narrow block": (kernel(CLAMPED, block="8, 8"), "edge"),
    "interior, inside": (
        kernel(INTERIOR, "if (!(x >= 2 && width - 2 > x && y > 0 && y < height - 1)) return;", "16, 4"), "interior"),
}  # fmt: skip

ZEROS = ("padded", "chosen", "set to zero", "set to zero at once")
"""Where a zero beyond the edge does as well as not to ask."""


def expected(x: Array, mode: str, height: int, width: int) -> Array:
    if mode == "memory":
        padded = x.astype(np.float64)
    elif mode == "interior":
        padded = np.pad(x.astype(np.float64), ((1, 1), (2, 2)))
    else:
        padded = np.pad(x.astype(np.float64), ((1, 1), (2, 2)), mode=mode)  # type: ignore[call-overload]
    total = np.zeros((height, width))
    for dy in range(3):
        for dx in range(5):
            total += (dy + 1) * padded[dy : dy + height, dx : dx + width]
    return total


@pytest.mark.parametrize("case", CASES)
def test_every_window(case: str) -> None:
    text, mode = CASES[case]
    request = ask(text)
    made = candidates(request, NAME)
    assert [one.variant for one in made] == [
        *(["zeros beyond the edge"] if case in ZEROS else []),
        "one element a thread",
    ]
    for candidate, (height, width) in product(made, ((3, 5), (4, 32), (7, 33), (21, 70))):
        shape = (height + 2, width + 4) if mode == "memory" else (height, width)
        x = np.random.default_rng(width).standard_normal(shape).astype(np.float32)
        before = np.zeros((height, width), np.float32)
        y = run(rewritten(request, candidate), request.workload, {"in": x, "out": before}, height=height, width=width)[
            "out"
        ]
        wanted = expected(x, mode, height, width)
        if mode == "interior":
            inner = np.zeros_like(wanted)
            inner[1:-1, 2:-2] = wanted[1:-1, 2:-2]
            wanted = inner
        np.testing.assert_allclose(y.reshape(height, width), wanted, atol=2e-4)


def test_locals_that_are_not_needed_any_more_go() -> None:
    request = ask(CASES["clamped"][0])
    change = diff(request, candidates(request, NAME)[0])
    assert "-            int row = min(max(y + dy, 0), height - 1);" in change
    request = ask(CASES["padded"][0])
    zeros, plain = candidates(request, NAME)
    assert "-            int row" not in diff(request, plain)
    assert "-            int row" in diff(request, zeros) and "-            int col" in diff(request, zeros)


def test_an_index_that_is_cut_off_too_late_is_bounded_by_the_threads() -> None:
    """Rows are cut off at a multiple of the height: a place past the last one must not reach there."""
    late = CLAMPED.replace("height - 1)", "2 * height)")
    request = ask(kernel(late, size="(height + 1) * width"))
    (candidate,) = candidates(request, NAME)
    assert "if (left + dx < width + 2 && top + dy < height + 1)" in diff(request, candidate)
    x = np.random.default_rng(0).standard_normal((8, 33)).astype(np.float32)
    made, before = rewritten(request, candidate), np.zeros((7, 33), np.float32)
    y = run(made, request.workload, {"in": x, "out": before}, height=7, width=33)["out"].reshape(7, 33)
    padded = np.pad(x.astype(np.float64), ((1, 0), (2, 2)), mode="edge")
    wanted = sum((dy + 1) * padded[dy : dy + 7, dx : dx + 33] for dy in range(3) for dx in range(5))
    np.testing.assert_allclose(y, wanted, atol=2e-4)


def reached(read: str, given: str = "3", above: str = "") -> str:
    """A window whose reach in y is a parameter."""
    loops = kernel(read, above=above).replace("dy = -1; dy <= 1", "dy = -(k / 2); dy <= k / 2")
    loops = loops.replace("int width) {", "int width, int k) {")
    return loops.replace("height, width)\n__global__", f"height, width, {given})\n__global__")


@pytest.mark.parametrize(("read", "mode"), [(PADDED, "constant"), (CLAMPED, "edge"), (SKIPPED, "constant")])
def test_a_reach_that_every_launch_gives(read: str, mode: str) -> None:
    """With another one, the loops run as they were."""
    request = ask(reached(read))
    for candidate in candidates(request, NAME):
        assert candidate.code.count("k == 3") == 2
        for made in (candidate, evolve(candidate, code=candidate.code.replace("k == 3", "k == 4"))):
            for height, width in ((3, 5), (21, 70)):
                x = np.random.default_rng(width).standard_normal((height, width)).astype(np.float32)
                given = {"in": x, "out": np.zeros_like(x)}
                y = run(rewritten(request, made), request.workload, given, height=height, width=width)["out"]
                np.testing.assert_allclose(y.reshape(x.shape), expected(x, mode, height, width), atol=2e-4)


def test_a_reach_that_changes_is_none() -> None:
    for text in (reached(PADDED, "height"), reached(PADDED, above="k += 2; ")):
        assert "no two loops" in refusal(ask(text), NAME)


def test_rows_of_narrow_blocks_lie_in_different_banks() -> None:
    request = ask(CASES["narrow block"][0])
    assert "__shared__ float window[10][40];" in diff(request, candidates(request, NAME)[0])


def test_layout_is_kept() -> None:
    text = CASES["clamped"][0].replace("    ", "\t").replace("\n", "\r\n").replace("size\t ", "size     ")
    request = ask(text)
    document = rewritten(request, candidates(request, NAME)[0]).document
    assert document.text.count(b"\n") == document.text.count(b"\r\n")
    assert b"\r\n\t\tfor (int c = threadIdx.x;" in document.text


GATHERED = "sum += in[(int)in[(y + dy) * width + x + dx]];"
DOUBLE = kernel(CLAMPED).replace("float", "double").replace("f32", "f64")
REFUSED = {
    "strided": (kernel(CLAMPED.replace("y + dy", "2 * y + dy")), "no two loops"),
    "one row": (kernel(CLAMPED).replace("dy = -1", "dy = 0").replace("dy <= 1", "dy <= 0"), "no two loops"),
    "small": (kernel(CLAMPED).replace("dx = -2", "dx = 0").replace("dx <= 2", "dx <= 1"), "served well by the L1"),
    "bytes": (
        kernel(CLAMPED).replace("float* in", "unsigned char* in").replace("in: f32", "in: u8"),
        "served well by the L1",
    ),
    "test of its own": (kernel(PADDED.replace("row >= 0", "row >= y - 1")), "no two loops"),
    "deep block": (kernel(CLAMPED).replace("dim3(32, 4)>>>", "dim3(32, 4, 2)>>>"), "more dimensions"),
    "across": (kernel(CLAMPED).replace("row * width + col", "col * height + row"), "side by side"),
    "written before": (
        kernel(CLAMPED, above="if (x == 0) out[0] = 1.0f;\n    ").replace("(in, out, h", "(out, out, h"),
        "written before",
    ),
    "edge of its own": (kernel(INTERIOR, "if (x * y < 6 || x >= width - 2) return;"), "no simple bound"),
    "leaves early": (
        kernel(CLAMPED).replace("    int y =", "    if (x >= width) return;\n    int y ="),
        "before the thread's place",
    ),
    "variable reach": (kernel(CLAMPED).replace("dx <= 2", "dx <= width"), "no two loops"),
    "huge": (
        DOUBLE.replace("dx = -2; dx <= 2", "dx = 0; dx < 64").replace("dy = -1; dy <= 1", "dy = 0; dy < 63"),
        "more",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    assert reason in refusal(ask(text), NAME)


def test_the_inner_of_two_reads_may_be_a_window() -> None:
    change = diff(ask(kernel(GATHERED, WITHIN)), candidates(ask(kernel(GATHERED, WITHIN)), NAME)[0])
    assert "sum += in[(int)window[threadIdx.y + dy + 1][threadIdx.x + dx + 2]];" in change
