"""Which instances of a template kernel a program names: at launches, behind macros, through pointers and wrappers."""

import pytest

from agent.source.document import parse
from agent.source.errors import SliceError
from agent.source.slicing import device_slice, kernel_instances

K = "template <typename T, int N> __global__ void k(T* p) { p[0] = N; }\n"


def instances(code: str, stand_ins: str = "") -> tuple[str, ...]:
    return kernel_instances(parse(code.encode(), "t.cu"), "k", stand_ins=stand_ins)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # every launch
        ("void f() { k<float, 1><<<1, 1>>>(0); k<int, 2><<<1, 1>>>(0); k<float, 1><<<2, 1>>>(0); }",
         ("k<float, 1>", "k<int, 2>")),
        # every call of a wrapper
        ("template <class T> void f(T* p) { k<T, 4><<<1, 1>>>(p); }\nvoid g() { f<float>(0); f<double>(0); }",
         ("k<float, 4>", "k<double, 4>")),
        # an explicit instantiation of the wrapper, and of the kernel
        ("template <int M> void f() { k<int, M><<<1, 1>>>(0); }\ntemplate void f<7>();", ("k<int, 7>",)),
        ("template __global__ void k<float, 8>(float*);", ("k<float, 8>",)),
        # pointers to it
        ("void f() { auto p = &k<float, 5>; p<<<1, 1>>>(0); }", ("k<float, 5>",)),
        ("void f() { cudaLaunchKernelEx(&c, k<float, 6>, x); cudaFuncSetAttribute(k<float, 7>, a, 1); }",
         ("k<float, 6>", "k<float, 7>")),
        # launches in macros, the kernel's name among their arguments or pasted together
        ("#define RUN(T, n) k<T, n><<<1, 1>>>(0)\nvoid f() { RUN(float, 3); RUN(int, 4); }",
         ("k<float, 3>", "k<int, 4>")),
        ("#define RUN(name) name<float, 3><<<1, 1>>>(0)\nvoid f() { RUN(k); }", ("k<float, 3>",)),
        ("#define NAME k\n#define RUN(a) a##k\n#define CALL(n) RUN()<int, n><<<1, 1>>>(0)\nvoid f() { CALL(9); }",
         ("k<int, 9>",)),
        ("#define LAUNCHER(T) void launch_##T(T* p) { k<T, 2><<<1, 1>>>(p); }\nLAUNCHER(float)\nLAUNCHER(int)",
         ("k<float, 2>", "k<int, 2>")),
        # a dispatch macro gives each case a constant and an alias
        ("#define DISPATCH(n, N, ...) switch (n) { case 1: { constexpr int N = 1; __VA_ARGS__ break; } "
         "case 2: { constexpr int N = 2; __VA_ARGS__ break; } }\n"
         "void f(int n) { DISPATCH(n, M, { k<float, M><<<1, 1>>>(0); }) }", ("k<float, 1>", "k<float, 2>")),
        # local aliases and constants, the last before the place
        ("void f() { using V = float; constexpr int M = 3; k<V, M><<<1, 1>>>(0); }", ("k<float, 3>",)),
        ("void f(int n) { if (n) { const int M = 1; k<int, M><<<1, 1>>>(0); } else { const int M = 2; "
         "k<int, M><<<1, 1>>>(0); } }", ("k<int, 1>", "k<int, 2>")),
        # PyTorch's dispatch, whose headers are not there
        ('void f(T x) { AT_DISPATCH_FLOATING_TYPES(x.type(), "k", [&] { k<scalar_t, 1><<<1, 1>>>(0); }); }',
         ("k<float, 1>", "k<double, 1>")),
        # a constant of a header that is not there
        ("using namespace cub;\ntemplate <int A> void f() { k<int, A><<<1, 1>>>(0); }\nvoid g() { f<BLOCK_SCAN>(); }",
         ("k<int, BLOCK_SCAN>",)),
        # names of a namespace, from file level
        ("namespace n { struct S { static const int X = 4; };\nvoid f() { k<float, S::X><<<1, 1>>>(0); } }",
         ("k<float, n::S::X>",)),
    ],
)  # fmt: skip
def test_every_instance(code, expected):
    assert instances(K + code) == expected


D = "template <typename T> __global__ void k(T* p, const T* q, int n) { p[0] = q[n]; }\n"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("float* a; k<<<1, 1>>>(a, a, 1);", "float"),
        ("k<<<1, 1>>>((double*) a, b, 1);", "double"),
        ("k<<<1, 1>>>(static_cast<int*>(a), b, 1);", "int"),
        ("k<<<1, 1>>>(x.data_ptr<float>(), b, 1);", "float"),
        ("thrust::device_vector<short> v; k<<<1, 1>>>(thrust::raw_pointer_cast(v.data()), b, 1);", "short"),
        ("char* a; k<<<1, 1>>>(a + 4, b, 1);", "char"),
    ],
)
def test_types_follow_from_what_is_passed(call, kind):
    assert instances(f"{D}void f(int n) {{ {call} }}") == (f"k<{kind}>",)


def test_what_is_not_fixed_is_not_guessed_unless_asked_and_then_said():
    open_ended = K + "template <class T> void f(T* p) { k<T, 4><<<1, 1>>>(p); }\n"
    with pytest.raises(SliceError, match="no launch"):
        instances(open_ended)
    part = device_slice(parse(open_ended.encode(), "t.cu"), ["k"], stand_ins="double")
    assert part.names == ("k<double, 4>",)
    assert part.assumed == ("T = double",)
    never = device_slice(parse(b"template <bool B, int W> __global__ void k() {}", "t.cu"), ["k"], stand_ins="1")
    assert never.names == ("k<false, 1>",)
    assert never.assumed == ("B = false", "W = 1")


def test_a_certain_instance_is_preferred_to_a_guess():
    code = K + "template <class T> void f(T* p) { k<T, 4><<<1, 1>>>(p); }\nvoid g() { k<int, 1><<<1, 1>>>(0); }"
    part = device_slice(parse(code.encode(), "t.cu"), ["k"], stand_ins="float")
    assert (part.names, part.assumed) == (("k<int, 1>",), ())


def test_endless_macros_end():
    code = K + "#define A(x) B(x) B(x)\n#define B(x) A(x) k<int, x><<<1, 1>>>(0);\nvoid f() { A(3); }"
    assert instances(code) == ("k<int, 3>",)
