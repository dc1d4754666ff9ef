"""Launches through pointers and by calls of the runtime, found by reading a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.document import parse
from agent.source.indirect import launched_at

KERNELS = """\
__global__ void k(float* x, int n) { x[threadIdx.x] = n; }
template <typename T, int V> __global__ void t(T* x, int n) { x[threadIdx.x] = n * V; }
"""


def found(body: str, head: str = "void run(float* x, int n, dim3 g)") -> list[tuple[str, ...]]:
    document = parse(f"{KERNELS}{head} {{\n{body}\n}}\n".encode())
    return [
        (one.kernel, "/".join(one.template_arguments), one.grid, one.block, one.shared or "", ", ".join(one.arguments))
        for one in document.indirect_launches
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("auto f = k; f<<<g, 64>>>(x, n);", ("k", "", "g", "64", "", "x, n")),
        ("void (*f)(float*, int) = &k; f<<<g, 64, 8>>>(x, n);", ("k", "", "g", "64", "8", "x, n")),
        ("void (*f)(float*, int); f = ns::t<float, 4>; (*f)<<<g, 64>>>(x, n);",
         ("t", "float/4", "g", "64", "", "x, n")),
        ("void* a[] = {&x, (void*)&n}; cudaLaunchKernel((void*)k, g, 64, a, 8, 0);", ("k", "", "g", "64", "8", "x, n")),
        ("cudaLaunchCooperativeKernel(reinterpret_cast<void*>(t<int, 2>), g, dim3(64), made());",
         ("t", "int/2", "g", "dim3(64)", "", "")),
        ("auto f = t<float, 4>; CHECK(cudaLaunchKernel((const void*)f, g, 64, made(), 0));",
         ("t", "float/4", "g", "64", "0", "")),
        ("cudaLaunchConfig_t c = {}; c.gridDim = g; c.blockDim.x = 32; c.blockDim.y = 4; c.dynamicSmemBytes = 16;"
         " cudaLaunchKernelEx(&c, k, x, n);", ("k", "", "g", "dim3(32, 4, 1)", "16", "x, n")),
        ("cudaLaunchConfig_t c = {g, {32, 4}, 16, 0}; cudaLaunchKernelEx(&c, t<float, 4>, x, n);",
         ("t", "float/4", "g", "dim3(32, 4)", "16", "x, n")),
        ("cudaLaunchConfig_t c{.gridDim = g, .blockDim = 64}; void* a[2] = {&x, &n};"
         " cudaLaunchKernelExC(&c, (void*)k, a);", ("k", "", "g", "64", "", "x, n")),
        ("cudaLaunchKernelEx(c, k, x, n);", ("k", "", "c.gridDim", "c.blockDim", "", "x, n")),
        ("c.gridDim = 1; c.gridDim = 2; c.blockDim = 64; cudaLaunchKernelEx(&c, k, x, n);",
         ("k", "", "c.gridDim", "64", "", "x, n")),
        ('cuModuleGetFunction(&f, module, "k"); void* a[] = {&x, &n};'
         " cuLaunchKernel(f, n / 64, 2, 1, 64, 1, 1, 8, s, a, 0);",
         ("k", "", "dim3(n / 64, 2, 1)", "dim3(64, 1, 1)", "8", "x, n")),
        ('cuLibraryGetKernel(&made->f, library, "_Z1kPfi"); void* a[] = {&x, &n};'
         " CHECK(cuLaunchCooperativeKernel((CUfunction)made->f, 4, 1, 1, 64, 1, 1, 0, 0, a));",
         ("k", "", "dim3(4, 1, 1)", "dim3(64, 1, 1)", "0", "x, n")),
        ('cuModuleGetFunction(&f, module, "k"); CUlaunchConfig c = {}; c.gridDimX = 3; c.gridDimY = n;'
         " c.blockDimX = 64; c.sharedMemBytes = 16; void* a[] = {&x, &n}; cuLaunchKernelEx(&c, f, a, 0);",
         ("k", "", "dim3(3, n, 1)", "dim3(64, 1, 1)", "16", "x, n")),
    ],
)  # fmt: skip
def test_what_a_launch_says(body: str, expected: tuple[str, ...]) -> None:
    assert found(body) == [expected]


def test_the_driver_is_asked_for_a_kernel_in_another_function() -> None:
    text = (
        f'{KERNELS}static CUfunction f, g;\nvoid init() {{ cuModuleGetFunction(&f, m, "k");'
        " cuModuleGetFunction(&g, m, name); }\n"
        "void run() { cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, a, 0);"
        " cuLaunchKernel(g, 1, 1, 1, 32, 1, 1, 0, 0, a, 0); }\n"
        "void other(CUfunction f) { cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, a, 0); }\n"
    )
    found = parse(text.encode()).indirect_launches
    assert [(one.kernel, one.how, one.line) for one in found] == [("k", "cuLaunchKernel", 5)]


def test_a_pointer_may_hold_several_kernels() -> None:
    body = "auto f = n > 4 ? k : t<float, 1>;\nif (n > 64) f = t<float, 4>;\nf<<<g, 64>>>(x, n);"
    assert [one[:2] for one in found(body)] == [("k", ""), ("t", "float/1"), ("t", "float/4")]


def test_each_block_has_its_own_variables() -> None:
    body = (
        "if (n) { auto f = k; cudaLaunchConfig_t c = {g, 64}; cudaLaunchKernelEx(&c, f, x, n); }\n"
        "else { auto f = t<float, 2>; cudaLaunchConfig_t c; c.gridDim = 8; c.blockDim = 32;"
        " cudaLaunchKernelEx(&c, f, x, n); }"
    )
    assert [one[:4] for one in found(body)] == [("k", "", "g", "64"), ("t", "float/2", "8", "32")]
    outer = "auto f = k; if (n) { f = t<float, 2>; } f<<<g, 64>>>(x, n);"
    assert [one[0] for one in found(outer)] == ["k", "t"]


@pytest.mark.parametrize(
    "body",
    [
        "k<<<g, 64>>>(x, n);",
        "other<<<g, 64>>>(x, n);",
        "// cudaLaunchKernel((void*)k, g, 64, a, 0, 0);",
        'puts("cudaLaunchKernel((void*)k, g, 64, a, 0, 0)");',
        "cudaLaunchKernel(f, g, 64, a, 0, 0);",
        "cudaLaunchKernel((void*)k);",
        "auto f = f; f<<<g, 64>>>(x, n);",
        "auto f = h, h = f; f<<<g, 64>>>(x, n);",
    ],
)
def test_others_are_none(body: str) -> None:
    assert found(body) == []


def test_clusters_that_a_call_asks_for() -> None:
    attribute = (
        "cudaLaunchConfig_t c = {g, 64}; cudaLaunchAttribute a[1];\n"
        "a[0].id = cudaLaunchAttributeClusterDimension; a[0].val.clusterDim.x = 2; a[0].val.clusterDim.y = n;\n"
        "c.attrs = a; c.numAttrs = 1; cudaLaunchKernelEx(&c, k, x, n);"
    )
    (site,) = parse(f"{KERNELS}void run(float* x, int n, dim3 g) {{ {attribute} }}".encode()).indirect_launches
    assert (site.how, site.cluster, site.function, site.line) == ("cudaLaunchKernelEx", "dim3(2, n, 1)", "run", 5)


def test_clusters_that_a_kernel_asks_for() -> None:
    text = b"#define N 2\n__global__ void __cluster_dims__(N, 1) __launch_bounds__(64) k(int* p) { *p = 1; }\n"
    (kernel,) = parse(text).kernels
    assert kernel.cluster_dims == ("N", "1") and kernel.launch_bounds == ("64",)
    edited = parse(b"// one line more\n" + text, previous=parse(text))
    assert edited.kernels[0].cluster_dims == ("N", "1")


def test_lines_of_all_launches() -> None:
    body = "k<<<1, 32>>>(x, n);\nauto f = k;\nf<<<1, 32>>>(x, n);\ncudaLaunchKernel((void*)f, 1, 32, made(), 0, 0);"
    document = parse(f"{KERNELS}void run(float* x, int n) {{\n{body}\n}}\n".encode())
    assert launched_at(document, "k") == (4, 6, 7) and launched_at(document, "t") == ()


@given(st.text("ckaf{}()<>=&;,.x0\n ", max_size=60))
def test_half_typed_calls_end_in_no_error(written: str) -> None:
    found(f"auto f = k; cudaLaunchConfig_t c = {{}}; {written} cudaLaunchKernelEx(&c, {written} k, f); f<<<{written}")
