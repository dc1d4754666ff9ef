"""Programs that the compiler makes the same code of are one; those that differ in code or launch are not."""

import pytest

from agent.execution.compiler import Options, build
from agent.execution.compiler.result import CompileFailure
from agent.search.duplicates import machine_key
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.find import find_workload
from agent.workload.program import Program

SOURCE = """\
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
int main() {
    const int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale<<<n / 128, 128>>>(x, y, n);
}
"""


def key(text: str) -> str:
    document = parse(text.encode(), "k.cu")
    kernel = document.kernels[0]
    workload = find_workload(document, kernel)
    program = Program(document, workload.plan, "p")
    built = build(program, Options(arch="sm_90"))
    assert not isinstance(built, CompileFailure), built
    return machine_key(built, bind(workload, workload.plan, document=document))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    int i =", "    // a comment, and a line more\n\n    const int i ="),
        ("x[i] * 2.0f", "2.0f * x[i]"),
        ("scale", "doubled"),
        ("if (i < n) y[i]", "if (!(i >= n)) y[i]"),
    ],
    ids=["layout", "order", "name", "negation"],
)
def test_the_same_code_has_one_key(old: str, new: str) -> None:
    assert key(SOURCE.replace(old, new)) == key(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("2.0f", "2.5f"), ("<<<n / 128, 128>>>", "<<<n / 64, 64>>>"), ("x[i] *", "x[n - 1 - i] *")],
    ids=["constant", "launch", "index"],
)
def test_other_code_or_another_launch_has_another_key(old: str, new: str) -> None:
    assert key(SOURCE.replace(old, new)) != key(SOURCE)
