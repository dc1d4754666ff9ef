"""Kernels without a word of host code: extents, roles and launches that follow from their text, or the reason why not.

What is expected is worked out by hand from each kernel."""

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent.inference.probing import Limits, Probed, Stopped, probe
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch
from agent.workload.directive import format_directive, read_directive
from agent.workload.expression import Expression
from agent.workload.workload import Access

I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"  # noqa: E741
TRANSPOSE = """
#define TILE 32
#define ROWS 8
__global__ void k(const float* in, float* out, int width, int height) {
    __shared__ float t[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = t[threadIdx.x][threadIdx.y + j];
}"""
MATMUL = """
#define T 16
__global__ void k(const float* a, const float* b, float* c, int n) {
    __shared__ float s[T][T], t[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n / T; k++) {
        s[threadIdx.y][threadIdx.x] = a[row * n + k * T + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k * T + threadIdx.y) * n + col];
        __syncthreads();
        for (int j = 0; j < T; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}"""
REDUCTION = f"""
__global__ void k(const float* x, float* out, int n) {{
    extern __shared__ float s[];
    {I}
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {{
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }}
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}}"""
SPMV = f"""
__global__ void k(const int* start, const int* column, const float* value, const float* x, float* y, int rows) {{
    {I}
    if (i >= rows) return;
    float sum = 0;
    for (int j = start[i]; j < start[i + 1]; j++) sum += value[j] * x[column[j]];
    y[i] = sum;
}}"""
SOFTMAX = """
__global__ void k(const float* x, float* y, int rows, int cols) {
    const float* row = x + blockIdx.x * cols;
    float sum = 0;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += row[j];
    for (int j = threadIdx.x; j < cols; j += blockDim.x) y[blockIdx.x * cols + j] = row[j] / sum;
}"""
STENCIL3 = """
__global__ void k(const double* a, double* b, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y * blockDim.y + threadIdx.y + 1;
    int k = blockIdx.z * blockDim.z + threadIdx.z + 1;
    if (i < nx - 1 && j < ny - 1 && k < nz - 1) {
        int c = (k * ny + j) * nx + i;
        b[c] = a[c] + a[c - 1] + a[c + 1] + a[c - nx] + a[c + nx] + a[c - nx * ny] + a[c + nx * ny];
    }
}"""


def kernel(parameters: str, body: str, head: str = "", index: str = I) -> str:
    return f"{head}\n__global__ void k({parameters}) {{ {index} {body} }}\n"


def probed(text: str, seconds: float = 120) -> Probed:
    document = parse(text.encode())
    return probe(document, document.kernel("k"), None, Limits(seconds))


def told(text: str) -> tuple[dict[str, str], dict[str, str], str]:
    """Extents and roles by pointer, and the launch."""
    found = probed(text)
    assert found.workload is not None, found.reason
    assert all(buffer.probed or buffer.symbol for buffer in found.workload.buffers)
    extents = {buffer.name: str(buffer.extent) for buffer in found.workload.buffers}
    roles = {buffer.name: buffer.access.value for buffer in found.workload.buffers}
    return extents, roles, found.launch


