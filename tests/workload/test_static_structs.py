"""Structs that host code fills and passes by value."""

import numpy as np
import pytest

from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.directive import format_statements
from agent.workload.errors import NoWorkload
from agent.workload.program import Program
from agent.workload.static import infer
from agent.workload.workload import Access, Workload
from tests.execution.emulator.building import run

KERNEL = """
struct Bias { const float* w; short step; };
struct P { float scale; const float* in; Bias bias; float* out; int f[2]; int n; float3 v; };
__global__ void k(P p, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.out[i] = p.scale * p.in[i] + p.bias.w[i * p.bias.step] * p.f[turns & 1] + p.v.z;
}
"""
FILL = """
    float *x, *w, *y;
    int n = 4096;
    cudaMalloc(&x, (n + 16) * 4); cudaMalloc(&w, 2 * n * 4); cudaMalloc(&y, n * 4);
"""
LAUNCH = "k<<<(n + 255) / 256, 256>>>"
WANTED = (
    "launch k<<<(n + 255) / 256, 256>>>({.scale = 0.5f, .in = x + 16, .bias = {.w = w, .step = 2}, .out = y, "
    ".f = {1, 3}, .n = n, .v = {.z = 4.0f}}, 1)"
)


def found(host: str, kernel: str = KERNEL, name: str = "k") -> Workload:
    document = parse(("#include <cuda_runtime.h>\n" + kernel + host).encode())
    return infer(document, document.kernel(name))


def launched(host: str, kernel: str = KERNEL, name: str = "k") -> str:
    """The launch, with constants that are numbers put in."""
    workload = found(host, kernel, name)
    text = next(line for line in format_statements(workload) if line.startswith("launch"))
    for constant in workload.constants:
        text = text.replace(f"= {constant.name}", f"= {constant.value}").replace(
            f"{{{constant.name},", f"{{{constant.value},"
        )
        text = text.replace(f" {constant.name}}}", f" {constant.value}}}")
    return " ".join(text.split())


HOW = {
    "members": "P p; p.scale = 0.5f; p.in = x + 16; p.bias.w = w; p.bias.step = 2; p.out = y; p.f[0] = 1; p.f[1] = 3;"
    " p.n = n; p.v.x = p.v.y = 0; p.v.z = 4.0f;",
    "a list": "P p = {0.5f, x + 16, {w, 2}, y, {1, 3}, n, {0, 0, 4}};",
    "names in a list": "P p{.scale = 0.5f, .in = x + 16, .bias = {.w = w, .step = 2}, .out = y, .f = {1, 3}, .n = n,"
    " .v = {0, 0, 4}};",
    "pieces": "Bias b{w, 2}; P p; p.scale = 0.5f; p.in = x + 16; p.bias = b; p.out = y; p.n = n;"
    " for (int i = 0; i < 2; ++i) p.f[i] = 2 * i + 1; p.v = make_float3(0, 0, 4);",
    "a helper that returns it": "P p = made(x, w, y, n);",
    "a helper that fills it": "P p; fill(&p, x, w, y, n);",
    "a helper with a reference": "P p; refill(p, x, w, y, n);",
    "a copy": "P q = made(x, w, y, n); P p = q; q.n = 7; q.f[1] = 9; q.bias.step = 1;",
    "changed after the launch": "P p = made(x, w, y, n); k<<<(n + 255) / 256, 256>>>(p, 1); p.n = 3; p.f[0] = 8;",
}
HELPERS = """
P made(float* x, float* w, float* y, int n) {
    P s{0.5f, x + 16, {w, 2}, y};
    s.f[0] = 1; s.f[1] = 3; s.n = n; s.v = make_float3(0.f, 0.f, 4.f);
    return s;
}
void fill(P* s, float* x, float* w, float* y, int n) { *s = made(x, w, y, n); s->scale = 0.25f; s->scale *= 2; }
void refill(P& s, float* x, float* w, float* y, int n) { s = made(x, w, y, n); }
"""


