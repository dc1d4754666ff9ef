"""Trees become shuffles: right for every spelling that is recognised, refused where the tree is not what it seems."""

import numpy as np
import pytest

from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "warp-shuffle-reduction"


def kernel(
    tree: str,
    *,
    tail: str = "if (t == 0) y[blockIdx.x] = s[0];",
    store: str = "s[t] = v;\n    __syncthreads();",
    threads: int = 256,
    type: str = "float",
    dtype: str = "f32",
    zero: str = "0",
    fold: str = "v += x[i]",
    head: str = "",
    width: int | None = None,
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 5000
//   buffer   x: {dtype}[n] in
//   buffer   y: {dtype}[4] out
//   launch   reduce<<<4, {threads}>>>(x, y, n)
__global__ void reduce(const {type}* x, {type}* y, int n) {{
    __shared__ {type} s[{width or threads}];
    int t = threadIdx.x;
    {head}
    {type} v = {zero};
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {fold};
    {store}
    {tree}
    {tail}
}}
"""


SUM = """for (int h = blockDim.x / 2; h > 0; h >>= 1) {
        if (t < h) s[t] += s[t + h];
        __syncthreads();
    }"""

SPELLINGS = {
    "halving by shift": SUM,
    "halving by division": SUM.replace("h >>= 1", "h /= 2"),
    "written out": SUM.replace("s[t] += s[t + h]", "s[t] = s[t] + s[t + h]").replace("h >>= 1", "h = h / 2"),
    "constant size": SUM.replace("blockDim.x / 2", "128"),
    "mirrored test": SUM.replace("t < h", "h > t").replace("h > 0", "h >= 1"),
    "while": """int h = blockDim.x / 2;
    while (h != 0) {
        if (t < h) s[t] += s[t + h];
        __syncthreads();
        h /= 2;
    }""",
    "through a local": SUM.replace("if (t < h) s[t] += s[t + h];", "if (t < h) { float o = s[t + h]; s[t] += o; }"),
    "doubling by modulo": """for (unsigned h = 1; h < blockDim.x; h *= 2) {
        if (t % (2 * h) == 0) s[t] += s[t + h];
        __syncthreads();
    }""",
    "doubling by index": """for (int h = 1; h < 256; h <<= 1) {
        int k = 2 * h * t;
        if (k < 256) s[k] += s[k + h];
        __syncthreads();
    }""",
    "barrier first": """for (int h = 1; h < 256; h *= 2) {
        __syncthreads();
        if (t % (2 * h) == 0) s[t] += s[t + h];
    }""",
}


def shares(values: np.ndarray, threads: int = 256) -> list[np.ndarray]:
    """What each of the four blocks walks over."""
    blocks = np.arange(values.size) // threads % 4
    return [values[blocks == block] for block in range(4)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_sums_as_numpy_does(spelling: str) -> None:
    request = ask(kernel(SPELLINGS[spelling]))
    x = np.random.default_rng(1).integers(-50, 50, 5000).astype(np.float32)  # sums of such are exact in any order
    for candidate in candidates(request, NAME):
        assert SPELLINGS[spelling].split("\n")[0] not in candidate.code
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, [share.sum() for share in shares(x)])


FOLDS = {
    "fmaxf": ("float", "f32", "-INFINITY", "v = fmaxf(v, x[i])", "s[t] = fmaxf(s[t], s[t + h])", np.max),
    "max of ints": ("int", "i32", "-2147483647", "v = max(v, x[i])", "s[t] = max(s[t + h], s[t])", np.max),
    "if": ("double", "f64", "-1e300", "v = fmax(v, x[i])", "if (s[t] < s[t + h]) s[t] = s[t + h]", np.max),
    "ternary": (
        "unsigned",
        "u32",
        "4294967295u",
        "v = min(v, x[i])",
        "s[t] = s[t] < s[t + h] ? s[t] : s[t + h]",
        np.min,
    ),
    "long long": ("long long", "i64", "0", "v += x[i]", "s[t] += s[t + h]", np.sum),
    "xor": ("unsigned", "u32", "0", "v ^= x[i]", "s[t] ^= s[t + h]", np.bitwise_xor.reduce),
    "or": ("unsigned", "u32", "0", "v |= x[i]", "s[t] |= s[t + h]", np.bitwise_or.reduce),
}


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("threads", [32, 64, 512])
def test_operations_and_types(fold: str, threads: int) -> None:
    type_name, dtype, zero, step, combine, golden = FOLDS[fold]
    tree = SUM.replace("s[t] += s[t + h]", combine)
    request = ask(kernel(tree, threads=threads, type=type_name, dtype=dtype, zero=zero, fold=step))
    numpy_type = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "u32": np.uint32, "i64": np.int64}[dtype]
    x = np.random.default_rng(2).integers(1, 2**20, 5000).astype(numpy_type)
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, np.array([golden(share) for share in shares(x, threads)], numpy_type))


def test_a_result_that_all_threads_read_is_broadcast() -> None:
    tail = "float total = s[0] * 2.0f;\n    if (t == 77) y[blockIdx.x] = total + s[0];"
    request = ask(kernel(SUM, tail=tail))
    x = np.arange(5000, dtype=np.float32) % 7
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, [3 * share.sum() for share in shares(x)])


def test_only_what_thread_0_alone_reads_stays_with_it() -> None:
    def variants(tail: str) -> list[str]:
        return [candidate.variant for candidate in candidates(ask(kernel(SUM, tail=tail)), NAME)]

    assert variants("if (t == 0) y[blockIdx.x] = s[0];")[0] == "first thread has it"
    assert variants("if (0 == t) { if (n > 3) y[blockIdx.x] = s[0]; }")[0] == "first thread has it"
    assert "first thread has it" not in variants("if (t == 1) y[blockIdx.x] = s[0];")
    assert "first thread has it" not in variants("if (t == 0) ; else if (t == 1) y[blockIdx.x] = s[0];")
    assert "first thread has it" not in variants("float v2 = s[0]; if (t == 0) y[blockIdx.x] = v2;")


def test_values_accumulated_in_shared_memory() -> None:
    store = "s[t] = v;\n    s[t] += 1.0f;\n    __syncthreads();"
    request = ask(kernel(SUM, store=store))
    x = np.arange(5000, dtype=np.float32) % 7
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, [share.sum() + 256 for share in shares(x)])


LOOPED = """\
// cuda-lsp: workload
//   size     rows = 7, cols = 300
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows] out
//   launch   reduce<<<2, 64>>>(x, y, rows, cols)
__global__ void reduce(const float* x, float* y, int rows, int cols) {
    __shared__ float s[64];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float v = 0.0f;
        for (int i = threadIdx.x; i < cols; i += blockDim.x) v += x[row * cols + i];
        s[threadIdx.x] = v;
        __syncthreads();
        for (int h = 32; h > 0; h /= 2) {
            if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
            __syncthreads();
        }
        if (threadIdx.x == 0) y[row] = s[0];
    }
}
"""


def test_a_tree_in_a_loop_gets_the_barrier_that_its_own_rounds_gave() -> None:
    """Thread 0 alone reads the result, so the original needs no barrier before the next turn; shuffles do."""
    request = ask(LOOPED)
    x = np.random.default_rng(3).integers(0, 9, 7 * 300).astype(np.float32)
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=7, cols=300)["y"]
        np.testing.assert_array_equal(y, x.reshape(7, 300).sum(axis=1))


TWICE = """\
// cuda-lsp: workload
//   size     rows = 3, cols = 200
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows] out
//   launch   spread<<<rows, dim3(32, 4)>>>(x, y, cols)
__global__ void spread(const float* x, float* y, int cols) {
    __shared__ float s[128];
    const int tid = threadIdx.y * blockDim.x + threadIdx.x;
    float low = INFINITY, high = -INFINITY;
    for (int i = tid; i < cols; i += 128) {
        low = fminf(low, x[blockIdx.x * cols + i]);
        high = fmaxf(high, x[blockIdx.x * cols + i]);
    }
    s[tid] = low;
    __syncthreads();
    for (int h = 64; h > 0; h /= 2) {
        if (tid < h) s[tid] = fminf(s[tid], s[tid + h]);
        __syncthreads();
    }
    low = s[0];
    __syncthreads();
    s[tid] = high;
    __syncthreads();
    for (int h = 64; h > 0; h /= 2) {
        if (tid < h) s[tid] = fmaxf(s[tid], s[tid + h]);
        __syncthreads();
    }
    high = s[0];
    if (tid == 0) y[blockIdx.x] = high - low;
}
"""


def test_two_trees_share_an_array_in_a_block_of_two_dimensions() -> None:
    request = ask(TWICE)
    x = np.random.default_rng(4).standard_normal(600).astype(np.float32)
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, rows=3, cols=200)["y"]
        rows = x.reshape(3, 200)
        np.testing.assert_array_equal(y, rows.max(axis=1) - rows.min(axis=1))


def test_a_type_parameter_gives_a_template_helper() -> None:
    text = kernel(SUM).replace("const float* x, float* y", "const T* x, T* y").replace("float v", "T v")
    text = text.replace("__shared__ float", "__shared__ T").replace("__global__", "template <typename T>\n__global__")
    request = ask(text.replace("reduce<<<", "reduce<float><<<"))
    x = np.arange(5000, dtype=np.float32) % 5
    for candidate in candidates(request, NAME):
        assert "template <typename T>\n__device__" in candidate.code
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, [share.sum() for share in shares(x)])


def test_it_does_not_apply_to_its_own_result() -> None:
    request = ask(kernel(SUM))
    for candidate in candidates(request, NAME):
        assert "no reduction tree" in refusal(after(request, candidate), NAME)


def test_helpers_take_no_name_of_the_file() -> None:
    text = "__device__ float block_sum(float v) { return v; }\n" + kernel(SUM)
    for candidate in candidates(ask(text), NAME):
        assert "float block_sum(" not in candidate.code and "block_sum" in candidate.code


def test_the_helper_stands_above_the_kernels_own_comment() -> None:
    request = ask(kernel(SUM))
    text = rewritten(request, candidates(request, NAME)[0]).document.text.decode()
    assert text.index("block_sum_in_first(float value") < text.index("// cuda-lsp: workload") < text.index("__global__")


@pytest.mark.parametrize("tree", [SUM, SPELLINGS["while"]])
def test_carriage_returns_change_nothing_else(tree: str) -> None:
    plain, wide = ask(kernel(tree)), ask(kernel(tree).replace("\n", "\r\n"))
    for one, other in zip(candidates(plain, NAME), candidates(wide, NAME), strict=True):
        text = rewritten(wide, other).document.text
        assert text == rewritten(plain, one).document.text.replace(b"\n", b"\r\n")


def test_the_diff_of_a_plain_reduction() -> None:
    request = ask(kernel(SUM))
    changed = [line for line in diff(request, candidates(request, NAME)[0]).splitlines() if line.startswith(("-", "+"))]
    inside = [line for line in changed if not line.startswith(("---", "+++"))][-9:]
    assert inside == [
        "-    s[t] = v;",
        "-    __syncthreads();",
        "-    for (int h = blockDim.x / 2; h > 0; h >>= 1) {",
        "-        if (t < h) s[t] += s[t + h];",
        "-        __syncthreads();",
        "-    }",
        "-    if (t == 0) y[blockIdx.x] = s[0];",
        "+    v = block_sum_in_first(v, s);",
        "+    if (t == 0) y[blockIdx.x] = v;",
    ]


REFUSED = {
    "no barrier in the rounds": (kernel(SUM.replace("        __syncthreads();\n", "")), "no reduction tree"),
    "no barrier before": (kernel(SUM, store="s[t] = v;"), "no barrier"),
    "part of the block": (kernel(SUM.replace("blockDim.x / 2", "64")), "folds 128 values but the block has 256"),
    "part of the threads": (kernel(SUM.replace("t < h", "t < h && t < n")), "no reduction tree"),
    "not a power of two": (kernel(SUM, threads=192), "no reduction tree"),
    "less than a warp": (kernel(SUM, threads=16), "no power of two between"),
    "early return": (kernel(SUM, head="if (blockIdx.x * blockDim.x + t >= n) return;"), "line 9"),
    "under a condition": (
        kernel(SUM)
        .replace("    s[t] = v;", "    if (x[t] > 0) {\n    s[t] = v;")
        .replace("    if (t == 0)", "    }\n    if (t == 0)"),
        "may differ",
    ),
    "a partial value is read": (kernel(SUM, tail="if (t == 0) y[blockIdx.x] = s[0] + s[1];"), "partial value"),
    "volatile": (kernel(SUM).replace("__shared__ float", "volatile __shared__ float"), "volatile"),
    "a type that no shuffle takes": (kernel(SUM, type="short", dtype="i16"), "short"),
    "block of another size at run time": (kernel(SUM).replace("<<<4, 256>>>", "<<<4, n / 20>>>"), "no reduction tree"),
    "a difference is no fold": (kernel(SUM.replace("+=", "-=")), "no reduction tree"),
    "shared through a pointer": (
        kernel(SUM, head="float* p = s;", tail="if (t == 0) y[blockIdx.x] = p[0];"),
        "pointer p",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_a_return_that_whole_blocks_take_is_no_obstacle() -> None:
    request = ask(kernel(SUM, head="if (blockIdx.x >= n) return;"))
    x = np.ones(5000, np.float32)
    for candidate in candidates(request, NAME):
        y = run(rewritten(request, candidate), request.workload, {"x": x}, n=5000)["y"]
        np.testing.assert_array_equal(y, [share.sum() for share in shares(x)])
