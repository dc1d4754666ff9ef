"""What a ``__global__`` definition says, and which definitions are damaged."""

import pytest

from agent.source.document import UnknownKernel, parse
from agent.source.kernel import TemplateParameter


def only(code: str):
    kernels = parse(code.encode()).kernels
    assert len(kernels) == 1
    return kernels[0]


def test_name_template_parameters_and_spans():
    code = """namespace a { namespace { namespace b::c {
template <typename T, int N = 4, class U = float>
static __global__ void __launch_bounds__(256, 2, 4) k(const T* __restrict__ x, int n = 3) { x[n] = N; }
}}}"""
    kernel = only(code)
    assert (kernel.name, kernel.qualified_name, kernel.line) == ("k", "a::b::c::k", 3)
    assert kernel.template == (
        TemplateParameter("T", "type", "", None),
        TemplateParameter("N", "value", "int", "4"),
        TemplateParameter("U", "type", "", "float"),
    )
    assert kernel.launch_bounds == ("256", "2", "4")
    assert code[kernel.span.start : kernel.span.end].startswith("template <typename T")
    assert code[kernel.span.start : kernel.span.end].endswith("x[n] = N; }")
    assert code[kernel.body.start : kernel.body.end] == "{ x[n] = N; }"
    assert code[kernel.name_span.start : kernel.name_span.end] == "k"
    assert kernel.signature.end == kernel.body.start
    assert kernel.damage is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("const float* __restrict__ x", ("x", "const float* __restrict__", "float", 1, True, True)),
        ("float* const __restrict x", ("x", "float* const __restrict", "float", 1, False, True)),
        ("float const *x", ("x", "float const *", "float", 1, True, False)),
        ("unsigned int n", ("n", "unsigned int", "unsigned int", 0, False, False)),
        ("float **x", ("x", "float **", "float", 2, False, False)),
        ("float x[3]", ("x", "float [3]", "float", 1, False, False)),
        ("const float4 v", ("v", "const float4", "float4", 0, True, False)),
        ("int", ("", "int", "int", 0, False, False)),
        ("float *", ("", "float *", "float", 1, False, False)),
        ("T (*f)(int)", ("f", "T (*)(int)", "T", 1, False, False)),
        ("int n = 3", ("n", "int", "int", 0, False, False)),
        ("struct P p", ("p", "struct P", "P", 0, False, False)),
        ("const ns::V<float, 3>& v", ("v", "const ns::V<float, 3>&", "ns::V<float, 3>", 0, True, False)),
        ("const __grid_constant__ P p", ("p", "const __grid_constant__ P", "P", 0, True, False)),
        ("volatile int* lock", ("lock", "volatile int*", "int", 1, False, False)),
    ],
)
def test_parameters(written, expected):
    parameter = only(f"__global__ void k({written}) {{}}").parameters[0]
    assert (
        parameter.name,
        parameter.type,
        parameter.element,
        parameter.pointer_depth,
        parameter.const,
        parameter.restrict,
    ) == expected


def test_no_parameters():
    assert only("__global__ void k() {}").parameters == ()
    assert only("__global__ void k(void) {}").parameters == ()


@pytest.mark.parametrize(
    "code",
    [
        'extern "C" __global__ void k(int* p) {}',
        'extern "C" { __global__ void k(int* p) {} }',
        "__global__ static void k(int* p) {}",
        "void __global__ k(int* p) {}",
        "__launch_bounds__(64) __global__ void k(int* p) {}",
        "template <> __global__ void k<float>(int* p) {}",
        "#define G __global__\nG void k(int* p) {}",
        '#define KERNEL extern "C" __global__ void\nKERNEL k(int* p) {}',
        "#define HD __host__ __device__\n#define EXPORT\nEXPORT __global__ void k(int* p) {}",
        "#if A\n__global__ void k(int* p) {}\n#endif",
        "struct S { static __global__ void k(int* p) {} };",
    ],
)
def test_forms_of_definitions(code):
    kernel = only(code)
    assert kernel.name == "k"
    assert [p.name for p in kernel.parameters] == ["p"]
    assert kernel.damage is None


def test_specialisations_keep_their_arguments():
    kernels = parse(
        b"template <class T> __global__ void k(T* p) {}\ntemplate <> __global__ void k< float >(float* p) {}"
    ).kernels
    assert [k.qualified_name for k in kernels] == ["k", "k<float>"]


def test_what_is_no_kernel():
    code = b"""__global__ void declared(int*);
template __global__ void k<float>(float*);
extern "C" __global__ void __raygen__render();
// __global__ void comment() {}
const char* s = "__global__ void string() {}";
#define BODY __global__ void macro() {}
__device__ void device() {}
void host() {}
extern "C" __device__ void __raygen__x() {}
"""
    assert parse(code).kernels == ()


def test_the_span_begins_at_the_specifiers_that_were_blanked():
    code = "int x;\n/* c */ CUTLASS_API __align__(8)\n__global__ void k() {}"
    kernel = only(code)
    assert code[kernel.span.start :].startswith("CUTLASS_API")


def test_damage_is_judged_per_kernel():
    code = b"""__global__ void good(int* p) { p[0] = 1; }
__global__ void bad(int* p) {
  int i = 3
  p[i] = 1;
}
__global__ void fine(int* p) { p[0] = 1; }
"""
    damage = {k.name: k.damage for k in parse(code).kernels}
    assert damage["good"] is None and damage["fine"] is None
    assert "line 3" in damage["bad"]


def test_a_kernel_that_the_parser_lost_is_still_listed():
    code = b"""SOME MACRO MESS __global__ void ( {
int x = = ;
__global__ void MYSTERY<int> WEIRD torn(float* x) { x[0] = 1.f; }
__global__ void sound(float* x) { x[0] = 1.f; }
"""
    kernels = {k.name: k for k in parse(code).kernels}
    assert "sound" in kernels and "torn" in kernels
    assert kernels["torn"].damage is not None
    assert "line 3" in kernels["torn"].damage


def test_uses_are_the_names_from_outside():
    code = """__global__ void k(const Point* p, int n) {
  __shared__ float tile[TILE];
  for (int i = 0; i < n; ++i) tile[i] = helper<Half>(p->x, ns::scale) * table[i];
#if defined(FAST)
  n = EXTRA(n);
#endif
  // comment_word "string_word"
  printf("text_word %f", tile[0]);
}"""
    assert only(code).uses == {
        "Point", "TILE", "helper", "Half", "ns", "scale", "table", "FAST", "EXTRA", "printf",
    }  # fmt: skip


def test_kernels_by_name():
    document = parse(b"namespace a { __global__ void k() {} }\nnamespace b { __global__ void k() {} }", "f.cu")
    assert document.kernel("b::k").qualified_name == "b::k"
    assert document.kernel("k").qualified_name == "a::k"
    assert document.kernel(" ::a :: k ").qualified_name == "a::k"
    with pytest.raises(UnknownKernel, match=r"no kernel 'x' in f\.cu: it has a::k, b::k"):
        document.kernel("x")
    with pytest.raises(UnknownKernel, match="no kernel at all"):
        parse(b"int x;").kernel("x")


def test_programs_of_optix_are_no_kernels():
    code = b'extern "C" __global__ void __raygen__frame() {}\n__global__ void __miss__radiance() {}\n'
    assert [kernel.name for kernel in parse(code + b"__global__ void k() {}\n").kernels] == ["k"]