@pytest.mark.parametrize("how", HOW)
def test_however_it_is_filled(how: str) -> None:
    host = f"{HELPERS}int main() {{ {FILL} {HOW[how]} {LAUNCH}(p, 1); cudaDeviceSynchronize(); }}"
    assert launched(host) == WANTED
    workload = found(host)
    assert {buffer.name: buffer.access for buffer in workload.buffers} == {
        "x": Access.IN, "w": Access.IN, "y": Access.OUT
    }  # fmt: skip
    assert [(size.name, size.value) for size in workload.sizes] == [("n", 4096)]


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        ("P{0.5f, x + 16, {w, 2}, y, {1, 3}, n, {0, 0, 4}}", WANTED),
        ("made(x, w, y, n)", WANTED),
    ],
)
def test_one_that_is_made_where_it_is_passed(passed: str, words: str) -> None:
    assert launched(f"{HELPERS}int main() {{ {FILL} {LAUNCH}({passed}, 1); }}") == words


def test_what_it_computes() -> None:
    """The workload that is found, run: each member is where the kernel reads it."""
    text = "#include <cuda_runtime.h>\n" + KERNEL + f"int main() {{ {FILL} {HOW['a list']} {LAUNCH}(p, 1); }}"
    document = parse(text.encode())
    workload = infer(document, document.kernel("k"))
    made = build(Program(document, workload.plan, "original"), Options())
    assert isinstance(made, Build), made
    x, w = np.arange(4112, dtype=np.float32), np.arange(8192, dtype=np.float32)
    steps = bind(workload, workload.plan, None, document).steps
    answer, outputs = run(made, steps, {"x": x, "w": w, "y": np.zeros(4096, np.float32)})  # type: ignore[arg-type]
    assert not answer.faults
    assert outputs["y"].tolist() == (0.5 * x[16:] + 3 * w[::2] + 4).tolist()


@pytest.mark.parametrize(
    ("fill", "question"),
    [
        (
            "P p; p.in = x; p.bias.w = w; p.out = y; p.f[0] = 1; p.f[1] = 2; p.bias.step = 1; p.n = n; p.v.z = 1;",
            "scale",
        ),
        ("P p = made(x, w, y, n); p.in = 0;", None),
        ("P p = made(x, w, y, n); p.in = (float*)malloc(n);", "in"),
        ("P p = made(x, w, y, n); unknown(&p);", "scale"),
        ("P p = made(x, w, y, n); memcpy(p.f, get(), 8);", "f[0]"),
    ],
)
def test_what_is_not_known_is_asked_for_by_its_path(fill: str, question: str | None) -> None:
    host = f"{HELPERS}int main() {{ {FILL} {fill} {LAUNCH}(p, 1); }}"
    if question is None:
        assert ".in = " not in launched(host)
        return
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert f"`p.{question}` of `k`" in str(raised.value) or f"`{question}" in str(raised.value)
    assert "?" in raised.value.draft


def test_what_the_kernel_does_not_use_may_be_anything() -> None:
    kernel = KERNEL.replace("+ p.v.z", "").replace("float3 v;", "float3 v; const char* name; int* counts[4];")
    host = f"int main() {{ {FILL} P p;"
    host += " p.scale = 2; p.in = x; p.bias = Bias{w, 1}; p.out = y; p.n = n; p.f[0] = p.f[1] = 1;"
    assert launched(f'{host} p.name = "a name"; {LAUNCH}(p, 1); }}', kernel).endswith(".f = {1, 1}, .n = n}, 1)")


ACCESSES = {
    "p.out[i] += p.in[i];": {"x": Access.IN, "y": Access.INOUT},
    "float* to = p.out; to[i] = p.in[i];": {"x": Access.IN, "y": Access.OUT},
    "p.set(i, 1.0f);": {"x": Access.IN, "y": Access.INOUT},
    "helper(p, i);": {"x": Access.IN, "y": Access.INOUT},
    "atomicAdd(&p.out[0], p.in[i]);": {"x": Access.IN, "y": Access.INOUT},
}


