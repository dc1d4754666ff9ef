"""Host code that a rewrite changes beside its launches is named; what the plan shows of it is not."""

import pytest

from agent.evaluation.host_changes import NAMED, host_changes
from agent.source.document import parse
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from agent.workload.static import infer

FILE = """
__global__ void square(const float* x, float* y, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] * by;
}
static void note(const char* what) { printf("%s", what); }
int main(int argc, char** argv) {
    int n = 8192;
    float by = 2.0f;
    float *h = (float*)malloc(n * sizeof(float)), *x, *y;
    for (int i = 0; i < n; ++i) h[i] = rand() / (float)RAND_MAX;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    square<<<(n + 255) / 256, 256>>>(x, y, n, by);
    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
LAUNCH = "    square<<<(n + 255) / 256, 256>>>(x, y, n, by);"
NEW, GONE = "host code that changed and is not a part of the plan (", "host code of the original that is gone ("


def said(old: str, new: str) -> tuple[str, ...]:
    assert FILE.count(old) == 1
    before, after = parse(FILE.encode(), "old.cu"), parse(FILE.replace(old, new).encode(), "new.cu")
    workload = infer(before, before.kernel("square"))
    sides = Program(before, workload.plan, "old"), Program(after, plan_of(after, workload, before), "new")
    return host_changes(*sides, workload)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LAUNCH, f"    int block = 128;\n{LAUNCH.replace('256', 'block').replace('255', 'block - 1')}"),
        (LAUNCH, f"{LAUNCH} // the only one\n    if (cudaGetLastError() != cudaSuccess) {{ return 1; }}"),
        (LAUNCH, f"    float* t;\n    cudaMalloc(&t, 64);\n{LAUNCH}\n    cudaFree(t);"),
        (LAUNCH, f"    cudaMemset(y, 0, n * sizeof(float));\n{LAUNCH}"),
        (LAUNCH, f"    if (n > 100) {{\n{LAUNCH}\n    }} else square<<<1, 128>>>(x, y, n, by);"),
        (LAUNCH, f'{LAUNCH}\n    note("done"); printf("%d", n); std::cout << "done";'),
        ("x[i] * x[i] * by;", "by * x[i] * x[i];"),
        ("    float by", "\n    /* a factor */  float   by"),
        ("int main(int", "static void unused(float* t) { t = nullptr; }\nint main(int"),
    ],
)
def test_what_the_plan_shows_is_not_named(old: str, new: str) -> None:
    assert said(old, new) == ()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (LAUNCH, f"{LAUNCH}\n    finish(y, n);", "line 17 `finish(y, n)`"),
        (LAUNCH, f"    cudaStreamCreate(&s);\n{LAUNCH}", "line 16 `cudaStreamCreate(&s)`"),
        (LAUNCH, f"    h[0] = 1.0f;\n{LAUNCH}", "line 16 `h[0] = 1.0f`"),
        ("int n = 8192;", "int n = 4096;", "line 8 `int n = 4096`"),
        (LAUNCH, f"    if (argc > 3) {{\n{LAUNCH}\n    }}\n{LAUNCH}", "line 16 `if (argc > 3)`"),
        (LAUNCH, f"    if (n % 4) {{ return 1; }}\n{LAUNCH}", "line 16 `if (n % 4)`"),
        (LAUNCH, f"    for (int t = 0; t < 9; ++t)\n{LAUNCH}", "line 16 `for (int t = 0; t < 9; ++t)`"),
        (
            LAUNCH,
            f"    cudaMemset(x, 0, n * sizeof(float));\n{LAUNCH}",
            "line 16 `cudaMemset(x, 0, n * sizeof(float))`",
        ),
    ],
)
def test_new_host_code_is_named(old: str, new: str, named: str) -> None:
    assert said(old, new) == (f"{NEW}{named})",)


def test_a_shorter_copy_is_named_beside_the_one_that_is_gone() -> None:
    new, gone = said("cudaMemcpy(x, h, n * sizeof(float),", "cudaMemcpy(x, h, n,")
    assert new == f"{NEW}line 14 `cudaMemcpy(x, h, n, cudaMemcpyHostToDevice)`)"
    assert gone == f"{GONE}line 14 `cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice)`)"


def test_what_ordered_the_original_and_is_gone_is_named() -> None:
    assert said("    cudaDeviceSynchronize();\n", "") == (f"{GONE}line 15 `cudaDeviceSynchronize()`)",)
    assert said("    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);\n", "")[0].startswith(
        f"{GONE}line 17"
    )


def test_of_many_statements_some_are_named() -> None:
    (line,) = said(LAUNCH, "\n".join([*(f"    step{one}(h);" for one in range(NAMED + 2)), LAUNCH]))
    assert line.count("`") == 2 * NAMED and line.endswith(", 2 more)")
