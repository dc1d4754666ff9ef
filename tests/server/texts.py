"""Small CUDA files for tests, with a workload that can be read off them."""

SCALE = """#include <cuda_runtime.h>

#define FACTOR 2.0f

__device__ float twice(float v) { return FACTOR * v; }

// Scales an array.
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = twice(x[i]);
}

__global__ void shift(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}

int main() {
    const int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale<<<(n + 255) / 256, 256>>>(x, y, n);
    shift<<<(n + 255) / 256, 256>>>(x, y, n);
    return 0;
}
"""
