"""Device slices: what is in them, what is not, on which lines, and that NVRTC takes them."""

import pytest

from agent.execution.compiler import Build, Options, compile_slice
from agent.source.document import UnknownKernel, parse, read
from agent.source.errors import SliceError
from agent.source.slicing import Slice, device_slice

pytestmark = pytest.mark.usefixtures("nvrtc")

WHOLE = """#include <cstdio>
#include <vector>
#include <cfloat>
#define HD __host__ __device__
#define BLOCK 256
#define UNUSED 3
#define SQUARE(x) ((x) * (x))
#ifndef SIZE
#define SIZE 1024
#endif
using namespace std;
struct Params {
  float a;
  Params(float x) : a(x) {}
  HD float get() const { return a; }
  std::string host() { return "a"; }
};
struct Unused { std::vector<int> v; };
typedef unsigned long long u64;
enum { RED, GREEN };
static const int WIDTH = 7;
int host_global;
__constant__ float filter[WIDTH];
namespace a {
__device__ float inner(float x) { return SQUARE(x) + RED; }
__device__ float unused(float x) { return x; }
namespace {
__device__ u64 counter;
template <typename T, int N>
__global__ void __launch_bounds__(BLOCK) k(T* x, Params p, uint32_t n) {
  if (threadIdx.x < SIZE) x[0] = inner(x[1]) + filter[1] + p.get() + FLT_MAX + M_PI + std::sqrt(x[0]);
  counter += n;
}
}
}
__global__ void other(int* p) { p[0] = 1; }
void host() { std::vector<int> v; printf("x"); a::k<float, BLOCK><<<1, 2>>>(0, 0, 0); }
int main() { host(); }
"""


def compiled(part: Slice) -> Build:
    built = compile_slice(part, Options())
    assert isinstance(built, Build), (built, part.text)
    return built


def test_everything_a_kernel_needs_and_nothing_else():
    part = device_slice(parse(WHOLE.encode(), "w.cu"), ["k"])
    assert part.names == ("a::k<float, BLOCK>",)
    assert part.symbols == ("filter", "a::counter")
    for absent in (
        "UNUSED",
        "Unused",
        "unused",
        "host_global",
        "other",
        "main",
        "printf",
        "std::string",
        "GREEN_",
        "cstdio",
    ):
        assert absent not in part.text
    for present in ("SQUARE", "BLOCK 256", "SIZE 1024", "u64", "WIDTH", "RED", "HD float get()", "FLT_MAX"):
        assert present in part.text
    assert set(compiled(part).symbols) == {"filter", "a::counter"}


def test_every_line_keeps_its_number():
    text = WHOLE.replace("+ M_PI", "+ MISTAKE").replace("counter += n", "counter += oops")
    for end in ("\n", "\r\n"):
        part = device_slice(parse(text.replace("\n", end).encode(), "folder/w.cu"), ["k"])
        failure = compile_slice(part, Options())
        lines = text.split("\n")
        wrong = {(d.file, d.line) for d in failure.diagnostics if d.severity == "error"}
        expected = {("folder/w.cu", n + 1) for n, line in enumerate(lines) if "MISTAKE" in line or "oops" in line}
        assert wrong == expected


def check(code: str, name: str = "k", **files: str) -> Build:
    return compiled(device_slice(parse(code.encode(), "t.cu"), [name]))


# every line of it compiles with nvcc 13.0 too
TRAITS = """#include <type_traits>
struct P { int a; };
enum E { A };
template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0> __device__ T one() { return T(1); }
__global__ void k(float* p) {
  static_assert(std::is_same<std::decay_t<const int&>, int>::value && std::is_same_v<std::decay_t<int[3]>, int*>, "");
  static_assert(std::is_pointer_v<float* const> && !std::is_pointer<float>::value && std::is_signed_v<int>, "");
  static_assert(std::is_unsigned_v<unsigned char> && !std::is_signed_v<P> && std::is_enum_v<E>, "");
  static_assert(std::is_class_v<P> && std::is_trivially_copyable<P>::value && !std::is_void_v<int>, "");
  static_assert(std::is_same_v<std::make_unsigned_t<short>, unsigned short> && std::is_array_v<int[3]>, "");
  static_assert(std::is_convertible_v<int, float> && !std::is_convertible_v<P, float>, "");
  static_assert(std::is_same_v<std::conditional_t<true, int, float>, int>, "");
  static_assert(std::is_same_v<std::remove_cv_t<const volatile int>, int>, "");
  static_assert(std::is_same_v<std::remove_pointer_t<std::add_pointer_t<int&>>, int>, "");
  static_assert(std::is_const_v<std::add_const_t<int>> && std::is_reference_v<int&&> && !std::is_union_v<P>, "");
  if constexpr (std::is_integral<int>::value) p[0] = one<float>() + std::integral_constant<int, 3>::value;
}
"""