@pytest.mark.parametrize("body", ACCESSES)
def test_access_through_a_member(body: str) -> None:
    kernel = (
        "struct P { const float* in; float* out; __device__ void set(int i, float v) { out[i] = v + in[i]; } };\n"
        "__device__ void helper(P q, int i) { q.out[i] += q.in[i]; }\n"
        f"__global__ void k(P p) {{ int i = threadIdx.x; {body} }}\n"
    )
    host = "float *x, *y; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMemset(y, 0, 128); P p = {x, y};"
    workload = found(f"int main() {{ {host} k<<<1, 32>>>(p); }}", kernel)
    assert {buffer.name: buffer.access for buffer in workload.buffers} == ACCESSES[body]


def test_indices_behind_a_member_stay_in_range() -> None:
    kernel = (
        "struct Csr { const int* cols; const float* v; int n; };\n"
        "__global__ void k(Csr a, const float* x, float* y) {"
        " int i = blockIdx.x * 32 + threadIdx.x; if (i < a.n) y[i] = a.v[i] * x[a.cols[i]]; }\n"
    )
    host = (
        "int main() { int n = 96, m = 50; int* c; float *v, *x, *y; cudaMalloc(&c, 4 * n); cudaMalloc(&v, 4 * n);"
        " cudaMalloc(&x, 4 * m); cudaMalloc(&y, 4 * n); Csr a = {c, v, n}; k<<<n / 32, 32>>>(a, x, y); }"
    )
    workload = found(host, kernel)
    assert "c: i32[n] in index(m)" in " ".join(" ".join(format_statements(workload)).split())


def test_a_functor_with_a_constructor_names_the_kernel() -> None:
    kernel = (
        "template <typename T> struct Scale { T a; explicit Scale(T by) : a(by) {} __device__ T operator()(T x) const"
        " { return a * x; } };\nstruct Twice { __device__ float operator()(float x) const { return 2 * x; } };\n"
        "template <typename F> __global__ void map(const float* x, float* y, F f)"
        " { y[threadIdx.x] = f(x[threadIdx.x]); }\n"
        "template <typename F> void go(const float* x, float* y, F f) { map<<<1, 32>>>(x, y, f); }\n"
    )
    host = "int main() { float *x, *y; cudaMalloc(&x, 128); cudaMalloc(&y, 128); go(x, y, "
    assert (
        launched(host + "Scale<float>(0.5f)); }", kernel, "map")
        == "launch map<Scale<float>><<<1, 32>>>(x, y, {.a = 0.5f})"
    )
    assert launched(host + "Twice()); }", kernel, "map") == "launch map<Twice><<<1, 32>>>(x, y, {})"


def test_a_kernel_that_nothing_launches_gets_a_draft_with_its_members() -> None:
    with pytest.raises(NoWorkload) as raised:
        found("int main() {}")
    assert "({.scale = ?, .in = p_in, .bias = {.w = p_bias_w, .step = ?}, .out = p_out" in raised.value.draft
    assert "buffer   p_bias_w: f32[?] in" in raised.value.draft


def test_an_array_of_arrays_is_one_buffer() -> None:
    kernel = (
        "#define N 8\n__global__ void k(float a[][N][N], const float (*b)[N]) {"
        " a[blockIdx.x][threadIdx.y][threadIdx.x] = b[threadIdx.y][threadIdx.x]; }\n"
    )
    host = (
        "typedef float Rows[N];\ntypedef float Planes[N][N];\nint main() { Planes* a; Rows* b;"
        " cudaMalloc(&a, 5 * N * N * 4);"
        " cudaMalloc(&b, N * N * 4); k<<<5, dim3(N, N)>>>(a, b); }"
    )
    workload = found(host, kernel)
    assert [(b.name, str(b.extent), b.access.value) for b in workload.buffers] == [
        ("a", "320", "out"),
        ("b", "64", "in"),
    ]
    with pytest.raises(NoWorkload, match="it counts in arrays"):
        found(host.replace("(a, b)", "(a, b + 1)"), kernel)


def test_a_branch_of_if_that_the_compiler_decides_ends() -> None:
    host = (
        f"void spread(float* h) {{\n#ifdef _OPENMP\n  h[0] = 1;\n#else\n  h[0] = 2;\n#endif\n}}\n"
        f"int main() {{ float h[4]; spread(h); {FILL} {HOW['a list']} {LAUNCH}(p, 1); }}"
    )
    assert launched(host) == WANTED
