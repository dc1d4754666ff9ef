"""Twelve kernels as people write them, for tests that only read their PTX."""

HEADERS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"

SOURCE = (
    HEADERS
    + r"""
#ifdef UNOPTIMISED  // NVRTC 13.5 cannot compile this intrinsic with -G
#define __dp4a(a, b, c) (c)
#endif
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  int row = blockIdx.x;
  __shared__ float s[32];
  float m = -INFINITY_F;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, x[row * cols + c]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = m;
  __syncthreads();
  if (threadIdx.x < 32) {
    m = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : -INFINITY_F;
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
    s[0] = m;
  }
  __syncthreads();
  m = s[0];
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += __expf(x[row * cols + c] - m);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[row * cols + c] = expf(x[row * cols + c] - m) / sum;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][17], bs[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float acc = 0.f;
  for (int t = 0; t < n; t += 16) {
    as[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0.f;
    bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < n ? b[(t + threadIdx.y) * n + col] : 0.f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) acc += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = acc;
}

extern "C" __global__ void __launch_bounds__(256, 2) reduce(const float4* x, float* out, long long n) {
  extern __shared__ float dynamic[];
  float sum = 0.f;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  dynamic[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) dynamic[threadIdx.x] += dynamic[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, dynamic[0]);
}

extern "C" __global__ void half_axpy(const half2* x, half2* y, half a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half2 r = __hfma2(x[i], __half2half2(a), y[i]);
  r = __hmax2(r, __float2half2_rn(0.f));
  y[i] = __hadd2(r, h2exp(__hneg2(r)));
}

extern "C" __global__ void bf16_gelu(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = __bfloat162float(x[i]);
  y[i] = __float2bfloat16(0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
}

extern "C" __global__ void n_body(const double4* p, double3* f, int n, double eps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double4 me = p[i];
  double ax = 0, ay = 0, az = 0;
  for (int j = 0; j < n; ++j) {
    double dx = p[j].x - me.x, dy = p[j].y - me.y, dz = p[j].z - me.z;
    double r2 = dx * dx + dy * dy + dz * dz + eps;
    double inv = rsqrt(r2);
    double w = p[j].w * inv * inv * inv;
    ax += dx * w; ay += dy * w; az += dz * w;
  }
  f[i] = make_double3(ax, ay, az);
}

__device__ float normal_cdf(float d) { return 0.5f * erfcf(-0.70710678f * d); }
extern "C" __global__ void black_scholes(const float* s, const float* x, const float* t, float* call, float r, float v,
                                         int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float root = sqrtf(t[i]);
  float d1 = (logf(s[i] / x[i]) + (r + 0.5f * v * v) * t[i]) / (v * root);
  call[i] = s[i] * normal_cdf(d1) - x[i] * expf(-r * t[i]) * normal_cdf(d1 - v * root);
}

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) if (local[i]) atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void scan(const int* x, int* y, int n) {
  __shared__ int warp_sums[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  int v = i < n ? x[i] : 0;
  for (int o = 1; o < 32; o <<= 1) {
    int other = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += other;
  }
  if (lane == 31) warp_sums[threadIdx.x >> 5] = v;
  __syncthreads();
  for (int w = 0; w < (threadIdx.x >> 5); ++w) v += warp_sums[w];
  if (i < n) y[i] = v;
}

__constant__ float taps[25];
extern "C" __global__ void blur(const uchar4* in, uchar4* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float r = 0, g = 0, b = 0;
  for (int dy = -2; dy <= 2; ++dy)
    for (int dx = -2; dx <= 2; ++dx) {
      int sx = min(max(x + dx, 0), w - 1), sy = min(max(y + dy, 0), h - 1);
      uchar4 p = in[sy * w + sx];
      float k = taps[(dy + 2) * 5 + dx + 2];
      r += k * p.x; g += k * p.y; b += k * p.z;
    }
  out[y * w + x] = make_uchar4(__saturatef(r / 255.f) * 255.f, g, b, 255);
}

extern "C" __global__ void hash_bits(const unsigned long long* keys, unsigned* out, const signed char* q, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long k = keys[i];
  k ^= k >> 33; k *= 0xff51afd7ed558ccdULL; k ^= k >> 33;
  unsigned h = __popcll(k) + __clz((int)k) + __ffs((int)(k >> 32)) + __brev((unsigned)k);
  h = __funnelshift_l(h, (unsigned)k, h & 31) + __byte_perm(h, (unsigned)k, 0x5140);
  h += __dp4a((int)h, *(const int*)(q + 4 * i), 7) + __umulhi(h, (unsigned)k);
  h += __mul24((int)h, 5) + __sad((int)h, 3, 1u);
  out[i] = (h % 1000003u) + (unsigned)((long long)k / 7919LL) + (h << (k & 7)) + __vadd2(h, (unsigned)k);
}

extern "C" __global__ void spmv_lookup(const int* ptr, const int* col, const float* val, const float* x, float* y,
                                       int rows, int mode) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0.f;
  for (int k = ptr[r]; k < ptr[r + 1]; ++k) sum = fmaf(val[k], __ldg(&x[col[k]]), sum);
  switch (mode) {
    case 0: sum = sinf(sum); break;
    case 1: sum = __cosf(sum) + __log2f(fabsf(sum)); break;
    case 2: sum = powf(sum, 1.7f); break;
    case 3: sum = truncf(sum) + rintf(sum) + floorf(sum) + copysignf(1.f, sum); break;
    case 4: sum = atan2f(sum, 2.f) + cbrtf(sum); break;
    case 5: sum = __fdividef(sum, 3.f) + __frsqrt_rn(sum) + __fadd_rz(sum, 1.f) + __fmaf_rd(sum, sum, 1.f); break;
    default: sum = (float)(int)sum + (float)(unsigned long long)sum + fmodf(sum, 3.f);
  }
  if (__any_sync(__activemask(), sum > 1e30f)) sum = 0.f;
  y[r] = sum;
}
""".replace("INFINITY_F", "__int_as_float(0x7f800000)")
)

NAMES = (
    "softmax", "matmul", "reduce", "half_axpy", "bf16_gelu", "n_body",
    "black_scholes", "histogram", "scan", "blur", "hash_bits", "spmv_lookup",
)  # fmt: skip
