"""Static inference: what host code says, in the many ways it says it; and questions where it does not."""

import pytest

from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch, ValueArgument
from agent.workload.describe import arguments, origin
from agent.workload.directive import format_statements, read_directive
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.static import infer
from agent.workload.workload import Workload

KERNEL = """
#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


def found(host: str, kernel: str = KERNEL, name: str = "k", answers: dict[str, int] | None = None) -> Workload:
    document = parse(filled(kernel + host).encode())
    return infer(document, document.kernel(name), answers)


def filled(text: str) -> str:
    """``@M`` stands for the declaration and allocation of x and y."""
    return text.replace("@M", MALLOCS)


def statements(host: str, kernel: str = KERNEL, name: str = "k") -> list[str]:
    return [" ".join(line.split()) for line in format_statements(found(host, kernel, name))]


def launched(workload: Workload, text: str) -> BoundLaunch:
    document = parse(filled(text).encode())
    (step,) = bind(workload, workload.plan, None, document).steps
    assert isinstance(step, BoundLaunch)
    return step


MALLOCS = "float *x, *y; cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));"
EXPECTED = [
    "size n = 1000",
    "buffer x: f32[n] in",
    "buffer y: f32[n] out",
    "launch k<<<(n + 255) / 256, 256>>>(x, y, n)",
]


@pytest.mark.parametrize(
    "host",
    [
        "int main() { int n = 1000; @M k<<<(n + 255) / 256, 256>>>(x, y, n); }",
        "const int n = 1000; int main() { @M k<<<(n + 255) / 256, 256>>>(x, y, n); }",
        "#define n 1000\nint main() { @M k<<<(n + 255) / 256, 256>>>(x, y, n); }",
        "int main(int argc, char** argv) { int n = argc > 1 ? atoi(argv[1]) : 1000; @M k<<<(n + 255) / 256, "
        "256>>>(x, y, n); }"
       ,
        "int main(int argc, char** argv) { int n = 1000; if (argc > 1) n = atoi(argv[1]); @M k<<<(n + 255) "
        "/ 256, 256>>>(x, y, n); }"
       ,
        "int main(int argc, char** argv) { int n = 1000; for (int i = 1; i < argc; i++) if "
        "(!strcmp(argv[i], \"-n\")) n = atoi(argv[++i]);"
        " @M k<<<(n + 255) / 256, 256>>>(x, y, n); }",
        "#define CHECK(c) do { cudaError_t e = (c); if (e != cudaSuccess) exit(1); } while (0)\n"
        "int main() { int n = 1000; float *x, *y; size_t bytes = n * sizeof(float); "
        "CHECK(cudaMalloc((void**)&x, bytes));"
        " CHECK(cudaMalloc((void**)&y, bytes)); k<<<(n + 255) / 256, 256>>>(x, y, n); CHECK(cudaGetLastError()); }",
        "void run(const float* a, float* b, int count) { int block = 256; k<<<(count + block - 1 + 0) / "
        "block, block>>>(a, b, count); }"
        " int main() { int n = 1000; @M run(x, y, n); }",
        "inline void check(cudaError_t e) { if (e != cudaSuccess) exit(1); }\n"
        "struct S { float *x, *y; int n; };"
        " int main() { S s; s.n = 1000; check(cudaMalloc(&s.x, s.n * sizeof(float))); "
        "check(cudaMalloc(&s.y, sizeof(float) * 1000));"
        " k<<<4, 256>>>(s.x, s.y, s.n); }",
        "template <typename T> void go(int n) { T *x, *y; cudaMallocManaged(&x, n * sizeof(T)); "
        "cudaMallocManaged(&y, n * sizeof(T));"
        " for (int i = 0; i < 100; i++) k<<<(n + 255) / 256, 256>>>(x, y, n); } int main() { int n = 1000; "
        "go<float>(n); }",
        "int main() { const int n = 1000; thrust::device_vector<float> x(n), y(n);"
        " k<<<(n + 255) / 256, 256>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(&y[0]), n); }",
        "#define LAUNCH(f, g, b, ...) f<<<g, b>>>(__VA_ARGS__)\n"
        "int main() { int n = 1000; @M LAUNCH(k, (n + 255) / 256, 256, x, y, n); }",
    ],
)  # fmt: skip
def test_a_vector_kernel_in_many_ways(host: str) -> None:
    workload = found(host)
    bound = bind(workload, workload.plan, None, parse(filled(KERNEL + host).encode()))
    assert [(b.dtype, b.count, b.access.value) for b in bound.buffers] == [("f32", 1000, "in"), ("f32", 1000, "out")]
    (launch,) = bound.steps
    assert isinstance(launch, BoundLaunch)
    assert (launch.grid, launch.block, launch.shared) == ((4, 1, 1), (256, 1, 1), 0)
    assert launch.arguments[2] == ValueArgument("i32", 1000)


def test_sizes_stay_symbols() -> None:
    assert statements("int main() { int n = 1000; @M k<<<(n + 255) / 256, 256>>>(x, y, n); }") == EXPECTED


@pytest.mark.parametrize(
    "grid",
    [
        "int w = 64, h = 48; dim3 g(w, h); dim3 b(16, 8);",
        "int w = 64, h = 48; dim3 g = dim3(w, h); dim3 b{16, 8};",
        "int w = 64, h = 48; dim3 g; g.x = w; g.y = h; dim3 b = {16, 8};",
        "int w = 64, h = 48, p = 16, q = 8; dim3 g(w, h), b(p, q);",
    ],
)
def test_dim3_in_every_shape(grid: str) -> None:
    host = "int main() { @G int n = 1000; @M k<<<g, b>>>(x, y, n); }".replace("@G", grid)
    launch = launched(found(host), KERNEL + host)
    assert (launch.grid, launch.block) == ((64, 48, 1), (16, 8, 1))


@pytest.mark.parametrize(
    "helper",
    [
        "#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))",
        "int CEIL_DIV(int a, int b) { return (a + b - 1) / b; }",
        "template <typename T> constexpr T CEIL_DIV(T a, T b) { return a / b + (a % b != 0); }",
        "static inline unsigned CEIL_DIV(unsigned total, unsigned per) { unsigned r = total / per; if "
        "(total % per) r += 1; return r; }",
        "#define CEIL_DIV(a, b) (int)ceil((a) / (float)(b))",
    ],
)
def test_helpers_of_the_file_are_followed(helper: str) -> None:
    host = helper + "\nint main() { int n = 1000; @M k<<<CEIL_DIV(n, 256), 256>>>(x, y, n); }"
    assert launched(found(host), KERNEL + host).grid == (4, 1, 1)


def test_pointer_offsets_and_shared_bytes() -> None:
    host = (
        "int main() { int n = 1000; @M int half = n / 2; k<<<2, 256, 64 * sizeof(float)>>>(x + half, &y[half], half); }"
    )
    assert statements(host)[3:] == ["launch k<<<2, 256, 256>>>(x + n / 2, y + n / 2, n / 2)"]


def test_repeats_swaps_and_progressions() -> None:
    kernel = "__global__ void k(const float* a, float* b, int n, int s) { b[s] = a[n]; }\n"
    head = "int main() { int n = 64, steps = 5; float *a, *b; cudaMalloc(&a, n * 4); cudaMalloc(&b, 4 * n);"
    head += " cudaMemset(a, 0, n * 4);"
    swapped = statements(
        head + " for (int t = 0; t < steps; ++t) { k<<<1, n>>>(a, b, n, t); float* c = a; a = b; b = c; } }", kernel
    )
    assert swapped[1:] == [
        "buffer a: f32[64] inout zeros", "buffer b: f32[64] out",
        "repeat steps as t {", "launch k<<<1, 64>>>(a, b, 64, t)", "swap a b", "}",
    ]  # fmt: skip
    doubled = statements(head + " for (int s = 1; s < n; s <<= 1) k<<<1, 32>>>(a, b, n, s); }", kernel)
    assert doubled[3:] == ["repeat s = 1; s < n; s = s << 1 {", "launch k<<<1, 32>>>(a, b, n, s)", "}"]
    nested = statements(
        head + " for (int i = 2; i <= n; i *= 2) for (int j = i / 2; j > 0; j /= 2) k<<<1, 32>>>(a, b, i, j); }", kernel
    )
    assert nested[3:] == [
        "repeat i = 2; i <= n; i = i * 2 {",
        "repeat j = i / 2; j > 0; j = j / 2 {",
        "launch k<<<1, 32>>>(a, b, i, j)",
        "}",
        "}",
    ]
    while_loop = statements(head + " int s = n / 2; while (s > 0) { k<<<1, 32>>>(a, b, n, s); s /= 2; } }", kernel)
    assert while_loop[3] == "repeat s = n / 2; s > 0; s = s / 2 {"


RIM = "__global__ void k(const float* a, float* b, int n) { if (threadIdx.x && threadIdx.x < n - 1) b[1] = a[0]; }\n"
EXCHANGES = ["float* c = a; a = b; b = c;", "std::swap(a, b);", "float *c = b; b = a; a = c;"]
PUT = [
    ("cudaMemset(b, 0, n * 4);", "inout zeros"),
    ("cudaMemcpy(b, h, n * 4, cudaMemcpyHostToDevice);", "inout uniform(0.0f, 1.0f)"),
    ("", "out"),
]


def ping_pong(put: str, steps: str) -> list[str]:
    head = "int main() { int n = 64; float *a, *b; float* h = (float*)malloc(n * 4); cudaMalloc(&a, n * 4);"
    head += " for (int i = 0; i < n; i++) h[i] = rand() / (float)RAND_MAX; cudaMalloc(&b, n * 4);"
    return statements(f"{head} cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice); {put} {steps} }}", RIM)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("put", "access"), PUT)
def test_what_a_step_leaves_alone_is_read_behind_the_exchange(put: str, access: str, exchange: str) -> None:
    told = ping_pong(put, f"for (int t = 0; t < 10; t++) {{ k<<<1, 64>>>(a, b, n); {exchange} }}")
    assert told[2] == f"buffer b: f32[n] {access}"


@pytest.mark.parametrize(("put", "access"), PUT)
def test_what_a_launch_leaves_alone_is_read_by_the_one_behind_it(put: str, access: str) -> None:
    assert ping_pong(put, "k<<<1, 64>>>(a, b, n); k<<<1, 64>>>(b, a, n);")[2] == f"buffer b: f32[n] {access}"


def test_what_no_step_reads_is_an_output_whatever_was_put_there() -> None:
    assert ping_pong(PUT[0][0], "k<<<1, 64>>>(a, b, n);")[2] == "buffer b: f32[n] out"


def test_what_a_plan_itself_writes_first_was_not_there_before() -> None:
    """The second kernel of a loop is asked about: its buffers are taken as they are before the loop."""
    more = RIM + "__global__ void s(const float* b, float* a, int n) { a[threadIdx.x] = b[threadIdx.x] + n; }\n"
    host = "int main() { int n = 64; float *a, *b; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4);"
    host += (
        " cudaMemset(a, 0, n * 4); for (int t = 0; t < 10; t++) { k<<<1, 64>>>(a, b, n); s<<<1, 64>>>(b, a, n + t); } }"
    )
    assert statements(host, more, "s")[1:3] == ["buffer a: f32[n] inout zeros", "buffer b: f32[n] out"]


def test_a_timing_loop_is_one_launch() -> None:
    host = (
        "int main(int c, char** v) { int n = 1000, reps = 50; @M for (int r = 0; r < reps; r++) { k<<<4, "
        "256>>>(x, y, n); } }"
    )
    assert statements(host)[3:] == ["launch k<<<4, 256>>>(x, y, n)"]


def test_a_pipeline_that_reads_what_was_written_is_one_plan() -> None:
    more = KERNEL + "__global__ void s(float* y, int n) { y[threadIdx.x] += n; }\n"
    host = "int main() { int n = 1000; @M k<<<4, 256>>>(x, y, n); s<<<1, 256>>>(y, n); s<<<1, 256>>>(y, n); }"
    assert statements(host, more)[3:] == ["launch k<<<4, 256>>>(x, y, n)", "launch s<<<1, 256>>>(y, n)"]
    apart = host.replace("s<<<1, 256>>>(y, n);", "cudaMemcpy(0, y, 4, cudaMemcpyDeviceToHost); s<<<1, 256>>>(y, n);", 1)
    assert statements(apart, more)[3:] == ["launch k<<<4, 256>>>(x, y, n)"]


def test_templates_are_named_and_deduced() -> None:
    kernel = "template <typename T, int B> __global__ void k(const T* x, T* y, int n) { y[B] = x[n]; }\n"
    host = "int main() { const int n = 8; double *x, *y; cudaMalloc(&x, n * sizeof(double)); "
    host += "cudaMalloc(&y, n * sizeof(double)); const int B = 32;"
    named = statements(host + " k<double, B><<<1, B>>>(x, y, n); }", kernel)
    assert named[1:] == ["buffer x: f64[n] in", "buffer y: f64[n] out", "launch k<double, 32><<<1, 32>>>(x, y, n)"]
    deduced = kernel.replace(", int B", "").replace("[B]", "[0]")
    assert statements(host + " k<<<1, 32>>>(x, y, n); }", deduced)[-1] == "launch k<double><<<1, 32>>>(x, y, n)"


def test_what_the_kernel_is_compiled_with_is_not_varied() -> None:
    kernel = "#define N 64\n__constant__ float c[N / 4];\n__device__ int hits;\n" + KERNEL.replace(
        "2.0f", "c[N % 4] * hits"
    )
    host = (
        "int main() { int n = 1000; float h[N / 4]; @M cudaMemcpyToSymbol(c, h, sizeof(h)); k<<<N, 256>>>(x, y, n); }"
    )
    assert statements(host, kernel) == [
        "size n = 1000",
        "buffer x: f32[n] in",
        "buffer y: f32[n] out",
        "symbol c: f32[16] in",
        "symbol hits: i32[1] inout zeros",
        "launch k<<<64, 256>>>(x, y, n)",
    ]


def test_a_loop_variable_means_nothing_behind_its_loop() -> None:
    host = (
        "struct S { int n; }; int main() { S s; int n = 5; @M for (int i = 0; i < 3; ++i) { s.n = i * 2; cudaFree(0); }"
    )
    with pytest.raises(NoWorkload, match=r"value of `s_n`: `s.n` changes in the loop at line 7"):
        found(host + " k<<<1, 32>>>(x, y, s.n); }")


def test_equal_names_of_several_functions_stay_readable() -> None:
    host = (
        "void a() { int n = 7; @M k<<<1, 32>>>(x, y, n); }\nvoid b() { int n = 9; @M other<<<n / 3, 32>>>(x, y, n); }"
    )
    host += " int main() { a(); b(); }"
    kernel = KERNEL + KERNEL.split("\n", 2)[2].replace("void k(", "void other(")
    assert statements(host, kernel, "other") == [
        "size n = 9 multiple 3",
        "buffer x: f32[n] in",
        "buffer y: f32[n] out",
        "launch other<<<n / 3, 32>>>(x, y, n)",
    ]


SPMV = """
__global__ void k(const int* rows, const int* cols, const float* v, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        int begin = rows[row], end = rows[row + 1];
        float sum = 0;
        for (int i = begin; i < end; ++i) sum += v[i] * x[cols[i]];
        y[row] = sum;
    }
}
"""


def test_row_pointers_and_indices_are_sized_to_what_they_index() -> None:
    host = """int main() { int n = 10, nnz = 70, m = 20; int *rows, *cols; float *v, *x, *y;
      cudaMalloc(&rows, (n + 1) * 4);
      cudaMalloc(&cols, nnz * 4); cudaMalloc(&v, nnz * 4); cudaMalloc(&x, m * 4); cudaMalloc(&y, n * 4);
      k<<<1, 32>>>(rows, cols, v, x, y, n); }"""
    told = statements(host, SPMV)
    assert told[1:3] == ["buffer rows: i32[n + 1] in offsets(nnz)", "buffer cols: i32[nnz] in index(m)"]


@pytest.mark.parametrize(
    ("host", "question", "words"),
    [
        ("", "launch of `k`?", "nothing in this file launches `k`"),
        ("int main() { int n = get(); @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "`get` is not defined in this file"),
        ("int main(int c, char** argv) { int n = atoi(argv[1]); @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "command line"),
        ("int main(int argc, char** argv) { if (argc != 2) { printf(\"usage\"); return 1; } int n = "
        "atoi(argv[1]); @M k<<<1, 32>>>(x, y, n); }", "value of `n`?", "command line"),
        ("void solve(const float* x, float* y, int n) { k<<<(n + 255) / 256, 256>>>(x, y, "
        "n); }", "size of `x`?", "which nothing in this file calls"),
        ("int main() { int n; scanf(\"%d\", &n); @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "`scanf` sets it"),
        ("int main() { int n = 8; float* x = load(&n); float* y; cudaMalloc(&y, n); k<<<1, 32>>>(x, y, "
        "n); }", "size of `x` of `k`?", "`load`"),
        ("int main() { int n = strlen(text); @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "`strlen` decides it"),
        ("int main() { int n = 8; if (time(0) > 5) n = 9; @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "depends on a condition"),
        ("int main() { int n = 8; for (int i = 0; i < g(); i++) n += i; @M k<<<1, 32>>>(x, y, "
        "n); }", "value of `n`?", "changes in the loop"),
        ("int main() { int n = 8; float y[8]; float* x; cudaMalloc(&x, n * 4); k<<<1, 32>>>(x, y, "
        "n); }", "size of `y` of `k`?", "host memory"),
        ("int main() { int n = 8; @M k<<<1, 32>>>(x, nullptr, n); }", "size of `y` of `k`?", "null pointer"),
    ],
)  # fmt: skip
def test_what_is_open_is_asked(host: str, question: str, words: str) -> None:
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert question in raised.value.questions
    assert words in str(raised.value)
    assert "// cuda-lsp: workload" in raised.value.draft and "?" in raised.value.draft
    assert raised.value.line


FILLED = "struct B { int k; };\nstruct P : B { float dt; int n; P* next; };\n"


@pytest.mark.parametrize(
    ("parameters", "arguments", "words"),
    [
        ("float* x, P p", "x, p", "`k` takes `p`, a `P`, by value: the layout of `P` is not followed: it has a base"),
        ("float* x, P p", "x, p", "make those of its members that the kernel uses parameters of their own"),
        ("float* x, word_t p", "x, 1", "write it as `int`, `float` or the like"),
        ("float** x, int n", "table, 1", "put the arrays into one and pass that"),
    ],
)
@pytest.mark.parametrize("launched", [True, False])
def test_what_cannot_be_passed_is_said_and_not_asked(
    parameters: str, arguments: str, words: str, launched: bool
) -> None:
    kernel = f"{FILLED}__global__ void k({parameters}) {{ }}\n"
    launch = f"k<<<1, 32>>>({arguments});" if launched else ""
    with pytest.raises(NoWorkload) as raised:
        found(f"int main() {{ float *x, **table; P p; cudaMalloc(&x, 40); cudaMalloc(&table, 40); {launch} }}", kernel)
    assert words in str(raised.value)
    assert not raised.value.questions and not raised.value.draft


def test_a_functor_is_passed_or_made_by_the_kernel() -> None:
    functor = "struct Twice { __device__ float operator()(float v) const { return 2 * v; } };\n"
    kernel = functor + "template <class F> __global__ void k(float* x, F f) { x[threadIdx.x] = f(1.0f); }\n"
    host = "int main() { float* x; cudaMalloc(&x, 128); k<Twice><<<1, 32>>>(x, Twice()); }"
    assert statements(host, kernel)[-1] == "launch k<Twice><<<1, 32>>>(x, {})"
    with pytest.raises(NoWorkload, match=r"have the kernel make its own \(`F f;` in its body\)") as raised:
        found(host, "struct B { int k; };\n" + kernel.replace("Twice {", "Twice : B {"))
    assert not raised.value.questions and not raised.value.draft
    own = kernel.replace(", F f) {", ") { F f;")
    told = statements(host.replace(", Twice())", ")"), own)
    assert told[-1] == "launch k<Twice><<<1, 32>>>(x)"


def test_a_launch_that_an_answer_helps_comes_before_one_that_none_does() -> None:
    kernel = "struct P { int& n; };\ntemplate <class T> __global__ void k(float* x, T p) { x[0] = 1; }\n"
    host = "int main() { float* x; cudaMalloc(&x, 128); P p; k<P><<<1, 32>>>(x, p); k<int><<<1, 32>>>(x, get()); }"
    with pytest.raises(NoWorkload) as raised:
        found(host, kernel)
    assert raised.value.questions == ("value of `p` of `k`?",) and raised.value.draft


@pytest.mark.parametrize(
    "declared",
    [
        "P p{0.5f, 640};",
        "P p = {0.5f, 640};",
        "P p = P{0.5f, 640, nullptr};",
        "P p = {.dt = 0.5f, .n = 640};",
        "P p{}; p.n = 640; p.dt = 0.5f;",
        "Q p;",
        "Q p{0.5f};",
    ],
)
def test_members_are_known_from_where_the_struct_is_declared(declared: str) -> None:
    kernel = "struct P { float dt; int n; float* next; };\n"
    kernel += "struct Q { float dt = 0.5f; int n = 640; int size() { return n; } };\n"
    kernel += "__global__ void k(float* x, float dt, int n) { if (threadIdx.x < n) x[threadIdx.x] = dt; }\n"
    host = f"int main() {{ {declared} float* x; cudaMalloc(&x, p.n * 4); k<<<p.n / 64, 64>>>(x, p.dt, p.n); }}"
    workload = found(host, kernel)
    assert [(size.name, size.value) for size in workload.sizes] == [("n", 640)]
    (step,) = bind(workload, workload.plan, None, parse((kernel + host).encode())).steps
    assert isinstance(step, BoundLaunch) and step.grid == (10, 1, 1)
    assert [getattr(argument, "value", None) for argument in step.arguments[1:]] == [0.5, 640]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("struct P { float dt; int n; P(int a, int b) : dt(b), n(a) {} P(int a, float b) {} };", "{1, 640}"),
        ("struct B { int k; }; struct P : B { float dt; int n; };", "{{1}, 2, 640}"),
        ("struct I { int a, b; }; struct P { I i; int n; };", "{1, 2, 640}"),  # without braces of their own
        ("struct P { int a[2]; int n; };", "{1, 2, 640}"),
    ],
)
def test_members_of_what_is_no_plain_aggregate_are_not_guessed(text: str, made: str) -> None:
    kernel = text + "\n__global__ void k(float* x, int n) { x[threadIdx.x] = n; }\n"
    with pytest.raises(NoWorkload, match=r"nothing that is followed sets `p\.n`"):
        found(f"int main() {{ P p{made}; float* x; cudaMalloc(&x, 40); k<<<1, 32>>>(x, p.n); }}", kernel)


def test_a_wrapper_needs_only_what_is_missing_and_an_answer_helps() -> None:
    host = "int main(int argc, char** argv) { int n = atoi(argv[1]); @M k<<<(n + 255) / 256, 256>>>(x, y, n); }"
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert raised.value.questions == ("value of `n`?",)
    workload = found(host, answers={"n": 77})
    assert [(size.name, size.value) for size in workload.sizes] == [("n", 77)]
    text = "// cuda-lsp: workload\n//   size n = 78\n" + KERNEL.split("\n", 2)[2] + host
    document = parse(filled(text).encode())
    assert find_workload(document, document.kernel("k")).sizes[0].value == 78


def test_the_directive_of_an_inferred_workload_reads_back() -> None:
    from agent.workload.directive import format_directive

    host = "int main() { int n = 1000; @M k<<<(n + 255) / 256, 256>>>(x, y, n); }"
    workload = found(host)
    document = parse(filled(format_directive(workload) + KERNEL.split("\n", 2)[2] + host).encode())
    again = read_directive(document, document.kernel("k"))
    assert again is not None
    assert format_directive(again) == format_directive(workload)


def test_lines_for_people() -> None:
    host = "int main(int argc, char** argv) { int n = argc > 1 ? atoi(argv[1]) : 1000; @M k<<<1, 256>>>(x, y, n); }"
    workload = found(host)
    assert arguments(workload) == "x f32[n] in, y f32[n] out; n=1000"
    assert origin(workload) == "launch at line 7, extents from cudaMalloc, n by default of the command line"


def test_endless_host_code_ends() -> None:
    calls = (
        "".join(f"int f{i}() {{ return f{i + 1}() + f{i + 1}(); }}\n" for i in range(20))
        + "int f20() { return f0(); }\n"
    )
    host = calls + "int main() { int n = f0(); @M k<<<1, 32>>>(x, y, n); }"
    with pytest.raises(NoWorkload):
        found(host)


def test_a_member_s_number_has_a_name_that_a_directive_can_say() -> None:
    host = "struct S { int n; }; int main() { S s; s.n = 1000; int h[2]; h[1] = 8; float *x, *y; "
    host += "cudaMalloc(&x, s.n * 4); cudaMalloc(&y, s.n * h[1] * 4); k<<<4, 256>>>(x, y, s.n); }"
    workload = found(host)
    text = "// cuda-lsp: workload\n" + "".join(f"//   {line}\n" for line in format_statements(workload))
    document = parse((KERNEL.replace("__global__", text + "__global__")).encode())
    again = read_directive(document, document.kernel("k"))
    assert again is not None
    assert [(size.name, size.value) for size in again.sizes] == [(size.name, size.value) for size in workload.sizes]
    assert "size n = 1000" in statements(host)


def test_a_choice_that_is_known_takes_its_side() -> None:
    host = "int main() { int m = 3; int n = m > 2 ? 1000 : g(); @M k<<<4, 256>>>(x, y, n); }"
    assert {size.name: size.value for size in found(host).sizes} == {"n": 1000}
    host = "int main() { int m = 2; int n = m > 2 ? 1000 : g(); @M k<<<4, 256>>>(x, y, n); }"
    with pytest.raises(NoWorkload):
        found(host)