@pytest.mark.parametrize(
    "code",
    [
        'extern "C" __global__ void k(int* p) { p[0] = 1; }',
        'extern "C" {\n__device__ int f() { return 1; }\n__global__ void k(int* p) { p[0] = f(); }\n}',
        "#define KERN __global__ void\n#define DEV static __device__ inline\nDEV int f() { return 1; }\n"
        "KERN k(int* p) { p[0] = f(); }",
        "namespace { __device__ int f(); __global__ void k(int* p) { p[0] = f(); } __device__ int f() { return 1; } }",
        "struct __align__(16) V { float x, y, z, w; };\n__global__ void k(V* p) { p[0].x = 1; }",
        "typedef struct { float x; } V;\nusing W = V;\n__global__ void k(W* p) { p[0].x = 1; }",
        "__device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, 0, 0); }\n"
        "__global__ void k(float3* p) { p[0] = p[1] + p[2]; }",
        "enum class Op { ADD, MUL };\ntemplate <Op O> struct Run;\ntemplate <> struct Run<Op::ADD> {\n"
        "  static __device__ int go(int a) { return a; } };\n__global__ void k(int* p) { p[0] = Run<Op::ADD>::go(1); }",
        "constexpr int once(int a) { return a; }\nconstexpr int twice(int a) { return 2 * once(a); }\n"
        "constexpr int N = twice(3);\n__global__ void k(int* p) { p[0] = N; }",
        "const float table[3] = {1, 2, 3};\n__global__ void k(float* p) { p[0] = table[1]; }",
        "template <class T> constexpr T pi = T(3.14159);\n__global__ void k(float* p) { p[0] = pi<float>; }",
        "class C {\n public:\n  C() { n = 0; }\n  explicit C(int m) : n(m) { host(); }\n"
        "  __device__ int get() const;\n  bool operator==(const C& o) const { return 1; }\n private:\n  int n;\n};\n"
        "__device__ int C::get() const { return n; }\n__global__ void k(C c, int* p) { p[0] = c.get(); }",
        "#include <cuda_fp16.h>\n__global__ void k(half* p) { p[0] = __float2half(1.f); }",
        "#include <cuda_runtime.h>\n#include <device_launch_parameters.h>\n#include <x.h>\n__global__ void k() {}",
        '#include <cassert>\n__global__ void k(int* p) { assert(p[0]); printf("%d", p[0]); }',
        "#include <stdint.h>\n"
        "__global__ void k(uint8_t* a, int64_t* b, size_t n, uint m) { b[0] = a[n] + INT_MAX + UINT64_MAX + m; }",
        "__global__ void k(int64_t* b, size_t n, uint m, std::size_t l) { b[0] = n + INT_MAX + CHAR_BIT + m + l; }",
        "__global__ void k(float* p) { p[0] = INFINITY; p[1] = NAN; p[2] = -HUGE_VALF; p[3] = M_PI; }",
        "#include <float.h>\n__global__ void k(double* p) { p[0] = FLT_MAX + DBL_MAX + FLT_EPSILON; }",
        "#include <cmath>\n"
        "__global__ void k(float* p) { p[0] = std::abs(p[1]) + std::pow(p[2], 2.f) + std::isnan(p[3]); }",
        "#include <cstdint>\n__global__ void k(std::uint32_t* p, std::size_t n) { p[n] = 1; }",
        TRAITS,
        "#include <cooperative_groups.h>\n#include <cfloat>\n__global__ void k(uint64_t* p) {\n"
        "  cooperative_groups::this_thread_block().sync(); p[0] = INT_MAX + FLT_MAX + M_PI + UINT32_MAX + NAN; }",
        "typedef unsigned int uint32_t;\n#define M_PI 3.0f\n__global__ void k(uint32_t* p) { p[0] = M_PI; }",
        "#ifdef __CUDACC__\n#define D __device__\n#else\n#define D\n#endif\nD int f() { return 1; }\n"
        "__global__ void k(int* p) { p[0] = f(); }",
        "#if defined(FAST) && FAST > 1\n__device__ int f() { return 1; }\n#elif 0\nint f();\n#else\n"
        "__device__ int f() { return 2; }\n#endif\n__global__ void k(int* p) { p[0] = f(); }",
        "#define N 1\n#undef N\n#define N 2\n__global__ void k(int* p) { p[0] = N; }",
        "#define DEFINE_OP(name, op) __device__ int name##_op(int a, int b) { return a op b; }\n"
        "DEFINE_OP(add, +)\nDEFINE_OP(sub, -);\n__global__ void k(int* p) { p[0] = add_op(1, 2) + sub_op(3, 4); }",
        "#pragma pack(push, 1)\nstruct P { char c; int i; };\n#pragma pack(pop)\n"
        '__global__ void k(P* p) { static_assert(sizeof(P) == 5, "packed"); p[0].i = 1; }',
        "namespace v1 { inline namespace x { struct S { int a; }; } }\nnamespace alias = v1::x;\nusing alias::S;\n"
        "__global__ void k(S* s) { s[0].a = 1; }",
        "using namespace nothing_of_this_is_used;\n__global__ void k() {}",
        "extern __shared__ float s[];\n__global__ void k(float* p) { s[threadIdx.x] = p[0]; p[1] = s[0]; }",
        "__managed__ int m;\nstatic __device__ int d[4] = {1, 2};\n__global__ void k(int* p) { p[0] = m + d[1]; }",
        "__global__ void child(int* p) { p[0] = 2; }\n__global__ void k(int* p) { p[0] = 1; }\n"
        "template __global__ void other<int>(int*);",
        "// caf\xe9 \u03c0 \U0001f600\n__global__ void k(int* p) { p[0] = 1; /* \u4f60 */ }\f",
        "\ufeff__global__ void k(int* p) { p[0] = 1; }",
        "static __global__ void k(int*);\nint main() { k<<<1, 1>>>(0); }\nstatic __global__ void k(int* p) {}",
    ],
)
def test_slices_that_compile(code):
    check(code)


