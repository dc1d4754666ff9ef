"""Static inference of what buffers hold: what the host puts there, where a kernel decides by it, and what is asked."""

import pytest

from agent.source.document import parse
from agent.workload.directive import plan_statements
from agent.workload.errors import NoWorkload
from agent.workload.static import infer
from agent.workload.static.usage import usage
from tests.workload.test_static import found, statements


def test_contents_from_host_loops() -> None:
    kernel = "__global__ void k(float* a, int* b, const float* c, float* d)"
    kernel += " { a[0] += c[b[1]] + d[0]; d[0] = a[1]; }\n"
    host = """
    int main() { int n = 100; float *a, *c, *d; int* b; float* h = (float*)malloc(n * 4); int* hb = new int[n];
      cudaMalloc(&a, 4 * n); cudaMalloc(&b, sizeof(int) * n); cudaMalloc(&c, 4 * n); cudaMalloc(&d, 4 * n);
      for (int i = 0; i < n; i++) { h[i] = 2.0f * rand() / RAND_MAX - 1.0f; hb[i] = rand() % n; }
      cudaMemcpy(a, h, 4 * n, cudaMemcpyHostToDevice); cudaMemcpy(b, hb, 4 * n, cudaMemcpyHostToDevice);
      cudaMemset(d, 0, n * 4);
      k<<<1, 32>>>(a, b, c, d); }"""
    told = statements(host, kernel)
    assert told[1] == "buffer a: f32[n] inout uniform(-1.0f, 1.0f)"
    assert told[2] == "buffer b: i32[n] in integers(0, n)"
    assert told[4] == "buffer d: f32[n] inout zeros"


@pytest.mark.parametrize(
    ("stored", "domain"),
    [
        ("(float)rand() / RAND_MAX", "uniform(0.0f, 1.0f)"),
        ("rand() / (float)RAND_MAX * 10 - 5", "uniform(-5.0f, 5.0f)"),
        ("static_cast<float>(rand()) / static_cast<float>(RAND_MAX)", "uniform(0.0f, 1.0f)"),
        ("rand() % 10", "uniform(0, 10)"),
        ("drand48()", "uniform(0, 1)"),
        ("spread(engine)", "uniform(2.0f, 3.0f)"),
        ("1.0f", ""),
        ("sinf(i)", ""),
    ],
)
def test_random_numbers_of_the_host_tell_the_range(stored: str, domain: str) -> None:
    host = "int main() { int n = 9; @M float h[9]; std::mt19937 engine;"
    host += " std::uniform_real_distribution<float> spread(2.0f, 3.0f);"
    host += f" for (int i = 0; i < n; ++i) h[i] = {stored};"
    host += " cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice); k<<<1, 32>>>(x, y, n); }"
    assert statements(host)[1] == f"buffer x: f32[n] in {domain}".strip()


def test_index_contents_that_nobody_tells_are_asked_for() -> None:
    kernel = "__global__ void k(const int* idx, float* y) { y[idx[threadIdx.x] * 4 + 1] = 1.0f; }\n"
    host = (
        "int main() { int* idx; float* y; cudaMalloc(&idx, 40); cudaMalloc(&y, 400); load(idx); k<<<1, 10>>>(idx, y); }"
    )
    with pytest.raises(NoWorkload, match="range of values in `idx`"):
        found(host, kernel)


def test_a_partial_fill_is_not_a_fill() -> None:
    kernel = "__global__ void k(float* y, int n) { y[n] += 1.0f; }\n"
    host = "int main() { int n = 8; float* y; cudaMalloc(&y, n * 4); cudaMemset(y, 0, @S); k<<<1, 8>>>(y, n); }"
    assert statements(host.replace("@S", "n * 4"), kernel)[1] == "buffer y: f32[n] inout zeros"
    assert statements(host.replace("@S", "4"), kernel)[1] == "buffer y: f32[n] inout"


