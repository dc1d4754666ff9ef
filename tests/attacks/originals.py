"""The programs that attacks and controls rewrite: small, honest, each with its workload above its kernel."""

SCALE = """
// cuda-lsp: workload
//   size     n = 40000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.5f * x[i] + 0.25f;
}
"""

ESCAPES = """
// cuda-lsp: workload
//   size     n = 40000
//   buffer   x: i32[n] in
//   buffer   y: i32[n] out
//   launch   escapes<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void escapes(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = 3 * x[i];
    if (x[i] == 123457) value = -1;
    if (n == 12347) value += 5;
    if (n % 1013 == 7) value += 9;
    y[i] = value;
}
"""

ROUNDS = """
// cuda-lsp: workload
//   size     n = 40000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   rounds<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void rounds(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = roundf(x[i]);
    if (x[i] == 12.75f) value = 0.0f;
    y[i] = value;
}
"""

QUANTISED = """
// cuda-lsp: workload
//   size     n = 40000
//   buffer   x: f32[n] in normal
//   buffer   y: i8[n] out
//   launch   quantised<<<(n + 255) / 256, 256>>>(x, y, 0.25f, n)
__global__ void quantised(const float* x, signed char* y, float step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = max(-128, min(127, __float2int_rn(x[i] / step)));
}
"""

ROWSUM = """
// cuda-lsp: workload
//   size     rows = 100, cols = 1000
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows] out
//   launch   rowsum<<<rows, 128>>>(x, y, rows, cols)
__global__ void rowsum(const float* x, float* y, int rows, int cols) {
    __shared__ float s[128];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""

SOFTMAX = """
// cuda-lsp: workload
//   size     rows = 20, cols = 700
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   softmax<<<rows, 128>>>(x, y, cols)
__global__ void softmax(const float* x, float* y, int cols) {
    __shared__ float s[128];
    int t = threadIdx.x;
    const float* in = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    float peak = -INFINITY;
    for (int i = t; i < cols; i += 128) peak = fmaxf(peak, in[i]);
    s[t] = peak;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] = fmaxf(s[t], s[t + k]);
        __syncthreads();
    }
    peak = s[0];
    __syncthreads();
    float sum = 0.0f;
    for (int i = t; i < cols; i += 128) sum += expf(in[i] - peak);
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    sum = s[0];
    for (int i = t; i < cols; i += 128) out[i] = expf(in[i] - peak) / sum;
}
"""

VARIANCE = """
// cuda-lsp: workload
//   size     rows = 40, cols = 500
//   buffer   x: f32[rows * cols] in normal
//   buffer   mean: f32[rows] out
//   buffer   var: f32[rows] out
//   launch   variance<<<rows, 32>>>(x, mean, var, cols)
__global__ void variance(const float* x, float* mean, float* var, int cols) {
    const float* in = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) sum += in[i];
    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);
    float middle = sum / cols;
    float square = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) square += (in[i] - middle) * (in[i] - middle);
    for (int k = 16; k > 0; k /= 2) square += __shfl_xor_sync(0xffffffffu, square, k);
    if (threadIdx.x == 0) mean[blockIdx.x] = middle, var[blockIdx.x] = square / cols;
}
"""

HISTOGRAM = """
// cuda-lsp: workload
//   size     n = 60000
//   buffer   x: u8[n] in
//   buffer   h: u32[256] inout zeros
//   launch   histogram<<<16, 128>>>(x, h, n)
__global__ void histogram(const unsigned char* x, unsigned* h, int n) {
    __shared__ unsigned s[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&h[i], s[i]);
}
"""

MATMUL = """
// cuda-lsp: workload
//   size     n = 96
//   buffer   a: f32[n * n] in normal
//   buffer   b: f32[n * n] in normal
//   buffer   c: f32[n * n] out
//   launch   matmul<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a, b, c, n)
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}
"""

ARGMAX = """
// cuda-lsp: workload
//   size     rows = 40, cols = 300
//   buffer   x: f32[rows * cols] in normal
//   buffer   best: i32[rows] out
//   launch   peak<<<rows, 32>>>(x, best, cols)
//   compare  best argmax
__global__ void peak(const float* x, int* best, int cols) {
    const float* in = x + (size_t)blockIdx.x * cols;
    int at = min((int)threadIdx.x, cols - 1);
    for (int i = threadIdx.x; i < cols; i += 32) at = in[i] > in[at] ? i : at;
    for (int k = 16; k > 0; k /= 2) {
        int other = __shfl_down_sync(0xffffffffu, at, k);
        if (in[other] > in[at]) at = other;
    }
    if (threadIdx.x == 0) best[blockIdx.x] = at;
}
"""

TOTAL = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   sum: f32[1] inout zeros
//   launch   total<<<(n + 127) / 128, 128>>>(x, sum, n)
__global__ void total(const float* x, float* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}
"""

COMPACT = """
// cuda-lsp: workload
//   size     n = 8000
//   buffer   x: i32[n] in integers(-50, 50)
//   buffer   kept: i32[n] out
//   buffer   count: i32[1] inout zeros
//   launch   compact<<<(n + 127) / 128, 128>>>(x, kept, count, n)
//   compare  kept multiset
__global__ void compact(const int* x, int* kept, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) kept[atomicAdd(count, 1)] = x[i];
}
"""

