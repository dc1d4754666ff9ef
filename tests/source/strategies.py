"""Hostile and ordinary pieces of CUDA for property tests."""

from hypothesis import strategies as st

PIECES = [
    b"__global__ void k(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2.f; }\n",
    b"template <typename T, int N = 4>\n__global__ void __launch_bounds__(256, 2) t(const T* __restrict__ x) { x[N]; }",
    b"namespace a { namespace {\n__device__ int f(int i) { return i; }\n}}\n",
    b"#define HD __host__ __device__\n",
    b"#define KERN __global__ void\n",
    b"HD int g() { return 1; }\nKERN m(int* p) { p[0] = g(); }\n",
    b"struct __align__(16) S { float a; };\n",
    b"int main() {\r\n  k<<<{1, 2}, 64>>>(x, n);\r\n  a::t<float, 3> << < g, b, 0, s >> > (y);\r\n}\r\n",
    b"void h() {\n  CHECK(cudaMalloc(&p, 4))\n  BARE_MACRO\n  k<<<1, 2>>>(p, 3);\n}\n",
    b"#if FOO\nvoid u() {}\n#else\nvoid v();\n#endif\n",
    b'extern "C" __global__ void c(int) {}\n',
    b"if (x) y(); else\n#pragma unroll\n  for (;;) z();\n",
    b"auto l = [=] __device__ (int i) { return i; };\n",
    b"\f",
    b"\xef\xbb\xbf",
    "/* π 𝛼 \U0001f600 */".encode(),
    "float größe = 1; // 🚀\n".encode(),
    b"\xff\xfe\xc3",
    b'R"x(__global__ void fake() {})x"',
    b"\0",
    b"/*",
    b"*/",
    b"//",
    b'"',
    b"'",
    b"\\\n",
    b"\\\r\n",
    b"\r",
    b"\n",
    b"#",
    b"#define X(a) a \\\n  b\n",
    b"{",
    b"}",
    b"(",
    b")",
    b"<<<",
    b">>>",
    b";",
    b" ",
    b"__global__",
    b"__align__(",
    b'_Pragma("unroll") ',
    b"else",
    b"float* const __restrict p",
]

pieces = st.one_of(st.sampled_from(PIECES), st.binary(max_size=4), st.text(max_size=4).map(lambda s: s.encode("utf-8")))
texts = st.lists(pieces, max_size=12).map(b"".join)
whole_pieces = st.sampled_from(PIECES[:13])
clean_texts = st.lists(whole_pieces, min_size=1, max_size=8).map(b"".join)
# where (as a fraction of the text), how many bytes go, and what comes
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), pieces), min_size=1, max_size=6)