WHOLE: Mapping[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    "a guard": (
        kernel("int n, float a, const float* x, float* y", "if (i < n) y[i] = a * x[i] + y[i];"),
        {"x": "n", "y": "n"}, {"x": "in", "y": "inout"}, "k<<<ceil_div(n, 128), 128>>>(n, a, x, y)",
    ),
    "tiles that want whole multiples": (
        MATMUL, {"a": "n * n", "b": "n * n", "c": "n * n"}, {"a": "in", "b": "in", "c": "out"},
        "k<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n)",
    ),
    "a padded tile": (
        TRANSPOSE, {"in": "width * height", "out": "width * height"}, {"in": "in", "out": "out"},
        "k<<<dim3(ceil_div(width, 32), ceil_div(height, 32)), dim3(32, 8)>>>(in, out, width, height)",
    ),
    "partial sums": (
        REDUCTION, {"x": "n", "out": "ceil_div(n, 128)"}, {"x": "in", "out": "out"},
        "k<<<ceil_div(n, 128), 128, 512>>>(x, out, n)",
    ),
    "a block for each row": (
        SOFTMAX, {"x": "rows * cols", "y": "rows * cols"}, {"x": "in", "y": "out"},
        "k<<<rows, 128>>>(x, y, rows, cols)",
    ),
    "three dimensions with a rim": (
        STENCIL3, {"a": "nx * ny * nz - nx - 1", "b": "nx * ny * nz - nx * ny - nx - 1"}, {"a": "in", "b": "out"},
        "k<<<dim3(ceil_div(nx - 2, 8), ceil_div(ny - 2, 8), ceil_div(nz - 2, 4)), dim3(8, 8, 4)>>>(a, b, nx, ny, nz)",
    ),
    "neighbours without a guard": (
        kernel("const float* x, float* y, int n", "if (i < n) y[i] = x[i - 1] + x[i + 1];"),
        {"x": "n + 2", "y": "n"}, {"x": "in", "y": "out"}, "k<<<ceil_div(n, 128), 128>>>(x + 1, y, n)",
    ),
    "neighbours with a guard": (
        kernel("const float* x, float* y, int n", "if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i + 1];"),
        {"x": "n", "y": "n - 1"}, {"x": "in", "y": "out"}, "k<<<ceil_div(n - 1, 128), 128>>>(x, y, n)",
    ),
    "a batch with a leading dimension": (
        kernel("const float* a, const float* b, float* c, int batch, int n, int lda",
               "int z = blockIdx.z; if (z < batch && i < n) c[z * n + i] = a[z * lda + i] * b[i];"),
        {"a": "batch * lda + n - lda", "b": "n", "c": "batch * n"}, {"a": "in", "b": "in", "c": "out"},
        "k<<<dim3(ceil_div(n, 128), 1, batch), 128>>>(a, b, c, batch, n, lda)",
    ),
    "a thread for each of a product": (
        kernel("const float* x, const float* g, float* y, int N, int C, int HW",
               "if (i < N * C * HW) y[i] = x[i] * g[i / HW % C];"),
        {"x": "N * C * HW", "g": "C", "y": "N * C * HW"}, {"x": "in", "g": "in", "y": "out"},
        "k<<<ceil_div(N * C * HW, 128), 128>>>(x, g, y, N, C, HW)",
    ),
    "no guard, vectors": (
        kernel("const float4* x, float4* y", "y[i] = x[i];", index="int i = blockIdx.x * 256 + threadIdx.x;"),
        {"x": "blocks * 256", "y": "blocks * 256"}, {"x": "in", "y": "out"}, "k<<<blocks, 256>>>(x, y)",
    ),
    "in place with a stride": (
        kernel("float* x, int n, int stride", "if (i < n) x[i * stride] *= 2;"),
        {"x": "n * stride + 1 - stride"}, {"x": "inout"}, "k<<<ceil_div(n, 128), 128>>>(x, n, stride)",
    ),
    "a warp for each row, a constant width": (
        kernel("const float* x, float* y, int n", """int w = i / 32, l = i % 32; if (w < n) { float s = x[w * 64 + l]
               + x[w * 64 + 32 + l]; for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o);
               if (l == 0) y[w] = s; }"""),
        {"x": "n * 64", "y": "n"}, {"x": "in", "y": "out"}, "k<<<ceil_div(n, 4), 128>>>(x, y, n)",
    ),
    "a stride of the grid": (
        kernel("const float* x, float* y, size_t n",
               "for (size_t j = i; j < n; j += (size_t)gridDim.x * blockDim.x) y[j] = 2 * x[j];"),
        {"x": "n", "y": "n"}, {"x": "in", "y": "out"}, "k<<<ceil_div(n, 128), 128>>>(x, y, n)",
    ),
    "a stand-in for a type": (
        kernel("const T* x, T* y, int n", "if (i < n && x[i] > T(0)) y[i] = x[i];", "template <typename T>"),
        {"x": "n", "y": "n"}, {"x": "in", "y": "out"}, "k<float><<<ceil_div(n, 128), 128>>>(x, y, n)",
    ),
    "weights in constant memory": (
        kernel("const float* x, float* y, int n", "if (i < n) y[i] = w[0] * x[i] + w[4];", "__constant__ float w[5];"),
        {"x": "n", "y": "n", "w": "5"}, {"x": "in", "y": "out", "w": "in"}, "k<<<ceil_div(n, 128), 128>>>(x, y, n)",
    ),
    "a guard that only some accesses have": (
        kernel("const float* p, float* v, int n",
               "float s = 0; for (int j = 0; j < n; j++) s += p[j] - p[i]; v[i] = s;"),
        {"p": "n", "v": "n"}, {"p": "in", "v": "out"}, "k<<<n / 128, 128>>>(p, v, n)",
    ),
    "nothing to vary": (
        kernel("const float* x, float* y", "if (i < 300) y[i + 2] = x[2 * i];"),
        {"x": "599", "y": "302"}, {"x": "in", "y": "out"}, "k<<<3, 128>>>(x, y)",
    ),
    "a block for each pair": (
        kernel("const float* x, float* y, int n", """int j = blockIdx.x, q = blockIdx.y; float s = 0;
               for (int c = threadIdx.x; c < 64; c += blockDim.x) s += x[j * 64 + c] * x[q * 64 + c];
               if (threadIdx.x == 0) y[j * n + q] = s;"""),
        {"x": "n * 64", "y": "n * n"}, {"x": "in", "y": "out"}, "k<<<dim3(n, n), 128>>>(x, y, n)",
    ),
    "structs of one type": (
        kernel("const P* p, float* y, int n", "if (i < n) y[i] = p[i].x + p[i].z;", "struct P { float x, y, z; };"),
        {"p": "n", "y": "n"}, {"p": "in", "y": "out"}, "k<<<ceil_div(n, 128), 128>>>(p, y, n)",
    ),
    "a pointer that nothing touches": (
        kernel("const float* x, float* y, float* unused, int n", "if (i < n) y[i] = x[i];"),
        {"x": "n", "y": "n", "unused": "1"}, {"x": "in", "y": "out", "unused": "in"},
        "k<<<ceil_div(n, 128), 128>>>(x, y, unused, n)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_whole_workloads(name: str) -> None:
    text, extents, roles, launch = WHOLE[name]
    assert told(text) == (extents, roles, launch)


def test_what_is_found_reads_back_as_a_directive_and_binds() -> None:
    found = probed(REDUCTION)
    assert found.workload is not None
    text = found.draft + REDUCTION.lstrip()
    document = parse(text.encode())
    again = read_directive(document, document.kernel("k"))
    assert again is not None and all(buffer.probed for buffer in again.buffers)
    assert format_directive(again) == format_directive(found.workload)
    bound = bind(again, again.plan, {"n": 1000}, document)
    assert {buffer.name: buffer.count for buffer in bound.buffers} == {"x": 1000, "out": 8}
    assert "Nothing is known of bounds" in found.draft and "assumed: " in found.draft


# What stops it -------------------------------------------------------------------------------------------------------


def test_a_sparse_product_stops_where_columns_are_loaded_and_keeps_the_rest() -> None:
    found = probed(SPMV)
    assert found.workload is None
    extents = {one.name: one.extent for one in found.found}
    assert extents == {"start": "rows + 1", "column": None, "value": None, "x": None, "y": "rows"}
    reasons = {stop.what: stop.reason for stop in found.stops}
    assert reasons["x"] == "where it is read depends on values loaded from `column`"
    assert reasons["column"] == "where it is read depends on values loaded from `start`"
    assert {stop.line for stop in found.stops} == {SPMV.splitlines().index(next(
        line for line in SPMV.splitlines() if "column[j]" in line)) + 1}  # fmt: skip
    assert "column: i32[?] probed in" in found.draft


@pytest.mark.parametrize(
    ("parameters", "body", "open_", "reason"),
    [
        ("const int* x, int* h, int n", "if (i < n) atomicAdd(h + x[i], 1);", "h", "values loaded from `x`"),
        (
            "const int* length, const float* x, float* y, int n",
            "if (i < n) { float s = 0; for (int j = 0; j < length[i]; j++) s += x[j * n + i]; y[i] = s; }",
            "x", "how far it is read depends on values loaded from `length`",
        ),
        (
            "const int* a, int* y, int n, int m",
            """if (i < m) { int low = 0, high = n; while (low < high) { int q = (low + high) / 2;
               if (a[q] < i) low = q + 1; else high = q; } y[i] = low; }""",
            "a", "depends on values loaded from `a`",
        ),
        (
            "const unsigned char* x, int* h, int n",
            """__shared__ int s[256]; s[threadIdx.x] = 0; __syncthreads(); if (i < n) atomicAdd(s + x[i], 1);
               __syncthreads(); h[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];""",
            "x", "indices of shared memory",
        ),
        ("const P* p, float* y, int n", "if (i < n) y[i] = p[i].a + p[i].b;", "p", "structs of 8 bytes"),
    ],
    ids=["histogram", "lengths", "binary search", "histogram in shared memory", "structs of several types"],
)  # fmt: skip
def test_what_hangs_on_data_stays_open(parameters: str, body: str, open_: str, reason: str) -> None:
    found = probed(kernel(parameters, body, "struct P { float a; int b; };"))
    assert found.workload is None
    assert [stop.what for stop in found.stops] == [open_]
    assert reason in found.stops[0].reason


def test_accesses_that_were_not_seen_are_said() -> None:
    found = probed(kernel("const float* x, float* y, int n", "if (i < n) y[i] = x[i + 100000000];"))
    (stop,) = found.stops
    assert stop.what == "x" and "accesses were not seen" in stop.reason
    even = probed(kernel("float* x, int n", "if (n % 2) __trap(); x[n + i] = 1;"))
    assert even.workload is not None and [size.multiple for size in even.workload.sizes] == [128]


def test_rows_that_have_to_be_aligned_are_tried_at_multiples() -> None:
    body = "if (i < n / 4) ((float4*)(y + blockIdx.y * n))[i] = ((const float4*)(x + blockIdx.y * n))[i];"
    found = probed(kernel("const float* x, float* y, int n", body))
    assert found.workload is not None, found.reason
    assert {one.name: one.extent for one in found.found} == {"x": "n * blocks_y", "y": "n * blocks_y"}
    assert [size.multiple for size in found.workload.sizes if size.name == "n"] == [128]


def test_a_grid_that_only_larger_sizes_need_is_not_taken_for_one_block() -> None:
    # blocks of 8 threads that do 4096 elements each: one suffices at most of the sizes that forms are made from
    text = """__global__ void __launch_bounds__(8) k(const float* x, float* y, int n) {
        for (int j = threadIdx.x; j < 4096; j += 8) { int q = blockIdx.x * 4096 + j; if (q < n) y[q] = x[q]; } }"""
    found = probed(text)
    assert found.workload is None and [stop.what for stop in found.stops] == ["grid"]
    assert "larger ones may need more" in found.stops[0].reason


def test_a_limit_of_shared_memory_is_said() -> None:
    body = "__shared__ float s[2050]; if (i < n) { s[n] = x[i]; y[i] = s[0]; }"
    assert any("shared memory is overrun at n=" in note for note in probed(
        kernel("const float* x, float* y, int n", body)).notes)  # fmt: skip


def test_a_value_that_only_decides_a_branch_is_said() -> None:
    found = probed(kernel("const float* x, float* y, int n", "if (i < n && x[i] > 0) y[i] = 1;"))
    assert found.workload is not None
    assert any("values of `x` decide a branch" in note and "line 2" in note for note in found.notes)
    plain = probed(kernel("const float* x, float* y, int n", "if (i < n) y[i] = x[i];"))
    assert not any("decide" in note for note in plain.notes)


@pytest.mark.parametrize(
    "parameters, body, scalar",
    [
        ("const float* x, float* y, int n, int period", "if (i < n) y[i] = x[i % period];", "period"),
        ("const float* x, float* y, int n, int m, int k0",
         "if (i < min(n, m) - k0) y[i + k0] = x[i * 2] + x[n - 1 - i];", "k0"),
        ("const float* x, float* y, int n, int mode",
         "if (i >= n) return; if (mode == 3) y[i] = x[3 * i]; else y[i] = x[i];", "mode"),
    ],
)  # fmt: skip
def test_nothing_is_said_not_to_matter_while_an_extent_is_open(parameters: str, body: str, scalar: str) -> None:
    found = probed(kernel(parameters, body))
    assert found.workload is None and "x" in [stop.what for stop in found.stops]
    assert not any("no extent was seen to depend" in note for note in found.notes)
    assert any("what is open may depend on" in note and f"`{scalar}`" in note for note in found.notes)
    closed = probed(kernel("const float* x, float* y, int n, int fill", "if (i < n) y[i] = x[i] + fill;"))
    assert any("no extent was seen to depend on `fill`" in note for note in closed.notes)


def test_what_no_run_touched_is_open_but_for_what_the_code_does_not_use() -> None:
    power = "int n = 1 << logn; for (; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * 2;"
    shifted = probed(kernel("const float* x, float* y, int logn", power))
    assert shifted.workload is None
    assert {one.name: one.extent for one in shifted.found} == {"x": None, "y": None}
    seldom = "if (i >= n) return; float v = x[i]; if (v > 3.5f) v += extra[i + n]; y[i] = v;"
    found = probed(kernel("const float* x, const float* extra, float* y, int n", seldom))
    assert [stop.what for stop in found.stops] == ["extra"] and "no run touched it" in found.stops[0].reason
    assert "extra: f32[?] probed in" in found.draft
    unused = probed(kernel("const float* x, const float* extra, float* y, int n", "if (i < n) y[i] = x[i];"))
    assert unused.workload is not None
    assert {one.name: one.extent for one in unused.found} == {"x": "n", "extra": "1", "y": "n"}
    assert "the code does not use `extra`; one element stands for it" in unused.notes


def test_a_kernel_that_does_not_end() -> None:
    with pytest.raises(Stopped, match=r"not end|deadlock|time for probing"):
        probed(kernel("float* x, int n", "while (n > 0) { x[0] += 1; if (x[0] < -1) break; }"), seconds=4)


@pytest.mark.parametrize(
    ("parameters", "head", "reason"),
    [
        ("float** x", "", "a pointer to pointers"),
        ("Q q, float* x", "struct Q { int a; float b; };", "by value"),
        ("Unknown* x", "", "not known in this file|cannot be compiled"),
    ],
)
def test_what_cannot_be_passed(parameters: str, head: str, reason: str) -> None:
    with pytest.raises(Stopped, match=reason):
        probed(kernel(parameters, "", head))


def test_code_that_does_not_compile_says_where() -> None:
    with pytest.raises(Stopped, match="cannot be compiled: line 2") as stopped:
        probed(kernel("float* x", "x[i] = nowhere;"))
    assert stopped.value.kind == "source"


def test_it_is_withdrawn_at_once() -> None:
    document = parse(SOFTMAX.encode())
    with pytest.raises(Stopped) as stopped:
        probe(document, document.kernel("k"), None, Limits(60, lambda: True))
    assert stopped.value.kind == "cancelled"


# What the host code told ---------------------------------------------------------------------------------------------


def test_what_the_launch_says_is_kept() -> None:
    text = (
        kernel("const float* x, float* y, int n, int m", "if (i < n) y[i * m] = x[i];")
        + """
int read();
int main() {
    float *x, *y; int n = read();
    cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 12);
    k<<<(n + 63) / 64, 64>>>(x, y, n, 3);
}"""
    )
    found = probed(text)
    assert found.workload is not None, found.reason
    assert found.launch == "k<<<ceil_div(n, 64), 64>>>(x, y, n, 3)"
    assert {one.name: (one.extent, one.access) for one in found.found} == {
        "x": ("n", Access.IN), "y": ("n * 3 - 2", Access.OUT),
    }  # fmt: skip
    assert not any("blocks of" in note for note in found.notes)


def test_a_size_that_a_directive_states_is_kept() -> None:
    text = kernel(
        "const float* x, float* y, int n", "if (i < n) y[i] = x[i];", "// cuda-lsp: workload\n//   size n = 5000"
    )
    found = probed(text)
    assert found.workload is not None
    assert [(size.name, size.value) for size in found.workload.sizes] == [("n", 5000)]
    assert not any("are ours" in note for note in found.notes)


# Any affine access ----------------------------------------------------------------------------------------------------

_STRIDES = ("1", "2", "3", "n", "m", "n + 2", "n * m")
SIZES = st.fixed_dictionaries({"n": st.integers(3, 400), "m": st.integers(3, 400)})


@settings(max_examples=12, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(
    st.tuples(st.sampled_from(_STRIDES), st.sampled_from(_STRIDES), st.integers(-3, 5)),
    st.tuples(st.sampled_from(_STRIDES), st.sampled_from(_STRIDES), st.integers(-3, 5)),
    st.lists(SIZES, min_size=3, max_size=3),
)
def test_the_extents_of_affine_accesses_are_what_was_generated(
    read: tuple[str, str, int], write: tuple[str, str, int], sizes: list[dict[str, int]]
) -> None:
    """``x[i * a + j * b + c]`` for i < n, j < m reaches from c to (n - 1) * a + (m - 1) * b + c."""
    places = ["i * ({}) + j * ({}) + ({})".format(*one) for one in (read, write)]
    text = kernel(
        "const float* x, float* y, int n, int m",
        f"int j = blockIdx.y * blockDim.y + threadIdx.y; if (i < n && j < m) y[{places[1]}] = x[{places[0]}];",
    )
    found = probed(text)
    assert found.workload is not None, found.reason
    for name, (a, b, c) in (("x", read), ("y", write)):
        seen = next(one for one in found.found if one.name == name)
        assert seen.extent is not None
        for at in sizes:
            strides = [Expression.parse(stride).integer(at) for stride in (a, b)]
            last = (at["n"] - 1) * strides[0] + (at["m"] - 1) * strides[1] + c
            assert Expression.parse(seen.offset).integer(at) == max(-c, 0)
            assert Expression.parse(seen.extent).integer(at) == last + 1 + max(-c, 0)
    # where sizes have to be multiples of something, the forms above hold at any, but the grid is a quotient
    sizes[0] = {one.name: max(sizes[0][one.name] // one.multiple, 1) * one.multiple for one in found.workload.sizes}
    (step,) = bind(found.workload, found.workload.plan, sizes[0], parse(text.encode())).steps
    assert isinstance(step, BoundLaunch)
    assert step.grid == (-(-sizes[0]["n"] // step.block[0]), -(-sizes[0]["m"] // step.block[1]), 1)
