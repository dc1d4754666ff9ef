"""``pow`` as nvcc means it: the C++ library promotes its arguments (``float`` if both are, else ``double``), and nvcc
takes that template of the library's in device code, whatever a file includes. NVRTC has overloads of its own in its
place, which nothing hides: ``float pow(float, int)`` and ``double pow(double, int)``, with other results.

So the slice calls by another name, under which there are nvcc's overloads and those of the user's.
"""

import re

OURS = "cuda_lsp_"
"""What the names here begin with that the user's do not have."""
NAME = f"{OURS}pow"
# no word here that the float64 oracle makes another of
POW = """using cuda_lsp_float = decltype(0.0f);
template <class T> struct cuda_lsp_real {};
#define CUDA_LSP_REAL(T, R) template <> struct cuda_lsp_real<T> { using type = R; };
CUDA_LSP_REAL(cuda_lsp_float, cuda_lsp_float) CUDA_LSP_REAL(double, double) CUDA_LSP_REAL(bool, double)
CUDA_LSP_REAL(char, double)
CUDA_LSP_REAL(signed char, double) CUDA_LSP_REAL(unsigned char, double) CUDA_LSP_REAL(wchar_t, double)
CUDA_LSP_REAL(char16_t, double) CUDA_LSP_REAL(char32_t, double) CUDA_LSP_REAL(short, double)
CUDA_LSP_REAL(unsigned short, double) CUDA_LSP_REAL(int, double) CUDA_LSP_REAL(unsigned, double)
CUDA_LSP_REAL(long, double) CUDA_LSP_REAL(unsigned long, double) CUDA_LSP_REAL(long long, double)
CUDA_LSP_REAL(unsigned long long, double)
template <class A, class B>
using cuda_lsp_promoted = decltype(typename cuda_lsp_real<A>::type() + typename cuda_lsp_real<B>::type());
__host__ __device__ __forceinline__ cuda_lsp_float cuda_lsp_pow(cuda_lsp_float a, cuda_lsp_float b) {
  return pow(a, b); }
__host__ __device__ __forceinline__ double cuda_lsp_pow(double a, double b) { return pow(a, b); }
template <class A, class B> __host__ __device__ __forceinline__ cuda_lsp_promoted<A, B> cuda_lsp_pow(A a, B b) {
  using R = cuda_lsp_promoted<A, B>; return pow((R)a, (R)b); }
"""

_HIDDEN = rb'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*[\s\S]*?\*/'
_USING = rb"\busing\s+(?:::\s*)?std\s*::\s*pow\s*;"
_CALL = rb"(?P<before>(?:\bcuda\s*::\s*)?\bstd\s*::\s*)?(?<!\w)pow(?=\s*[(<])"
_FOUND = re.compile(rb"(?P<hidden>" + _HIDDEN + rb")|(?P<using>" + _USING + rb")|(?P<call>" + _CALL + rb")")
_VARIABLE = re.compile(_HIDDEN + rb"|(?P<name>(?:\b(?!return\b)\w+\s+|[*&>]\s*)pow\b)(?!\s*[(<])")


def with_promotion(code: bytes) -> bytes:
    """Code of the user's with ``pow`` by its other name, declarations and calls alike, on the same lines. Where it is
    a variable (a function object, say) it stays as it is."""
    if b"pow" not in code or any(found["name"] for found in _VARIABLE.finditer(code)):
        return code
    return _FOUND.sub(_renamed, code)


def _renamed(found: "re.Match[bytes]") -> bytes:
    if found["using"]:
        return f"using ::{NAME};".encode() + b"\n" * found["using"].count(b"\n")
    if found["hidden"] or (found["before"] or b"").startswith(b"cuda"):
        return found[0]
    return NAME.encode() + b"\n" * found[0].count(b"\n")