@pytest.mark.parametrize(
    "code",
    [
        "int f() { return 1; }\n__global__ void k(int* p) { p[0] = f(); }",
        "int g = 1;\n__global__ void k(int* p) { p[0] = g; }",
        "#include <cmath>\n__global__ void k(float* p) { p[0] = FLT_MAX; }",
        "#include <algorithm>\n__global__ void k(int* p) { p[0] = std::max(p[0], 1); }",
        "#include <cstdio>\n__global__ void k(uint32_t* p) {}",
        "constexpr int f(int a) { return a; }\n__global__ void k(int* p) { p[0] = f(1); }",
        "constexpr int f(int a) { return a; }\n__global__ void k(int* p) { constexpr int n = f(1); p[0] = n; }",
        "struct S { int a; S(int b) : a(b) {} };\n__global__ void k(int* p) { S s(3); p[0] = s.a; }",
        "struct S { int a; constexpr int get() { return a; } };\n__global__ void k(S s, int* p) { p[0] = s.get(); }",
    ],
)
def test_what_nvcc_refuses_is_refused(code):
    """A host function, a host variable, and a name whose header is missing are errors, each as with nvcc 13.0."""
    assert not isinstance(compile_slice(device_slice(parse(code.encode(), "t.cu"), ["k"]), Options()), Build)


def test_a_part_of_a_program_may_count_on_what_is_included_before_it():
    part = device_slice(parse(b"__global__ void k(uint8_t* p, uint32_t n) { p[n] = 1; }", "t.cuh"), ["k"])
    assert isinstance(compile_slice(part, Options()), Build)


def test_words_of_a_macros_body_are_no_definitions_of_the_standard_librarys_types():
    code = (
        "#include <vector>\n#define OP(NAME) __device__ uint32_t NAME(uint32_t a) { uint32_t b = a; return b; }\n"
        "OP(once)\n#undef OP\n__global__ void k(int* p) { p[0] = once(1); }"
    )
    assert isinstance(compile_slice(device_slice(parse(code.encode(), "t.cu"), ["k"]), Options()), Build)


