"""Running the real command, as a user would."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-c", "from cuda_lsp.terminal.main import main; main()")

ROW_SUMS = """\
#include <cstdio>

// One block per row.
__global__ void row_sums(const float* x, float* y, int cols) {
    __shared__ float s[128];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) sum += x[blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}

int main() {
    const int rows = 96, cols = 384;
    float *x, *y;
    cudaMalloc(&x, rows * cols * sizeof(float));
    cudaMalloc(&y, rows * sizeof(float));
    row_sums<<<rows, 128>>>(x, y, cols);
    cudaDeviceSynchronize();
    return 0;
}
"""
"""Small enough for a search of seconds; the tree in shared memory is what there is to improve."""

TRANSPOSED = """\
__global__ void scale(const float* x, float* y, int height, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && col < width) y[row * width + col] = 2.0f * x[row * width + col];
}

int main() {
    const int height = 4096, width = 6144;
    float *x, *y;
    cudaMalloc(&x, height * width * sizeof(float));
    cudaMalloc(&y, height * width * sizeof(float));
    dim3 block(32, 8);
    dim3 grid((height + 31) / 32, (width + 7) / 8);
    scale<<<grid, block>>>(x, y, height, width);
    cudaDeviceSynchronize();
    return 0;
}
"""
"""A warp walks down a column: the exchange of x and y gains much, and needs the launch changed."""


def run(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command's output and exit code; nothing that it prints is ever a traceback."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=250
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def run_json(*arguments: str, **options: Any) -> tuple[int, dict[str, Any]]:
    done = run(*arguments, "--json", **options)
    answer = json.loads(done.stdout)
    assert answer["exit"] == done.returncode
    return done.returncode, answer