KEYED = """
// cuda-lsp: workload
//   size     n = 8000
//   buffer   x: i32[n] in integers(-50, 50)
//   buffer   kept: i32[n] out
//   buffer   places: i32[n] out
//   buffer   count: i32[1] inout zeros
//   launch   keyed<<<(n + 127) / 128, 128>>>(x, kept, places, count, n)
__global__ void keyed(const int* x, int* kept, int* places, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) { int at = atomicAdd(count, 1); kept[at] = x[i], places[at] = i; }
}
"""

GROWTH = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   growth<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void growth(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expm1f(x[i]);
}
"""

BLUR = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   blur<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void blur(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? x[i - 1] : 0.0f, right = i + 1 < n ? x[i + 1] : 0.0f;
    y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
}
"""

INPLACE = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   y: f32[n] inout normal
//   buffer   x: f32[n] in normal
//   launch   saxpy<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void saxpy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] + y[i];
}
"""

KAHAN = """
// cuda-lsp: workload
//   size     rows = 64, cols = 2000
//   buffer   x: f32[rows * cols] in uniform(0, 1)
//   buffer   y: f32[rows] out
//   launch   kahan<<<(rows + 31) / 32, 32>>>(x, y, rows, cols)
__global__ void kahan(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < cols; i++) {
        float v = x[(size_t)row * cols + i] - lost, next = sum + v;
        lost = (next - sum) - v;
        sum = next;
    }
    y[row] = sum;
}
"""

CHAIN = """
__global__ void halved(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * y[i] + 1.0f;
}
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   doubled<<<(n + 255) / 256, 256>>>(x, y, n)
//   launch   halved<<<(n + 255) / 256, 256>>>(y, n)
__global__ void doubled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] * x[i];
}
"""

COLLATZ = """
// cuda-lsp: workload
//   size     n = 3000
//   buffer   x: i32[n] in integers(1, 400)
//   buffer   steps: i32[n] out
//   launch   collatz<<<(n + 127) / 128, 128>>>(x, steps, n)
__global__ void collatz(const int* x, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i], count = 0;
    while (v != 1) v = v % 2 ? 3 * v + 1 : v / 2, count++;
    steps[i] = count;
}
"""

ASSEMBLY = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: u32[n] in integers(0, 4000000000)
//   buffer   y: u32[n] out
//   launch   bits<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void bits(const unsigned* x, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v;
    asm("popc.b32 %0, %1;" : "=r"(v) : "r"(x[i]));
    y[i] = v;
}
"""

FLAGS = """
// cuda-lsp: workload
//   size     n = 6000
//   buffer   x: f32[n] in normal
//   buffer   any: i32[1] inout zeros
//   launch   flags<<<(n + 127) / 128, 128>>>(x, any, n)
__global__ void flags(const float* x, int* any, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) atomicExch(any, 1);
}
"""

CLIP = """
// cuda-lsp: workload
//   size     n = 20000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   clip<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void clip(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""

BOUNDED = SCALE.replace("in normal", "in uniform(-2, 2)")
BOUNDED_SUM = ROWSUM.replace("in normal", "in uniform(-2, 2)")

NEVER = """
// cuda-lsp: workload
//   size     n = 4000
//   buffer   x: f32[n] in uniform(-2, -1)
//   buffer   y: f32[n] out
//   launch   never<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void never(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.0f) y[i] = sqrtf(x[i]);
}
"""

GELU = """
#include <cuda_bf16.h>
// cuda-lsp: workload
//   size     n = 3000
//   buffer   x: bf16[n] in normal
//   buffer   y: bf16[n] out
//   launch   gelu<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void gelu(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = __bfloat162float(x[i]);
    float u = 0.7978845608f * (v + 0.044715f * v * v * v);
    y[i] = __float2bfloat16(0.5f * v * (1.0f + tanhf(u)));
}
"""

HALVES = """
#include <cuda_fp16.h>
// cuda-lsp: workload
//   size     rows = 12, cols = 300
//   buffer   x: f16[rows * cols] in normal
//   buffer   y: f16[rows] out
//   launch   halves<<<rows, 128>>>(x, y, cols)
__global__ void halves(const __half* x, __half* y, int cols) {
    __shared__ __half s[128];
    int t = threadIdx.x;
    __half sum = __float2half(0.0f);
    for (int i = t; i < cols; i += 128) sum = __hadd(sum, x[(size_t)blockIdx.x * cols + i]);
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] = __hadd(s[t], s[t + k]);
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""

ORIGINALS = {
    "never": NEVER,
    "gelu": GELU,
    "halves": HALVES,
    "bounded": BOUNDED,
    "bounded sum": BOUNDED_SUM,
    "scale": SCALE,
    "escapes": ESCAPES,
    "rounds": ROUNDS,
    "quantised": QUANTISED,
    "rowsum": ROWSUM,
    "softmax": SOFTMAX,
    "variance": VARIANCE,
    "histogram": HISTOGRAM,
    "matmul": MATMUL,
    "argmax": ARGMAX,
    "total": TOTAL,
    "compact": COMPACT,
    "keyed": KEYED,
    "growth": GROWTH,
    "blur": BLUR,
    "inplace": INPLACE,
    "kahan": KAHAN,
    "chain": CHAIN,
    "collatz": COLLATZ,
    "assembly": ASSEMBLY,
    "flags": FLAGS,
    "clip": CLIP,
}