def test_constexpr_functions_of_constants_are_annotated_and_named():
    code = b"constexpr int f(int a) { return a; }\nconstexpr int N = f(1);\n__global__ void k(int* p) { p[0] = N; }"
    assert device_slice(parse(code), ["k"]).relaxed == ("f",)


def test_relaxed_constexpr_is_the_users_choice():
    code = b"""#include <limits>
#include <algorithm>
constexpr int f(int a) { return a; }
struct S { int a; constexpr S(int b) : a(b) {} constexpr int get() const { return a; } };
__global__ void k(int* p, float* x, unsigned char* c) {
  S s(3);
  p[0] = f(p[1]) + s.get() + std::max(p[2], 1) + std::min(p[3], 2) + std::numeric_limits<int>::min();
  x[0] = std::numeric_limits<float>::infinity() + std::numeric_limits<double>::lowest();
  c[0] = std::numeric_limits<unsigned char>::max() + std::numeric_limits<signed char>::min();
}
"""
    part = device_slice(parse(code, "t.cu"), ["k"], relaxed_constexpr=True)
    assert set(part.relaxed) == {"f", "S", "get"}
    compiled(part)
    assert not isinstance(compile_slice(device_slice(parse(code, "t.cu"), ["k"]), Options()), Build)


def names(code: str, kernel: str = "k") -> tuple[str, ...]:
    part = device_slice(parse(code.encode(), "t.cu"), [kernel])
    compiled(part)
    return part.names


K = "template <typename T, int N> __global__ void k(T* p) { p[0] = N; }\n"
D = "template <int N, typename T> __global__ void k(T* p, int n) { p[0] = N; }\n"


@pytest.mark.parametrize(
    ("code", "kernel", "expected"),
    [
        (K, "k<float, 3>", "k<float, 3>"),
        ("namespace n {\n" + K + "}", "k<int, 1>", "n::k<int, 1>"),
        (K + "#define M 4\nvoid f() { k<float, M><<<1, 1>>>(0); }", "k", "k<float, M>"),
        (K + "void f() { const int m = 32 * 2; k<double, m><<<1, 1>>>(0); }", "k", "k<double, (32 * 2)>"),
        (K + "template <class U> void f(U* u) { k<U, 2><<<1, 1>>>(u); }\nvoid g() { f<int>(0); }", "k", "k<int, 2>"),
        (K + "template <int M> void f() { k<int, M><<<1, 1>>>(0); }\nvoid g() { f<7>(); }", "k", "k<int, 7>"),
        (D + "void f() { double *d; k<3><<<1, 1>>>(d, 1); }", "k", "k<3, double>"),
        (D + "template <class U> void f(U* u) { k<3><<<1, 1>>>(u, 1); }\nvoid g() { int* i; f(i); }", "k", "k<3, int>"),
        ("template <int N = 3> __global__ void k(int* p) { p[0] = N; }", "k", "k<>"),
        ("struct S { int a; };\ntemplate <class T> __global__ void k(T* p) { p->a = 1; }\n"
         "void f() { S* s; k<<<1, 1>>>(s); }", "k", "k<S>"),
    ],
)  # fmt: skip
def test_template_arguments(code, kernel, expected):
    assert names(code, kernel) == (expected,)


def test_overloads_are_told_apart():
    code = "struct P { int a; };\n__device__ void k(int) {}\n"
    code += "__global__ void k(const float* __restrict__ x, P p, int n) {}\n"
    assert names(code) == ("(void(*)(const float* __restrict__, P, int))k",)
    assert names(f"namespace n {{\n{K}}}\n__device__ void k(int) {{}}", "k<int, 1>") == ("n::k<int, 1>",)


def test_a_template_without_known_arguments_is_a_question():
    with pytest.raises(SliceError, match="name an instance, for example 'k<float, 256>'"):
        device_slice(parse(K.encode()), ["k"])


def test_several_kernels_and_unknown_ones():
    code = b"__device__ int f() { return 1; }\n__global__ void a(int* p) { p[0] = f(); }\n__global__ void b() {}"
    part = device_slice(parse(code, "t.cu"), ["b", "a"])
    assert part.names == ("b", "a")
    assert part.text.count("__device__ int f()") == 1
    compiled(part)
    with pytest.raises(UnknownKernel, match="it has a, b"):
        device_slice(parse(code, "t.cu"), ["c"])


