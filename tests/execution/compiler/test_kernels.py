"""Slices that are tried again: without what fails beside the kernels, and as a build with other flags reads them."""

import pytest

from agent.execution.compiler import Build, CompileFailure, Options
from agent.execution.compiler.kernels import compile_kernels
from agent.source.document import parse
from agent.source.slicing import Slice

pytestmark = pytest.mark.usefixtures("nvrtc")


def tried(code: str, *flags: str, **more: object) -> tuple[Slice, Build | CompileFailure]:
    how = {"lenient": True} | more
    return compile_kernels(parse(code.encode(), "t.cu"), ["k"], Options(flags=flags), **how)  # type: ignore[arg-type]


def test_what_fails_beside_the_kernel_is_left_out_and_said():
    code = (
        "#define BIND(name) const void* name##_binding = torch::bind(name);\n"
        "struct Logger { fmt::format text; };\n"
        "typedef unknown_t Handle;\n"
        "struct Used { int a; };\n"
        "__device__ int helper(Used u) { return u.a; }\n"
        "__global__ void k(int* p, Used u) { p[0] = helper(u); }\n"
        "BIND(k)\n"
    )
    part, built = tried(code)
    assert isinstance(built, Build)
    assert any("t.cu:7: left out" in text for text in part.dropped)


@pytest.mark.parametrize(
    "code",
    [
        # without the second overload the first would be called
        "__device__ int f(float) { return 1; }\n__device__ int f(int) { return oops; }\n"
        "__global__ void k(int* p) { p[0] = f(2); }\n",
        # without the specialisation the primary template would be taken
        "template <class T> struct S { static const int v = 1; };\n"
        "template <> struct S<int> { static const int v = oops; };\n__global__ void k(int* p) { p[0] = S<int>::v; }\n",
        # the kernel itself
        "__global__ void k(int* p) { p[0] = oops; }\n",
    ],
)
def test_nothing_comes_to_mean_something_else(code):
    failure = tried(code)[1]
    assert isinstance(failure, CompileFailure)
    assert "oops" in failure.message


def test_relaxed_where_only_that_compiles():
    code = "#include <limits>\n#include <array>\n__global__ void k(float* p) {\n"
    code += "  std::array<float, 2> a{1, 2};\n  p[0] = std::numeric_limits<float>::max() + a[1];\n}\n"
    assert isinstance(tried(code)[1], Build)
    # and so with the flag itself
    assert isinstance(tried(code, "--expt-relaxed-constexpr")[1], Build)
    # a function of the host is none of the device's in any way
    assert isinstance(tried("int f() { return 1; }\n__global__ void k(int* p) { p[0] = f(); }")[1], CompileFailure)


def test_types_of_the_standard_library_that_nvcc_takes():
    code = (
        "#include <type_traits>\n#include <utility>\n"
        "template <int... I> __device__ int sum(std::integer_sequence<int, I...>) { return (I + ...); }\n"
        "__global__ void k(int* p) {\n"
        "  typename std::common_type<int, float>::type x = 1.5f;\n"
        "  p[0] = sum(std::make_integer_sequence<int, 4>{}) + (int)(2 * x) + std::move(p[1]);\n}\n"
    )
    part, built = tried(code)
    assert isinstance(built, Build)
    assert part.relaxed == ()


def test_the_other_stand_in_where_the_first_does_not_compile():
    code = (
        "#include <cuda_fp16.h>\n"
        "template <class T> struct Traits;\ntemplate <> struct Traits<__half> { static const int width = 2; };\n"
        "template <class T> __global__ void k(T* p) { p[0] = T(Traits<T>::width); }\n"
    )
    part, built = tried(code, stand_ins=("float", "__half"))
    assert isinstance(built, Build)
    assert part.assumed == ("T = __half",)


