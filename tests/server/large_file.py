"""A file of 10,000 lines and more, made of kernels and host code."""

LINES = 10_000
UNIT = """
__device__ float scale{n}(float x, float a) {{
    return x * a + {n}.0f;
}}

// kernel number {n}: rows of a matrix
__global__ void __launch_bounds__(256) kernel{n}(const float* x, float* y, int rows, int cols) {{
    __shared__ float s[256];
    int row = blockIdx.x;
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) {{
        sum += scale{n}(x[row * cols + i], 2.0f);
    }}
    s[t] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
        if (t < k) {{
            s[t] += s[t + k];
        }}
        __syncthreads();
    }}
    #pragma unroll 4
    for (int i = t; i < cols; i += blockDim.x) {{
        y[row * cols + i] = x[row * cols + i] / s[0];
    }}
}}

void run{n}(const float* x, float* y, int rows, int cols) {{
    dim3 grid(rows), block(256);
    kernel{n}<<<grid, block>>>(x, y, rows, cols);
    cudaDeviceSynchronize();
}}
"""
HELPERS = """
__host__ __device__ inline int round_up{n}(int value, int unit) {{
    int rest = value % unit;
    if (rest == 0) {{
        return value;
    }}
    return value + unit - rest;
}}

struct Shape{n} {{
    int rows;
    int cols;
    int pitch;
}};

static bool same{n}(const Shape{n}& a, const Shape{n}& b) {{
    return a.rows == b.rows && a.cols == b.cols && a.pitch == b.pitch;
}}
"""


def generated(host: int) -> str:
    """A file with kernels, each with ``host`` stretches of other code before it."""
    parts, count, number = ["#include <cuda_runtime.h>\n"], 1, 0
    while count < LINES:
        rest = "".join(HELPERS.format(n=f"{number}_{other}") for other in range(host))
        parts.append(rest + UNIT.format(n=number))
        count += parts[-1].count("\n")
        number += 1
    return "".join(parts)
