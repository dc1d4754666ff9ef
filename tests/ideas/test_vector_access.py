"""Packs of elements a thread: any size, any alignment, any type of the array; or refused with the reason."""

import re

import numpy as np
import pytest

from agent.ideas.idea import Scope
from agent.ideas.source import retune
from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "vector-access"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def scale(
    body: str = "if (i >= n) return;\n    y[i] = 2.0f * x[i] + 1.0f;",
    launch: str = "<<<(n + 127) / 128, 128>>>(x, y, n)",
    element: str = "float",
    dtype: str = "f32",
    index: str = INDEX,
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: {dtype}[n + 8] in integers(-9, 9)
//   buffer   y: {dtype}[n + 8] inout integers(-9, 9)
//   launch   scale{launch}
__global__ void scale(const {element}* x, {element}* y, int n) {{
    {index}
    {body}
}}
"""


def ran(request, candidate, n: int, dtype=np.float32, **extra):  # type: ignore[no-untyped-def]
    x = np.arange(n + 8).astype(dtype)
    y = (np.arange(n + 8) * 3).astype(dtype)
    return x, y, run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=n)["y"]


BODIES = {
    "a bound that binds loosely": "if (i < (n * 2 >> 1)) {\n        y[i] = 2.0f * x[i] + 1.0f;\n    }",
    "leaves": "if (i >= n) return;\n    y[i] = 2.0f * x[i] + 1.0f;",
    "inside": "if (i < n) {\n        y[i] = 2.0f * x[i] + 1.0f;\n    }",
    "through a name": "if (i < n) {\n        int at = i;\n        y[at] = 2.0f * x[at] + 1.0f;\n    }",
    "grid-stride": (
        "for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) "
        "y[j] = 2.0f * x[j] + 1.0f;"
    ),
    "a local in front": "float v = 1.0f;\n    if (i >= n) return;\n    v += 2.0f * x[i];\n    y[i] = v;",
}


@pytest.mark.parametrize("body", BODIES)
def test_every_size_and_width(body: str) -> None:
    launch = "<<<3, 128>>>(x, y, n)" if body == "grid-stride" else "<<<(n + 127) / 128, 128>>>(x, y, n)"
    request = ask(scale(BODIES[body], launch, index="" if body == "grid-stride" else INDEX))
    (first,) = candidates(request, NAME)
    assert first.scope is (Scope.DROP_IN if body == "grid-stride" else Scope.RELAUNCH)
    for width in (2, 4, 8):
        candidate = retune(first, request, {"width": width})
        assert candidate is not None
        for n in (1, 3, 127, 128, 1021, 2051):
            x, y, found = ran(request, candidate, n)
            np.testing.assert_array_equal(found[:n], 2 * x[:n] + 1)
            np.testing.assert_array_equal(found[n:], y[n:])


@pytest.mark.parametrize(("dtype", "element"), [("f64", "double"), ("u8", "unsigned char"), ("i16", "short")])
def test_other_types(dtype: str, element: str) -> None:
    numpy_type = {"f64": np.float64, "u8": np.uint8, "i16": np.int16}[dtype]
    body = "if (i >= n) return;\n    y[i] = x[i] + 3;"
    request = ask(scale(body, element=element, dtype=dtype))
    (candidate,) = candidates(request, NAME)
    assert dict(candidate.values)["width"] == {"f64": 2, "u8": 8, "i16": 8}[dtype]
    x, _, found = ran(request, candidate, 1003, numpy_type)
    np.testing.assert_array_equal(found[:1003], (x[:1003] + 3).astype(numpy_type))


def test_the_grid_covers_the_same_elements() -> None:
    (candidate,) = candidates(ask(scale()), NAME)
    (launch,) = candidate.plan.launches()
    assert (str(launch.grid[0]), str(launch.block[0])) == ("(n + 511) / 512", "128")


def test_pointers_that_are_not_aligned() -> None:
    request = ask(scale(launch="<<<(n + 127) / 128, 128>>>(x + 1, y + 3, n)"))
    (candidate,) = candidates(request, NAME)
    x, y, found = ran(request, candidate, 515)
    np.testing.assert_array_equal(found[3:518], 2 * x[1:516] + 1)
    np.testing.assert_array_equal(found[:3], y[:3])


def test_without_a_bound_the_block_shrinks() -> None:
    request = ask(scale("y[i] = x[i] + 1.0f;", "<<<n / 128, 128>>>(x, y, n)"))
    (candidate,) = candidates(request, NAME)
    (launch,) = candidate.plan.launches()
    assert (str(launch.grid[0]), str(launch.block[0])) == ("n / 128", "32")
    x, _, found = ran(request, candidate, 512)
    np.testing.assert_array_equal(found[:512], x[:512] + 1)


def test_an_element_that_is_read_and_written_at_times() -> None:
    """Old values stay where the branch is not taken, and what was written is read again."""
    body = "if (i >= n) return;\n    if (y[i] > 300.0f) {\n        y[i] = x[i];\n        y[i] *= 2.0f;\n    }"
    request = ask(scale(body))
    (candidate,) = candidates(request, NAME)
    x, y, found = ran(request, candidate, 1021)
    np.testing.assert_array_equal(found[:1021], np.where(y > 300, 2 * x, y)[:1021])


def test_a_branch_on_loaded_values_goes_on_with_the_next_element() -> None:
    body = "if (i >= n) return;\n    float v = y[i];\n    if (v < 30.0f) return;\n    y[i] = v + x[(int)v % 7];"
    request = ask(scale(body))
    (candidate,) = candidates(request, NAME)
    assert "continue;" in candidate.code and "if (i >= n) break;" in candidate.code
    x, y, found = ran(request, candidate, 1021)
    expected = np.where(y < 30, y, y + x[y.astype(int) % 7])
    np.testing.assert_array_equal(found[:1021], expected[:1021])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = y[i] + x[i];", lambda x, y: y + x),
        ("if (x[i] > 9.0f) y[i] = 1.0f;\n    else y[i] = 2.0f;", lambda x, y: np.where(x > 9, 1, 2)),
        ("if (x[i] > 9.0f || y[i] > 6.0f) y[i] = 1.0f;", lambda x, y: np.where((x > 9) | (y > 6), 1, y)),
        (
            "if (x[i] > 9.0f) {\n        y[i] = 1.0f;\n    } else { y[i] += 2.0f; }",
            lambda x, y: np.where(x > 9, 1, y + 2),
        ),
    ],
)
def test_the_old_value_is_loaded_where_it_counts(body: str, expected) -> None:  # type: ignore[no-untyped-def]
    request = ask(scale(f"if (i >= n) return;\n    {body}"))
    (candidate,) = candidates(request, NAME)
    assert ("auto y_pack = load_pack" in candidate.code) is ("2.0f;" not in body or "+=" in body)
    x, y, found = ran(request, candidate, 1021)
    np.testing.assert_array_equal(found[:1021], expected(x, y)[:1021])


def plane(index: str = "row * cols + col", cols: int = 256) -> str:
    return f"""\
// cuda-lsp: workload
//   size     rows = 64, cols = {cols}
//   buffer   x: f32[rows * cols] in
//   buffer   bias: f32[cols] in
//   buffer   y: f32[rows * cols] out
//   launch   add<<<dim3((cols + 31) / 32, (rows + 3) / 4), dim3(32, 4)>>>(x, bias, y, rows, cols)
__global__ void add(const float* x, const float* bias, float* y, int rows, int cols) {{
\tint col = blockIdx.x * blockDim.x + threadIdx.x;
\tint row = blockIdx.y * blockDim.y + threadIdx.y;
\tif (row < rows && col < cols) {{
\t\tint here = {index};
\t\t// a row's element
\t\ty[here] = x[here] + bias[col] * col;
\t}}
}}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_rows_of_a_plane(line_end: str) -> None:
    request = ask(plane().replace("\n", line_end))
    (candidate,) = candidates(request, NAME)
    assert "&x[row * cols + col_first]" in candidate.code and "// a row's element" in candidate.code
    assert "\n\t" in candidate.code and re.search(r"\n {1,12}\S", candidate.code) is None
    for rows, cols in ((5, 128), (3, 67)):
        x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
        bias = np.arange(cols, dtype=np.float32)
        found = run(rewritten(request, candidate), request.workload, {"x": x, "bias": bias}, rows=rows, cols=cols)["y"]
        np.testing.assert_array_equal(found.reshape(rows, cols), x + bias * np.arange(cols))


REFUSED = {
    "in place": (scale(launch="<<<(n + 127) / 128, 128>>>(y, y, n)"), "may share a buffer"),
    "a grid that may fall short": (scale(launch="<<<n / 128, 128>>>(x, y, n)"), "may not reach n"),
    "the thread's own number": (scale("if (i >= n) return;\n    y[i] = x[i] + threadIdx.x;"), "one coordinate alone"),
    "a stride": (scale("if (2 * i >= n) return;\n    y[2 * i] = x[i];"), "side by side"),
    "a neighbour that is written": (
        scale("if (i >= n) return;\n    y[i] = x[i];\n    y[i + 1] += 1.0f;"),
        "written at one index",
    ),
    "at times only": (
        scale("if (i >= n) return;\n    if (n > 5 * i) y[i] = 1.0f;").replace("f32[n + 8]", "f32[n / 5 + 1]"),
        "inside a branch",
    ),
    "an atomic": (scale("if (i >= n) return;\n    atomicAdd(&y[i], x[i]);"), "atomicAdd"),
    "a barrier": (scale("if (i >= n) return;\n    __syncthreads();\n    y[i] = x[i];"), "work together"),
    "packs already": (scale("if (i >= n) return;\n    y[i] = x[i];", element="float4", dtype="f32x4"), "no element of"),
    "volatile": (scale().replace("float* y", "volatile float* y"), "volatile"),
    "rows that start anywhere": (plane(cols=255), "do not start aligned"),
    "a sum carried on": (
        scale(
            "float s = 0.0f;\n"
            "    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) {\n"
            "        s += x[j];\n        y[j] = s;\n    }",
            "<<<3, 128>>>(x, y, n)",
            index="",
        ),
        "carried from one element to the next",
    ),
    "a loop for each element": (
        scale("if (i >= n) return;\n    float s = x[i];\n    for (int k = 0; k < n; ++k) s += x[k];\n    y[i] = s;"),
        "an element's work is a loop",
    ),
    "a stencil": (
        scale("if (i >= n) return;\n    y[i] = x[i] + x[i + 1] + x[i + 2] + x[i > 2 ? 3 : i + 4] + x[(i + 7) % n];"),
        "do not start aligned",
    ),
    "a column": (plane("col * rows + row"), "side by side"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_near_misses(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_an_extern_block_takes_no_template() -> None:
    text = scale().replace("__global__", 'extern "C" {\n__global__') + "}\n"
    assert 'extern "C"' in refusal(ask(text), NAME)


def test_it_does_not_apply_twice() -> None:
    request = ask(scale())
    (candidate,) = candidates(request, NAME)
    assert refusal(after(request, candidate), NAME)


def test_the_helpers_are_commented_and_the_work_is_not_repeated() -> None:
    request = ask(scale())
    (candidate,) = candidates(request, NAME)
    assert candidate.code.startswith("// `width` neighbouring elements")
    assert candidate.code.count("2.0f *") == 1 and "+    #pragma unroll" in diff(request, candidate)


def rows(body: str, barrier: str = "__syncthreads();", cols: int = 1024) -> str:
    """A block walks over a row."""
    return f"""\
// cuda-lsp: workload
//   size     rows = 40, cols = {cols}
//   buffer   x: f32[rows * cols] in integers(-9, 9)
//   buffer   y: f32[rows * cols] out
//   launch   each<<<rows, 64>>>(x, y, cols)
__global__ void each(const float* x, float* y, int cols) {{
    __shared__ float s[64];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f, most = -1e30f;
    for (int i = t; i < cols; i += blockDim.x) {{
        float v = x[row * cols + i];
        sum += v * v;
        most = fmaxf(most, v);
    }}
    s[t] = sum + 0.0f * most;
    {barrier}
    float total = 0.0f;
    for (int k = 0; k < 64; ++k) total += s[k];
    {body}
}}
"""


SCALED = "for (int i = t; i < cols; i = i + blockDim.x) y[row * cols + i] = x[row * cols + i] + total;"


def test_every_loop_along_a_row() -> None:
    request = ask(rows(SCALED))
    (candidate,) = candidates(request, NAME)
    assert candidate.scope is Scope.DROP_IN and candidate.code.count("+= 4 * ") == 2
    assert candidate.code.count("if (i >= cols) break;") == 1  # the sums must not take what is not there
    for cols in (64, 1, 130, 259):
        x = np.random.default_rng(cols).integers(-9, 9, (3, cols)).astype(np.float32)
        found = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=cols)["y"]
        np.testing.assert_array_equal(found.reshape(3, cols), x + (x * x).sum(axis=1, keepdims=True))


LOOPS = {
    "an element of this thread afterwards": (
        rows("for (int i = t; i < cols; i += blockDim.x) y[row * cols + i] = 1.0f;\n    y[row * cols + t] += sum;"),
        "no barrier between",
    ),
    "a running value": (
        rows(
            "float r = 0.0f;\n"
            "    for (int i = t; i < cols; i += blockDim.x) { r = 0.5f * r + 1.0f; y[row * cols + i] = r; }"
        ),
        "carried from one element to the next",
    ),
    "an element's own thread": (
        rows("for (int i = t; i < cols; i += blockDim.x) y[row * cols + i] = x[row * cols + i] + t;"),
        "depends on the thread",
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops_that_stay(case: str) -> None:
    """The first loop of the kernel takes packs; the second, which is not proved to be free, is left as it is."""
    text, words = LOOPS[case]
    request = ask(text)
    if case != "an element of this thread afterwards":
        (candidate,) = candidates(request, NAME)
        assert candidate.code.count("+= 4 * ") == 1
    only_second = text.replace(
        "int i = t; i < cols; i += blockDim.x) {\n        float v",
        "int i = t + 1; i < cols; i += 2) {\n        float v",
    )
    assert words in refusal(ask(only_second), NAME)


def test_rows_that_are_not_aligned_stay() -> None:
    assert "do not start aligned" in refusal(ask(rows(SCALED, cols=1023)), NAME)


SUM = """\
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f32[n] in integers(-9, 9)
//   buffer   y: f32[4] inout zeros
//   launch   sum<<<4, 64>>>(x, y, n)
__global__ void sum(const float* x, float* y, int n) {
    float s = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
    STORED
}
"""


def test_what_a_block_makes_of_its_share_may_be_looked_at() -> None:
    """All threads' sums go to one place: which block added what does not matter. One sum a block: it does."""
    request = ask(SUM.replace("STORED", "atomicAdd(&y[0], s);"))
    (candidate,) = candidates(request, NAME)
    x = np.random.default_rng(1).integers(-9, 9, 1003).astype(np.float32)
    found = run(rewritten(request, candidate), request.workload, {"x": x, "y": np.zeros(4, np.float32)}, n=1003)["y"]
    assert found[0] == x.sum()
    kept = SUM.replace("STORED", "if (threadIdx.x == 0) y[blockIdx.x] = s;")
    assert "each block would add up other elements" in refusal(ask(kept), NAME)
    by_block = SUM.replace("STORED", "atomicAdd(&y[blockIdx.x], s);")
    assert "each block would add up other elements" in refusal(ask(by_block), NAME)
    walk = "int i = threadIdx.x; i < n; i += blockDim.x"
    by_thread = kept.replace("int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x", walk)
    by_thread = by_thread.replace("if (threadIdx.x == 0) y[blockIdx.x]", "y[threadIdx.x % 4]")
    assert "each thread would add up other elements" in refusal(ask(by_thread), NAME)


SHRINKING = """\
// cuda-lsp: workload
//   size     n = 4096
//   buffer   x: f16[n] in normal
//   buffer   y: f32[n] out
//   launch   widen<<<(n + min(n, 256) - 1) / min(n, 256), min(n, 256)>>>(x, y, n)
__global__ void widen(const __half* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __half2float(x[i]);
}
"""


@pytest.mark.parametrize("n", [1, 7, 200, 256, 1000, 4096])
def test_blocks_that_shrink_with_a_small_size(n: int) -> None:
    """`min(n, 256)` threads: whole blocks at every size, as the kernel's test keeps the further threads away."""
    text = "#include <cuda_fp16.h>\n" + SHRINKING
    request = ask(text)
    (made,) = candidates(request, NAME)
    (launch,) = made.plan.launches()
    assert str(launch.block[0]) == "256"
    given = np.arange(n).astype(np.float16)
    found = run(rewritten(request, made), request.workload, {"x": given}, n=n)["y"]
    np.testing.assert_array_equal(found, given.astype(np.float32))


def test_shrinking_blocks_need_a_test_or_a_size_that_fills_them() -> None:
    head = "#include <cuda_fp16.h>\n"
    unbounded = SHRINKING.replace("if (i < n) ", "").replace("(n + min(n, 256) - 1) / min(n, 256)", "n / min(n, 256)")
    assert "width is no fixed number" in refusal(ask(head + unbounded), NAME)
    assert "width is no fixed number" in refusal(ask(head + SHRINKING.replace("n = 4096", "n = 100")), NAME)
