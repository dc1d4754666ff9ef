"""``pow`` of mixed arguments: the C++ library's <cmath> promotes them (``float`` if both are, else ``double``), and
nvcc takes this one of the library's templates in device code; NVRTC has no such thing. As there, an overload of CUDA's
own or of the user's that fits exactly goes first.
"""

POW = """template <class T> struct cuda_lsp_real {};
#define CUDA_LSP_REAL(T, R) template <> struct cuda_lsp_real<T> { using type = R; };
CUDA_LSP_REAL(float, float) CUDA_LSP_REAL(double, double) CUDA_LSP_REAL(bool, double) CUDA_LSP_REAL(char, double)
CUDA_LSP_REAL(signed char, double) CUDA_LSP_REAL(unsigned char, double) CUDA_LSP_REAL(wchar_t, double)
CUDA_LSP_REAL(char16_t, double) CUDA_LSP_REAL(char32_t, double) CUDA_LSP_REAL(short, double)
CUDA_LSP_REAL(unsigned short, double) CUDA_LSP_REAL(int, double) CUDA_LSP_REAL(unsigned, double)
CUDA_LSP_REAL(long, double) CUDA_LSP_REAL(unsigned long, double) CUDA_LSP_REAL(long long, double)
CUDA_LSP_REAL(unsigned long long, double)
template <class A, class B>
using cuda_lsp_promoted = decltype(typename cuda_lsp_real<A>::type() + typename cuda_lsp_real<B>::type());
template <class A, class B> __host__ __device__ __forceinline__ cuda_lsp_promoted<A, B> pow(A a, B b) {
  using R = cuda_lsp_promoted<A, B>; return pow((R)a, (R)b); }
"""