def test_the_device_side_of_the_runtime():
    code = "__global__ void k(int* p) { cudaGridDependencySynchronize(); p[0] = 1; "
    code += "cudaTriggerProgrammaticLaunchCompletion(); }"
    built = tried(code)[1]
    assert isinstance(built, Build)
    assert "griddepcontrol.wait" in built.ptx
    assert "griddepcontrol.launch_dependents" in built.ptx


def test_types_that_a_librarys_header_brings():
    code = "#include <cublas_v2.h>\n__global__ void k(__nv_bfloat16* p) { p[0] = p[1] + p[2]; }\n"
    assert isinstance(tried(code)[1], Build)
    assert isinstance(tried(code.replace("cublas_v2", "stdio"))[1], CompileFailure)


def test_a_rewrite_gets_the_liberties_of_its_original_and_no_others():
    head = "#include <limits>\nstruct Logger { fmt::format text; };\n__device__ Logger* log_of(int);\n"
    kernel = "__global__ void k(float* p) {{ p[0] = std::numeric_limits<float>::max() + {}; }}\nvoid* q = new Logger;\n"
    strict = compile_kernels(parse((head + kernel.format(1)).encode(), "t.cu"), ["k"], Options())[1]
    assert isinstance(strict, CompileFailure)
    original = tried(head + kernel.format(1))[1]
    assert isinstance(original, Build)
    options = Options(liberties=original.liberties)
    again = compile_kernels(parse((head + kernel.format(2)).encode(), "t.cu"), ["k"], options)[1]
    assert isinstance(again, Build)
    worse = head + "__device__ float helper() { return oops; }\n" + kernel.format("helper()")
    assert isinstance(compile_kernels(parse(worse.encode(), "t.cu"), ["k"], options)[1], CompileFailure)


def test_without_leniency_nothing_is_tried():
    code = "#include <limits>\n__global__ void k(float* p) { p[0] = std::numeric_limits<float>::max(); }\n"
    assert isinstance(tried(code, lenient=False)[1], CompileFailure)


def test_types_of_the_standard_library_beside_those_of_stdint():
    code = (
        "#include <cstdint>\n#include <climits>\n#include <cfloat>\n#include <cmath>\n#include <type_traits>\n"
        "__global__ void k(uint64_t* p, int64_t* q, float* r) {\n"
        "  typename std::common_type<uint64_t, int>::type x = INT_MAX;\n"
        "  p[0] = x + UINT64_MAX; q[0] = INT64_MIN; r[0] = FLT_MAX + M_PI + INFINITY; }\n"
    )
    assert isinstance(tried(code, lenient=False)[1], Build)


def test_what_thrust_gives_device_code():
    code = (
        "#include <thrust/tuple.h>\n#include <thrust/functional.h>\n#include <thrust/device_vector.h>\n"
        "struct Less { __host__ __device__ bool operator()(const thrust::tuple<int, float>& a, int b) const "
        "{ return thrust::get<0>(a) < b; } };\n"
        "__global__ void k(int* p) { p[0] = Less()(thrust::make_tuple(1, 2.f), p[1]) + thrust::plus<int>()(1, 2); }\n"
        "int main() { thrust::device_vector<int> v(4); }\n"
    )
    assert isinstance(tried(code, lenient=False)[1], Build)


def test_a_template_variable_is_no_symbol():
    code = "template <class T> __device__ const T zero = T(0);\n__device__ int count;\n"
    part, built = tried(code + "__global__ void k(float* p) { p[0] = zero<float> + count; }", lenient=False)
    assert isinstance(built, Build)
    assert part.symbols == ("count",)


def test_variables_that_have_no_name_outside_do_not_hinder_a_kernel():
    """A managed one cannot be named to the compiler, also where a macro hides what it is; others still can."""
    code = "#define SHARED __managed__\nSHARED __device__ int turn;\n__device__ int count;\n"
    part, built = tried(code + "__global__ void k(int* p) { p[0] = turn + count; }", lenient=False)
    assert isinstance(built, Build)
    assert part.symbols == ("count",) and set(built.symbols) == {"count"}