FLAGGED = """
#include <cuda_runtime.h>
__global__ void k(const volatile int* flag, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (*flag == 0) { }
    if (i < n) y[i] = 1.0f;
}
"""
LAUNCHED = " k<<<4, 256>>>(f, y, n); }"
WITH_FLAG = (
    "int main() { int n = 1000; int *f; float *y; cudaMalloc(&f, 4 * COUNT); cudaMalloc(&y, n * sizeof(float)); "
)


def flag(fill: str, count: int = 1, kernel: str = FLAGGED) -> str:
    host = WITH_FLAG.replace("COUNT", str(count)) + fill + LAUNCHED
    (line,) = [text for text in statements(host, kernel) if text.startswith("buffer f")]
    return line.partition(" in")[2].strip()


@pytest.mark.parametrize(
    ("fill", "count", "contents"),
    [
        ("cudaMemset(f, 0, 4);", 1, "zeros"),
        ("int z = 0; cudaMemcpy(f, &z, 4, cudaMemcpyHostToDevice);", 1, "zeros"),
        ("int z = 7; cudaMemcpy(f, &z, 4, cudaMemcpyHostToDevice);", 1, "constant(z)"),
        ("cudaMemset(f, 1, 4);", 1, "constant(16843009)"),
        ("cudaMemset(f, 0xff, 4);", 1, "constant(-1)"),
        ("int h[4] = {0}; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("int h[4] = {}; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("int h[3] = {5, 5, 5}; cudaMemcpy(f, h, 12, cudaMemcpyHostToDevice);", 3, "constant(5)"),
        ("int* h = (int*)calloc(4, 4); cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("int* h = (int*)malloc(16); memset(h, 0, 16); cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("int* h = new int[4](); cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("std::vector<int> h(4, 9); cudaMemcpy(f, h.data(), 16, cudaMemcpyHostToDevice);", 4, "constant(9)"),
        ("std::vector<int> h(4); cudaMemcpy(f, h.data(), 16, cudaMemcpyHostToDevice);", 4, "zeros"),
        ("std::vector<int> h = {3, 3}; cudaMemcpy(f, h.data(), 8, cudaMemcpyHostToDevice);", 2, "constant(3)"),
        # Not one value everywhere, as far as can be told.
        ("std::vector<int> h = {1, 2}; cudaMemcpy(f, h.data(), 8, cudaMemcpyHostToDevice);", 2, ""),
        ("int h[4] = {5}; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, ""),
        ("int h[4] = {0}; h[2] = 5; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, ""),
        ("int* h = (int*)calloc(4, 4); h[2] = 5; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, ""),
        ("int* h = (int*)calloc(4, 4); *h = 5; cudaMemcpy(f, h, 16, cudaMemcpyHostToDevice);", 4, ""),
        ("std::vector<int> h(4); for (auto& v : h) v = g(); "
         "cudaMemcpy(f, h.data(), 16, cudaMemcpyHostToDevice);", 4, ""),
        ("std::vector<int> h(4); for (int i = 0; i < 4; i++) std::cin >> h[i]; "
         "cudaMemcpy(f, h.data(), 16, cudaMemcpyHostToDevice);", 4, ""),
        ("int z = 0; std::cin >> z; cudaMemcpy(f, &z, 4, cudaMemcpyHostToDevice);", 1, ""),
        ("int z = 7; cudaMemcpy(f, &z, 4, cudaMemcpyHostToDevice);", 2, ""),
    ],
)  # fmt: skip
def test_what_a_flag_is_set_to_is_what_it_holds(fill: str, count: int, contents: str) -> None:
    assert flag(fill, count) == contents


@pytest.mark.parametrize(
    "body",
    [
        "while (true) { if (*flag == 12345) break; }",
        "for (int j = 0; j < flag[0]; j++) { }",
        "do { } while (flag[0] != 3);",
        "int held = *flag; if (held) return;",
        "int held = flag[0] ? 1 : 2; y[0] = held;",
        "switch (*flag) { case 0: return; }",
        "wait(flag);",
    ],
)
def test_a_value_that_decides_is_seen_in_every_place(body: str) -> None:
    kernel = "#include <cuda_runtime.h>\n__global__ void k(const volatile int* flag, float* y, int n) { " + body
    kernel += " y[threadIdx.x] = 1.0f; }\n"
    (line,) = [text for text in statements(WITH_FLAG.replace("COUNT", "1") + "cudaMemset(f, 0, 4);" + LAUNCHED, kernel)
               if text.startswith("buffer f")]  # fmt: skip
    assert line.endswith("zeros")


def test_numbers_that_are_only_worked_on_stay_any_numbers() -> None:
    host = (
        "int main() { int n = 1000; @M std::vector<float> h(n, 1.0f); "
        "cudaMemcpy(x, h.data(), n * sizeof(float), cudaMemcpyHostToDevice); k<<<4, 256>>>(x, y, n); }"
    )
    assert "buffer x: f32[n] in" in statements(host)
    assert "buffer x: f32[n] in" in statements(host.replace("1.0f", "0.0f"))


@pytest.mark.parametrize("stream", ["std::cin", "in"])
def test_a_size_that_is_read_from_a_stream_is_asked_for(stream: str) -> None:
    host = 'int main() { std::ifstream in("sizes"); int n = 1000; ' + stream + " >> n; @M k<<<4, 256>>>(x, y, n); }"
    with pytest.raises(NoWorkload, match="stream"):
        found(host)


def test_a_number_that_is_shifted_is_no_stream() -> None:
    host = "int main() { int m = 4000; int s = 2; int n = m >> s; @M k<<<4, 256>>>(x, y, n); }"
    (buffer, *_) = found(host).buffers
    assert buffer.extent.integer({"m": 4000, "s": 2}) == 1000


@pytest.mark.parametrize(
    ("declared", "host", "contents"),
    [
        ("__device__ volatile int flag;", "", "inout zeros"),
        ("__device__ volatile int flag = 0;", "", "inout zeros"),
        ("__device__ volatile int flag = 7;", "", "inout constant(7)"),
        ("__device__ volatile int flag[2] = {7, 7};", "", "inout constant(7)"),
        ("__device__ volatile int flag[2] = {0};", "", "inout zeros"),
        ("__device__ volatile int flag[2] = {7};", "", "inout"),
        ("__device__ volatile int flag[2] = {1, 2};", "", "inout"),
        ("__constant__ int flag;", "int z = 0; cudaMemcpyToSymbol(flag, &z, 4);", "in zeros"),
        ("__constant__ int flag;", "int z = 5; cudaMemcpyToSymbol(flag, &z, 4);", "in constant(z)"),
        ("__constant__ int flag[2];", "int z = 5; cudaMemcpyToSymbol(flag, &z, 4);", "in"),
        ("__constant__ int flag[2];", "int h[2] = {5, 5}; cudaMemcpyToSymbol(flag, h, 8);", "in constant(5)"),
        ("__constant__ int flag[2];", "int h[2] = {5, 5}; cudaMemcpyToSymbol(flag, h, 4, 4);", "in"),
    ],
)
def test_what_a_device_variable_is_set_to_is_what_it_holds(declared: str, host: str, contents: str) -> None:
    place = "flag[0]" if "[2]" in declared else "flag"
    kernel = declared + "\n__global__ void k(float* y, int n) { while (" + place + " == 0) { } y[threadIdx.x] = n; }\n"
    main = "int main() { int n = 1000; float* y; cudaMalloc(&y, n * 4); " + host + " k<<<1, 32>>>(y, n); }"
    (line,) = [text for text in statements(main, kernel) if text.startswith("symbol flag")]
    assert line.partition("] ")[2] == contents


@pytest.mark.parametrize(
    "text",
    [
        'std::string name = "s"; std::ifstream in(name); int n = 1000; if (!(in >> n)) return 1;',
        "int n = 1000; for (int i = 0; i < 2; i++) { std::cin >> n; }",
        "int n = 1000, m; std::cin >> m >> n;",
        "int n = 1000; std::istringstream(text) >> n;",
    ],
)
def test_every_way_to_read_a_size_from_a_stream(text: str) -> None:
    with pytest.raises(NoWorkload):
        found("int main() { " + text + " @M k<<<4, 256>>>(x, y, n); }")


@pytest.mark.parametrize(
    ("fill", "why"),
    [
        ("cudaMemset(f, 0, 4);", "a call fills it"),
        ("", "nothing fills it"),
        ("load_flags(f);", "a call fills it"),
    ],
)
def test_values_that_decide_a_loop_and_that_nobody_tells_are_asked_for(fill: str, why: str) -> None:
    with pytest.raises(NoWorkload, match=f"contents of `f`: they decide how long a loop of `k` goes on, and {why}"):
        flag(fill, 2)


def access(body: str, parameters: str = "const float* x, float* y") -> dict[str, str]:
    kernel = f"__global__ void k({parameters}) {{ int i = threadIdx.x; {body} }}\n"
    host = (
        "int main() { float *x, *y; cudaMalloc(&x, 256); cudaMalloc(&y, 256); "
        "cudaMemset(x, 0, 256); cudaMemset(y, 0, 256); k<<<1, 16>>>(x, y); }\n"
    )
    document = parse((kernel + host).encode())
    found = infer(document, document.kernel("k"))
    return {buffer.name: buffer.access.value for buffer in found.buffers}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];", "out"),
        ("float* p = y + i; reinterpret_cast<float2*>(p)[0] = make_float2(x[i], 0);", "out"),
        ("*reinterpret_cast<float2*>(y + 2 * i) = make_float2(x[i], 0);", "out"),
        ("reinterpret_cast<float4*>(y)[i].x += x[i];", "inout"),
        ("static_cast<volatile float*>(y)[i] = x[i] + reinterpret_cast<float*>(y)[i + 1];", "inout"),
        ("float v = static_cast<float>(y[i]) + x[i]; if (v < 0) __trap();", "in"),
    ],
)
def test_a_pointer_is_the_same_behind_a_cast(body: str, expected: str) -> None:
    assert access(body) == {"x": "in", "y": expected}


@pytest.mark.parametrize(
    "body",
    [
        "int id = ids[blockIdx.x]; const float* row = w + id * 16; y[i] = row[i];",
        "y[i] = *(w + ids[i] * 2);",
        "const float* row = &w[ids[0] * 16]; y[i] = row[i];",
    ],
)
def test_values_that_move_a_pointer_are_indices(body: str) -> None:
    kernel = f"__global__ void k(const int* ids, const float* w, float* y) {{ int i = threadIdx.x; {body} }}\n"
    host = (
        "int main() { int* ids; float *w, *y; cudaMalloc(&ids, 64); cudaMalloc(&w, 4096); cudaMalloc(&y, 64); "
        "k<<<1, 16>>>(ids, w, y); }\n"
    )
    document = parse((kernel + host).encode())
    with pytest.raises(NoWorkload, match="range of values in `ids`"):
        infer(document, document.kernel("k"))


def test_the_whole_of_an_index_behind_a_sum_tells_its_range() -> None:
    kernel = (
        "__global__ void k(const int* ids, const float* w, float* y) { y[threadIdx.x] = *(w + ids[threadIdx.x]); }\n"
    )
    host = (
        "int main() { int* ids; float *w, *y; cudaMalloc(&ids, 64); cudaMalloc(&w, 4096); cudaMalloc(&y, 64); "
        "k<<<1, 16>>>(ids, w, y); }\n"
    )
    document = parse((kernel + host).encode())
    found = infer(document, document.kernel("k"))
    assert next(str(buffer.domain.high) for buffer in found.buffers if buffer.name == "ids") == "1024"


def test_a_fill_in_a_loop_is_done_in_each_turn() -> None:
    kernel = "__global__ void k(float* y, int s) { atomicAdd(y, s); }\n"
    host = (
        "int main() { float* y; cudaMalloc(&y, 4); "
        "for (int s = 1; s < 5; s++) { cudaMemset(y, 0, 4); k<<<1, 16>>>(y, s); } }\n"
    )
    document = parse((kernel + host).encode())
    steps = plan_statements(infer(document, document.kernel("k")).plan)
    assert [step.split()[0] for step in steps] == ["repeat", "fill", "launch", "}"]


@pytest.mark.parametrize(
    ("type_", "stored", "domain"),
    [
        ("signed char", "rand() % 100", "integers(0, 100)"),
        ("signed char", "rand() % 256", "integers(-128, 128)"),
        ("signed char", "256 * (float)rand() / RAND_MAX", "integers(-128, 128)"),
        ("unsigned char", "rand() % 256", "integers(0, 256)"),
        ("short", "rand() % 70000", "integers(-32768, 32768)"),
    ],
)
def test_a_narrow_integer_holds_no_more_than_its_type(type_: str, stored: str, domain: str) -> None:
    kernel = f"__global__ void k({type_}* x, float* y) {{ y[threadIdx.x] = x[threadIdx.x]; }}\n"
    host = f"int main() {{ int n = 64; {type_}* x; float* y; {type_} h[64]; cudaMalloc(&y, n * 4);"
    host += f" cudaMalloc(&x, n * sizeof({type_})); for (int i = 0; i < n; ++i) h[i] = {stored};"
    host += f" cudaMemcpy(x, h, n * sizeof({type_}), cudaMemcpyHostToDevice); k<<<1, 64>>>(x, y); }}"
    (told,) = [one for one in statements(host, kernel) if one.startswith("buffer x")]
    assert told.endswith(f"in {domain}")


@pytest.mark.parametrize(
    ("body", "indexed", "bounds", "written"),
    [
        ("b[a[i][j]] = 2;", {("a", "b")}, set(), {"b"}),
        ("int t = a[i][j]; b[t] = 1;", {("a", "b")}, set(), {"b"}),
        ("a[b[i]][j] = 1;", {("b", "a")}, set(), {"a"}),
        ("for (int k = 0; k < a[i][j]; k++) b[k] = 1;", set(), {"a"}, {"b"}),
        ("b[i] = a[i][j] + 1;", set(), set(), {"b"}),
        ("int* row = a[i]; row[j] = b[i];", set(), {"a", "b"}, {"a", "b"}),
    ],
)
def test_elements_of_arrays_of_arrays_are_seen_as_those_of_one_array_are(
    body: str, indexed: set[tuple[str, str]], bounds: set[str], written: set[str]
) -> None:
    """A row alone is a pointer that is not followed: then anything may be."""
    text = f"__global__ void k(int a[][8], int* b, int n) {{ int i = threadIdx.x, j = 1; {body} }}"
    document = parse(text.encode(), "k.cu")
    found = usage(document, document.kernels[0])
    assert {(one.holder, one.target) for one in found.indexing} == indexed
    assert found.written == written
    assert (found.bounds | (found.turning if "row" in body else set())) == bounds


@pytest.mark.parametrize(
    ("filled", "domain"),
    [
        ("if (i * i < 5) h[i] = 0; else h[i] = 2.0f * i;", ""),
        ("if (i * i < 5) h[i] = 0; else h[i] = 1;", ""),
        ("if (i * i < 5) h[i] = 0; else if (i > 7) h[i] = 1; else h[i] = 0;", ""),
        ("if (i * i < 5) h[i] = 0; else h[i] = 0;", " zeros"),
        ("if (i * i < 5) h[i] = drand48(); else h[i] = 3;", ""),
        ("if (i * i < 5) h[i] = drand48(); else h[i] = drand48();", " uniform(0, 1)"),
        ("switch (i % 3) { case 0: h[i] = 0; break; default: h[i] = 5; }", ""),
    ],
)
def test_what_branches_put_into_an_array_counts_only_where_they_agree(filled: str, domain: str) -> None:
    kernel = "__global__ void k(float* a) { a[threadIdx.x] += 1; }\n"
    host = f"""
    int main() {{ int n = 100; float *a, *h = (float*)malloc(4 * n); cudaMalloc(&a, 4 * n);
      for (int i = 0; i < n; i++) {{ {filled} }}
      cudaMemcpy(a, h, 4 * n, cudaMemcpyHostToDevice);
      k<<<1, 100>>>(a); }}"""
    assert statements(host, kernel)[1] == f"buffer a: f32[n] inout{domain}"
