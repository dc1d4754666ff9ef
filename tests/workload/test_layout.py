"""Where members of structs lie: what we say against what NVRTC says, in the emulator."""

import numpy as np
import pytest

from agent.source.document import parse
from agent.workload.binding import BoundLaunch, PointerArgument, RecordArgument
from agent.workload.layout import LayoutError, alignment, layout_of, leaves, size
from tests.execution.emulator.building import build, run

STRUCTS = {
    "numbers": "struct P { char a; double b; short c; int d; bool e; long long f; unsigned char g; float h; };",
    "vectors": "struct P { char a; float3 b; float2 c; char d; float4 e; uchar4 f; int3 g; double2 h; short2 i; };",
    "pointers": "struct P { char a; const float* __restrict__ b; int* const* c; short d, *e; void* f; };",
    "arrays": "#define N 3\nstruct P { char a; float b[N]; char c[5][2]; float4 d[N - 1]; const int* e[2]; char f; };",
    "nested": "struct A { char x; double y; };\nstruct P { char a; A b; char c; struct A d[2]; char e; };",
    "nested in it": "struct P { struct A { char x; int y; }; char a; A b; struct { short u; float v; } c[2]; };",
    "its own words": "struct P { static const int M = 4; using T = short; char a; T b[M]; static int count; T c; };",
    "aligned": "struct __align__(16) A { char x; };\nstruct alignas(32) P { char a; A b; alignas(8) char c, d; };",
    "no members": "struct P { __device__ int operator()(int x) const { return x + 1; } };",
    "methods": (
        "class A { int x; public: __device__ A() {} __device__ int get() const { return x; } };\n"
        "struct P { char a; A b; __host__ __device__ float* at(int i) { return c + i; } float* c; int f(int); };"
    ),
    "aliases": "typedef unsigned int word;\nusing real = double;\ntypedef struct { word a; real b; } P;",
    "an enumeration": "enum E { one, two };\nenum class F : unsigned char { x };\nstruct P { F a; E b; F c[3]; };",
    "names": "namespace a { struct Q { char x; }; }\nstruct Q { double x; };\nstruct P { a::Q f; Q g; a::Q h; };",
    "a template": "template <class T, int N=2> struct A { char c; T v[N]; };\nstruct P { A<int, 3> a; A<float4> b; };",
}


@pytest.mark.parametrize("name", STRUCTS)
def test_the_compiler_says_the_same(name: str) -> None:
    source = STRUCTS[name]
    layout = layout_of(parse(source.encode()), "P")
    told = [(path, offset) for path, offset, _ in leaves(layout) if name != "methods" or path != ".b.x"]
    lines = "".join(f"out[{2 + at}] = (char*)&p{path} - (char*)&p;" for at, (path, _) in enumerate(told))
    kernel = f'{source}\nextern "C" __global__ void k(P p, long long* out)'
    built = build(f"{kernel} {{ out[0] = sizeof(P); out[1] = alignof(P); {lines} }}")
    argument = RecordArgument(size(layout), alignment(layout), ())
    step = BoundLaunch("k", (1, 1, 1), (1, 1, 1), 0, (argument, PointerArgument("out")))
    _, outputs = run(built, step, {"out": np.zeros(2 + len(told), np.int64)})
    assert outputs["out"].tolist() == [size(layout), alignment(layout), *(offset for _, offset in told)]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("struct B { int x; };\nstruct P : B { int y; };", "it has a base class"),
        ("struct P { virtual void f(); int x; };", "it has virtual functions"),
        ("struct P { unsigned a : 3; int b : 5; };", "it has bit fields"),
        ("struct P { union { int a; float b; }; };", "it has a union"),
        ("struct P { float& x; };", "`& x` in it is a reference"),
        ("struct P { float (*f)(float); };", "is a pointer to a function"),
        ("struct P { int n; float x[]; };", "has no extent"),
        ("struct P { P(const P& other); int x; };", "it has a copy constructor"),
        ("struct P { ~P(); int x; };", "it has a destructor"),
        ("struct P {\n#ifdef WIDE\n  double x;\n#else\n  float x;\n#endif\n};", "its members depend on `#if`"),
        ("struct P { char a; int b; } __attribute__((packed));", "`__attribute__`"),
        ("#pragma pack(1)\nstruct P { char a; int b; };", "`#pragma pack` may pack it"),
        ("struct P { float x[N]; };", "`N` in it is no number that the file tells"),
        ("#ifdef W\n#define N 2\n#else\n#define N 3\n#endif\nstruct P { float x[N]; };", "`N` in it is no number"),
        ("struct P { Other x; };", "the type `Other` is not defined"),
        ("struct P;", "the type `P` is not defined"),
        ("namespace a { struct Q {}; }\nnamespace b { struct Q { int x; }; }\nstruct P { Q q; };", "2 definitions"),
        ("template <int N> struct P { int x[N]; };", "not told with all of its template arguments"),
        ("template <typename T> struct P { T x; };\ntemplate <> struct P<int> { char x; };", "2 definitions of `P`"),
        ("struct P { P x; };", "more than 16 deep"),
        ("struct P { int x[10000]; };", "more than 32764 bytes"),
        ("struct P { long double x; };", "the type `long double` is not defined"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_named(source: str, words: str) -> None:
    with pytest.raises(LayoutError) as raised:
        layout_of(parse(source.encode()), "P")
    assert words in str(raised.value)


def test_a_struct_of_the_file_goes_before_a_name_of_a_library() -> None:
    # CUDA's own complex<float> is aligned to 8 bytes, this one to 4
    own = parse(b"template <typename T> struct complex { T re, im; };\nstruct P { int a; complex<float> b; };")
    assert [offset for _, offset, _ in leaves(layout_of(own, "P"))] == [0, 4, 8]