def test_a_lost_kernel_is_refused_with_its_damage():
    code = b"SOME MACRO MESS __global__ void ( {\nint x = = ;\n__global__ void MYSTERY<int> WEIRD torn(float* x) {}\n"
    with pytest.raises(SliceError, match="line 3"):
        device_slice(parse(code), ["torn"])


def test_local_headers_are_sliced_in_place(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "math.cuh").write_text(
        '#pragma once\n#include <vector>\n#include "../types.h"\n'
        "__device__ inline Real half_of(Real x) { return x / 2; }\nstd::vector<int> host();\n"
    )
    (tmp_path / "types.h").write_text(
        '#ifndef TYPES_H\n#define TYPES_H\n#include "inner/math.cuh"\ntypedef float Real;\n#endif\n'
    )
    (tmp_path / ".cuda-lsp.toml").write_text("")
    (tmp_path / "k.cu").write_text(
        '#include "inner/math.cuh"\n#include "types.h"\n__global__ void k(Real* p) { p[0] = half_of(p[1]) + oops; }\n'
    )
    part = device_slice(read(tmp_path / "k.cu"), ["k"])
    assert part.dropped == ()
    assert part.text.count("typedef float Real") == 1
    assert "TYPES_H" not in part.text and "vector" not in part.text
    failure = compile_slice(part, Options())
    assert [(d.file, d.line) for d in failure.diagnostics if d.severity == "error"] == [(str(tmp_path / "k.cu"), 3)]


def test_an_error_in_a_header_stands_on_the_headers_line(tmp_path):
    (tmp_path / "h.cuh").write_text("\n\n__device__ int f() { return oops; }\n")
    (tmp_path / "k.cu").write_text('#include "h.cuh"\n__global__ void k(int* p) { p[0] = f(); }\n')
    failure = compile_slice(device_slice(read(tmp_path / "k.cu"), ["k"]), Options())
    assert [(d.file, d.line) for d in failure.diagnostics if d.severity == "error"] == [(str(tmp_path / "h.cuh"), 3)]


def test_include_folders(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "f.h").write_text("static __device__ int f() { return 1; }\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.cu").write_text("#include <f.h>\n__global__ void k(int* p) { p[0] = f(); }\n")
    document = read(tmp_path / "src" / "k.cu")
    compiled(device_slice(document, ["k"], [str(tmp_path / "lib")]))
    missing = device_slice(document, ["k"])
    assert len(missing.dropped) == 1 and ":1: f.h: not found" in missing.dropped[0]


