"""``verify`` of rewrites whose host code changes: what it launches is judged, and what no plan shows is said."""

from pathlib import Path

import pytest

from tests.cli.running import run, run_json

KERNELS = """
__global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
"""
WIDE = """
__global__ void wide(const float4* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float4 v = x[i]; y[i] = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w); }
}
"""
MAIN = """
int main() {
    int n = 8192;
    float *h = (float*)malloc(n * sizeof(float)), *x, *y;
    for (int i = 0; i < n; ++i) h[i] = rand() / (float)RAND_MAX;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    LAUNCH
    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
PLAIN = "square<<<(n + 255) / 256, 256>>>(x, y, n);"
BRANCHED = (
    "if (n % 4 == 0) wide<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);\n"
    "    else square<<<(n + 255) / 256, 256>>>(x, y, n);"
)
ORIGINAL = KERNELS + MAIN.replace("LAUNCH", PLAIN)


def files(tmp_path: Path, rewrite: str, original: str = ORIGINAL) -> tuple[str, str]:
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(original)
    new.write_text(rewrite)
    return str(old), str(new)


@pytest.mark.parametrize(("other", "state"), [("", "right"), (" + 0.5f", "wrong")])
def test_both_sides_of_a_host_branch_are_judged(other: str, state: str, tmp_path: Path) -> None:
    """The size that the program sets takes one side; the other one is judged at the sizes that take it."""
    rewrite = KERNELS.replace("x[i] * x[i];", f"x[i] * x[i]{other};") + WIDE + MAIN.replace("LAUNCH", BRANCHED)
    code, answer = run_json("verify", *files(tmp_path, rewrite))
    assert (code, answer["verdict"]["correctness"]["state"]) == (int(state == "wrong"), state)


def test_a_branch_that_is_not_followed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    switched = BRANCHED.replace("if (n % 4 == 0)", "switch (n % 4) { case 0:").replace("else", "break; default:") + " }"
    done = run("verify", *files(tmp_path, KERNELS + WIDE + MAIN.replace("LAUNCH", switched)))
    assert done.returncode == 3 and "hangs on `n` by a branch" in done.stderr and "const n" in done.stderr
