"""The product that the ideas of this family are shown on."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     m = 1024, n = 1024, k = 1024
//   buffer   a: f32[m * k] in normal
//   buffer   b: f32[k * n] in normal
//   buffer   c: f32[m * n] out
//   launch   multiply<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        sum += a[row * k + i] * b[i * n + col];
    }
    c[row * n + col] = sum;
}
"""