@pytest.mark.parametrize("include", ["../secret.h", "/etc/hostname", "link.h"])
def test_no_header_outside_the_workspace_is_read(tmp_path, include):
    (tmp_path / "secret.h").write_text("__device__ int secret() { return 0x5ec2e7; }\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "link.h").symlink_to(tmp_path / "secret.h")
    (project / "k.cu").write_text(f'#include "{include}"\n__global__ void k(int* p) {{ p[0] = secret(); }}\n')
    part = device_slice(read(project / "k.cu"), ["k"])
    assert "5ec2e7" not in part.text
    assert len(part.dropped) == 1
    assert "outside" in part.dropped[0] or "absolute" in part.dropped[0]


def test_a_kernel_of_a_header_is_found(tmp_path):
    (tmp_path / "k.cuh").write_text("namespace n { template <class T> __global__ void k(T* p) { p[0] = 1; } }\n")
    (tmp_path / "main.cu").write_text('#include "k.cuh"\nint main() { n::k<float><<<1, 1>>>(0); }\n')
    part = device_slice(read(tmp_path / "main.cu"), ["k"])
    assert part.names == ("n::k<float>",)
    compiled(part)


def test_a_kernel_that_only_a_macro_brings_to_life():
    part = device_slice(parse(b"#ifdef GPU\n__global__ void k() {}\n#endif\n"), ["k"])
    assert part.dropped == ("k is there only if GPU is defined, which nothing here does: compile with -DGPU",)
    part = device_slice(parse(b"#define GPU\n#ifdef GPU\n__global__ void k() {}\n#endif\n"), ["k"])
    assert part.dropped == ()


def test_headers_come_only_where_used():
    code = "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <mma.h>\n%s"
    plain = device_slice(parse((code % "__global__ void k(float* p) {}").encode()), ["k"])
    assert "#include" not in plain.text
    half = device_slice(parse((code % "__global__ void k(__half2* p) {}").encode()), ["k"])
    assert "cuda_fp16.h" in half.text and "cooperative" not in half.text
    alias = "namespace cg = cooperative_groups;\n__global__ void k() { cg::this_thread_block().sync(); }"
    grouped = device_slice(parse((code % alias).encode()), ["k"])
    assert "cooperative_groups.h" in grouped.text and "mma.h" not in grouped.text


KEYWORDS = """__global__ void k(float* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""


@pytest.mark.parametrize(
    "macro",
    [
        "#define threadIdx blockIdx",
        "#define float double",
        "#define if(x) if (!(x))",
        "#define __restrict__",
        "#define int long",
    ],
)
def test_a_macro_by_the_name_of_a_keyword_is_in_the_slice(macro: str) -> None:
    """No name in the code calls for it, and all code behind it is another."""
    found = device_slice(parse(f"{macro}\n{KEYWORDS}".encode()), ["k"])
    assert macro in found.text.splitlines()


def test_what_a_file_tells_other_compilers_hides_no_kernel() -> None:
    shim = "#ifndef __CUDACC__\n#define __global__\n#define __device__\n#define __shared__\n#endif\n"
    document = parse((shim + KEYWORDS).encode())
    assert [kernel.name for kernel in document.kernels] == ["k"] and document.kernels[0].damage is None
    assert "#ifndef __CUDACC__" in device_slice(document, ["k"]).text


FUNCTORS = b"""namespace ops {
struct Twice { __device__ float operator()(float v) const { return 2 * v; } };
template <class T> struct Add { T by; __host__ __device__ T operator()(T v) const { return v + by; } };
}
struct Policy { enum { TILE = 32 }; };
template <class F> __global__ void k(float* x, F f) { x[threadIdx.x] = f(1.0f); }
template <int N> __global__ void tiled(float* x) { x[threadIdx.x] = N; }
template <class P> void run(float* x) { tiled<P::TILE><<<1, 32>>>(x); }
int main() {
    float* x;
    @
}
"""


@pytest.mark.parametrize(
    ("kernel", "launch", "instance"),
    [
        ("k", b"k<ops::Twice><<<1, 32>>>(x, ops::Twice());", "k<ops::Twice>"),
        ("k", b"k<<<1, 32>>>(x, ops::Twice());", "k<ops::Twice>"),
        ("k", b"k<<<1, 32>>>(x, ops::Add<float>{1.0f});", "k<ops::Add<float>>"),
        ("tiled", b"tiled<Policy::TILE><<<1, 32>>>(x);", "tiled<Policy::TILE>"),
        ("tiled", b"run<Policy>(x);", "tiled<Policy::TILE>"),
    ],
)
def test_names_in_namespaces_and_members_of_types_fix_a_launch(kernel: str, launch: bytes, instance: str) -> None:
    found = device_slice(parse(FUNCTORS.replace(b"@", launch), "t.cu"), [kernel])
    assert found.names == (instance,)
    assert isinstance(compile_slice(found, Options()), Build)


def test_a_name_of_an_unknown_namespace_fixes_nothing() -> None:
    code = FUNCTORS.replace(b"@", b"k<other::Thing><<<1, 32>>>(x, other::Thing());")
    with pytest.raises(SliceError, match="no launch in this file fixes them"):
        device_slice(parse(code, "t.cu"), ["k"])


def test_an_if_around_specifiers_comes_with_its_function():
    code = (
        "#ifdef __CUDACC__\n__host__ __device__\n#endif\ninline int sign(int x) { return x < 0 ? -1 : 1; }\n"
        "__global__ void k(int* p\n#ifdef WITH_SIZE\n, int n\n#endif\n) { p[0] = sign(p[1]); }\n"
    )
    part = device_slice(parse(code.encode(), "t.cu"), ["k"])
    assert part.text.count("#ifdef") == part.text.count("#endif") == 2
    compiled(part)
