"""Blanking keeps every length and every line, and makes the parser read what it did not know."""

import time

import pytest
from hypothesis import given, settings

from agent.source.blanking import blank
from agent.source.document import parse
from tests.source.strategies import texts


def line_ends(text: bytes) -> list[int]:
    return [at for at, byte in enumerate(text) if byte == 0x0A]


@settings(max_examples=400, deadline=None)
@given(texts)
def test_length_and_line_ends_are_kept(text):
    blanked = blank(text)
    assert len(blanked.text) == len(text)
    assert line_ends(blanked.text) == line_ends(text)
    # outside what the side table lists not a byte differs
    covered = bytearray(len(text))
    for found in blanked.blanks:
        covered[found.span.start : found.span.end] = b"\1" * len(found.span)
    assert all(a == b for a, b, hidden in zip(text, blanked.text, covered, strict=True) if not hidden)


BODY = b"void f(int n, float* p) {\n%s\n}\n"
CASES = {
    "third launch bound": b"__global__ void __launch_bounds__(256, 2, 4) k(int* p) {}",
    "bounds before global": b"__launch_bounds__(256) __global__ void k(int* p) {}",
    "maxnreg": b"__global__ void __maxnreg__(64) k(int* p) {}",
    "cluster dims": b"__global__ void __cluster_dims__(2, 1, 1) k(int* p) {}",
    "block size": b"__global__ void __block_size__((64, 1, 1), (2, 1, 1)) k(int* p) {}",
    "inline hint": b"__inline_hint__ __device__ int f() { return 1; }",
    "pure": b"__nv_pure__ __device__ int f() { return 1; }",
    "aligned struct": b"struct __align__(16) S { float a; };",
    "aligned typedef": b"typedef struct __align__(8) { float a; } S;",
    "aligned shared": b"extern __shared__ __align__(16) char s[];",
    "aligned local": BODY % b"__shared__ float __align__(8) s[4];",
    "alignas": BODY % b"alignas(16) __shared__ char s[4];",
    "device lambda": BODY % b"auto l = [=] __device__ (int i) { return i; };",
    "host device lambda": BODY % b"auto l = [=] __host__ __device__ (int i) { return i; };",
    "brace configuration": BODY % b"k<<<{1, 2}, {3, 4}>>>(p);",
    "brace grid": BODY % b"k<<<dim3{1, 2}, {n / 2, 4}, 0, s>>>(p);",
    "empty braces": BODY % b"k<<<{}, 1>>>(p);",
    "else pragma": BODY % b"if (n) p[0] = 1; else\n#pragma unroll\nfor (int i = 0; i < n; ++i) p[i] = 0;",
    "for pragma for": BODY % b"for (int i = 0; i < n; ++i)\n#pragma unroll 4\nfor (int j = 0; j < n; ++j) p[i] = 0;",
    "Pragma": BODY % b'_Pragma("unroll 4") for (int i = 0; i < n; ++i) p[i] = 0;',
    "unroll macro": b'#define UNROLL _Pragma("unroll")\n' + BODY % b"UNROLL for (int i = 0; i < n; ++i) p[i] = 0;",
    "known unroll": BODY % b"CUTLASS_PRAGMA_UNROLL\nfor (int i = 0; i < n; ++i) p[i] = 0;",
    "statement macro": BODY % b"CHECK(cudaMalloc(&p, 4))\nn = 1;",
    "string statement": BODY % b'PUSH_RANGE("x", 1)\nn = 1;',
    "bare macro": BODY % b"n = 2;\nCUDA_ERRCK\nk<<<1, 2>>>(p);",
    "restrict": b"__global__ void k(float* const __restrict p) {}",
    "own specifier": b"#define HD __host__ __device__\nHD int f() {}\nstruct S { HD int g() const { return 1; } };",
    "specifier of specifier": b"#define H __host__\n#define HD H __device__ inline\nHD int f() { return 1; }",
    "known specifier": b"CUTLASS_HOST_DEVICE int f() { return 1; }\nC10_LAUNCH_BOUNDS_1(256) __global__ void k() {}",
    "empty macro": b"#define EXPORT\nEXPORT int f() { return 1; }",
    "kernel macro": b"#define KERN __global__ void\nKERN k(int* p) { p[0] = 1; }",
    "declaration macro": b"REGISTER(a, b)\n__global__ void k(int* p) {}",
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES.keys())
def test_the_parser_reads_it_with_blanking(code):
    assert not parse(code).tree.root_node.has_error


