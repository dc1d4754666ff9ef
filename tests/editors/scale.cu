// y = a·x over a matrix. Naïve on purpose: threadIdx.x walks down the rows, so neighbouring threads are a row apart.

__global__ void scale_add(const float* x, float* y, float a, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        y[row * cols + col] = a * x[row * cols + col];
    }
}

int main() {
    int rows = 4096, cols = 4096;
    float *x, *y;
    cudaMalloc(&x, rows * cols * sizeof(float));
    cudaMalloc(&y, rows * cols * sizeof(float));
    dim3 block(16, 16), grid((rows + 15) / 16, (cols + 15) / 16);
    scale_add<<<grid, block>>>(x, y, 2.0f, rows, cols);
    cudaDeviceSynchronize();
    cudaFree(x);
    cudaFree(y);
}