def test_values_are_kept_in_the_side_table():
    blanks = blank(
        b"struct __align__(16) S {};\n__global__ void __maxnreg__(64) __cluster_dims__(2, 1, 1) k() {}"
    ).blanks
    assert [(b.name, b.value) for b in blanks] == [
        ("__align__", "16"),
        ("__maxnreg__", "64"),
        ("__cluster_dims__", "2, 1, 1"),
    ]


def test_the_argument_of_a_statement_macro_stays_visible():
    blanked = blank(b"void f() {\n  CHECK(cudaMalloc(&p, 4))\n  CHECK(cudaFree(p));\n}\n").text
    assert blanked == b"void f() {\n        cudaMalloc(&p, 4);\n  CHECK(cudaFree(p));\n}\n"


def test_nothing_is_blanked_in_comments_strings_and_macro_bodies():
    text = b'// __align__(8)\n/* __maxnreg__(3) */\nconst char* s = "__align__(8)";\n#define A __align__(8)\n'
    assert blank(text).text == text


def test_a_constant_named_like_a_specifier_stays():
    text = b"#define HOST_API 3\nint z = sizeof HOST_API [1];\n"
    text += b"enum { HD, GPU_DEVICE = 2 };\nint x = GPU_DEVICE + HD;\n#define BS 256\nint y = BS;\n"
    assert blank(text).text == text


def test_a_macro_that_opens_a_loop_is_no_statement():
    text = b"#define EACH(i, n) for (int i = 0; i < n; ++i)\nvoid f() {\n  EACH(i, 3)\n  g(i);\n}\n"
    assert blank(text).text == text


HOSTILE = {
    "open attributes": b"__align__(" * 60000,
    "open block comments in directives": b"#/*" * 200000,
    "unclosed raw strings": b'R"(' * 200000,
    "quotes": b"'\\" * 300000,
    "one long line": b"x" * 600000,
    "a line of macros": b"\n" + b"CHECK(x)" * 60000,
    "statement macros": b"void f() {\n" + b"CHECK(x)\n" * 60000,
    "open statement macros": b"void f() {\n" + b"CHECK(\n" * 60000,
    "open chevrons": b"k<<<{1," * 60000,
    "pragmas": b"else\n" + b"#pragma unroll\n" * 40000,
    "defines": b"".join(b"#define A%d __host__ A%d\n" % (i, i - 1) for i in range(10000)) + b"A9 int f();\n",
    "spaces": b"]" + b" " * 600000,
    "lambda marks": b"] __device__" * 50000,
    "braces": b"{" * 100000 + b"}" * 100000,
    "hashes": b"#" * 600000,
    "backslashes": b"#define A \\\n" * 60000,
    "capitals": b"A" * 600000,
    "capital macros": b"CUTLASS_" * 80000,
    "globals": b"__global__ " * 50000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_linear_time(text):
    """Eight times the text takes about eight times as long; quadratic time would be sixty-four times as long."""
    start = time.process_time()
    blank(text[: len(text) // 8])
    small = time.process_time() - start
    start = time.process_time()
    blank(text)
    whole = time.process_time() - start
    assert whole < 5.0 + 24 * small  # quadratic time is tens of seconds here


@pytest.mark.parametrize(
    "code",
    [
        "__global__ void k(const float* UCU_RESTRICT x, U_GRID_CONSTANT T const t) { float* UCU_RESTRICT y = x; }",
        "UNIT_EXPORT __global__ void k(int* p) { p[0] = 1; }",
        "template <class S> __global__ void k(int* p) { f(p, typename S::Shape{}); g(typename S::template V<4>(1)); }",
        "__global__ void k(int* p) {\n#if defined(A) and not (defined(B) or C)\n  p[0] = 1;\n#endif\n}",
        "#define SWAP(T, a, b) { T t = a; a = b; b = t; }\n__global__ void k(int* p) { SWAP(unsigned int, p[0], p[1]); "
        "if (p[1]) SWAP(int, p[0], p[1]); }",
    ],
)
def test_words_that_the_grammar_does_not_know_where_they_stand(code):
    document = parse(code.encode())
    assert [kernel.damage for kernel in document.kernels] == [None]
    assert not document.broken
    assert len(document.blanked) == len(document.text)


def test_words_that_it_knows_stay():
    code = (
        "#define SIZE(T) sizeof(T)\ntemplate <class S> void f(typename S::Shape (*g)(), typename S::A* b);\n"
        "typename S::A h(int, float);\n__global__ void k(int* p) { typename S::A a(1); }\n"
    )
    assert [blank for blank in parse(code.encode()).blanks if blank.kind in ("typename", "type", "operator")] == []


CUT = [
    # in a parameter list, the branch that this file compiles
    ("__global__ void k(int* p,\n#ifndef FIXED\n  int width,\n#endif\n  int n) { p[0] = n; }", ["p", "width", "n"]),
    ("#define FIXED\n__global__ void k(int* p,\n#ifndef FIXED\n  int width,\n#endif\n  int n) { p[0] = n; }",
     ["p", "n"]),
    ("__global__ void k(int* p\n#if (USE_TEXTURE)\n  ,\n  int t\n#endif\n) { p[0] = 1; }", ["p"]),
    ("#define USE 2\n__global__ void k(int* p\n#if defined(USE) && USE > 1 && !(USE == 3)\n  , int t\n#else\n"
     "  , float t, float u\n#endif\n) { p[0] = 1; }", ["p", "t"]),
    # around specifiers
    ("int before;\n#ifdef __CUDACC__\n__host__ __device__\n#endif\ninline int f(int x) { return x; }\n"
     "__global__ void k(int* p) { p[0] = f(1); }", ["p"]),
    ("template <int N>\n#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900))\n"
     "__global__ void __cluster_dims__(N, 1, 1)\n  __launch_bounds__(N)\n#else\n__global__ void\n#endif\n"
     "k(int* p) { p[0] = 1; }", ["p"]),
    # around the head of a statement, and in an argument list
    ("__global__ void k(int* p) {\n#ifndef EMULATION\n  if (threadIdx.x < 32)\n#endif\n  {\n    p[0] = 1;\n  }\n"
     "  f(p[0],\n#if 0\n    2\n#else\n    3\n#endif\n  );\n}", ["p"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "parameters"), CUT)
def test_groups_that_cut_a_construct(code, parameters):
    document = parse(code.encode())
    (kernel,) = document.kernels
    assert kernel.damage is None
    assert not document.broken
    assert [parameter.name for parameter in kernel.parameters] == parameters
    assert len(document.blanked) == len(document.text)
    assert [at for at, byte in enumerate(document.blanked) if byte == 10] == [
        at for at, byte in enumerate(document.text) if byte == 10
    ]


def test_groups_that_cut_nothing_stay():
    code = (
        "#ifdef A\n__global__ void k(int* p) {\n#if B\n  p[0] = 1;\n#else\n  p[0] = 2;\n#endif\n}\n#endif\nf(\n#if C\n"
    )
    assert [blank for blank in parse(code.encode()).blanks if blank.kind == "conditional"] == []


@pytest.mark.parametrize("condition", ["9**9**9", "f(1)", "1 +", "(" * 300 + ")" * 300, "A", "'a' == 'b'", "x.y"])
def test_conditions_that_nobody_understands_are_false(condition):
    code = f"#define A A\n__global__ void k(int* p\n#if {condition}\n, int t\n#endif\n) {{}}"
    assert [parameter.name for parameter in parse(code.encode()).kernels[0].parameters] == ["p"]
