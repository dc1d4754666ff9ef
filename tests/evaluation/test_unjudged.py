"""What a verdict says of the launches of a file that it did not judge."""

import pytest

from agent.evaluation.unjudged import unjudged
from agent.source.document import parse
from agent.workload.program import Program
from agent.workload.static import infer

KERNEL = """
__global__ void step(const float* x, float* y, int n, int mode) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mode == 0 ? x[i] * 2.0f : x[i] + 1.0f;
}
__global__ void grow(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1.0f;
}
"""
HOST = """
int main() {
    int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(y, h, n * sizeof(float), cudaMemcpyHostToDevice);
    LAUNCHES
    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
BETWEEN = "cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);"
GROW = "grow<<<16, 256>>>(y, n);"
FIRST, SECOND = "step<<<16, 256>>>(x, y, n, 0);", "step<<<16, 256>>>(x, y, n, 1);"


def said(launches: str, kernel: str = "step") -> tuple[str, ...]:
    document = parse((KERNEL + HOST.replace("LAUNCHES", launches)).encode(), "test.cu")
    workload = infer(document, document.kernel(kernel))
    program = Program(document, workload.plan, "it")
    return unjudged(program, program, workload)


def test_a_launch_with_other_scalars_is_named() -> None:
    (line,) = said(f"{FIRST} {BETWEEN}\n{SECOND}")
    assert "line 18 step(x, y, n, 0)" in line and "line 19 step(x, y, n, 1)" in line
    assert line.startswith("the other launches of step")


def test_one_launch_or_the_same_twice_leaves_nothing_out() -> None:
    assert said(FIRST) == ()
    assert said(f"{FIRST} {BETWEEN}\n{FIRST}") == ()


def test_one_launch_that_stands_in_no_loop_has_no_turns() -> None:
    assert said(GROW, "grow") == ()


def test_a_turn_of_a_loop_that_hands_a_buffer_on_is_named() -> None:
    document = parse((KERNEL + HOST.replace("LAUNCHES", f"for (int t = 0; t < 9; ++t) {GROW}")).encode(), "test.cu")
    alone = parse((KERNEL + HOST.replace("LAUNCHES", GROW)).encode(), "test.cu")
    workload = infer(alone, alone.kernel("grow"))
    program = Program(document, workload.plan, "it")
    (line,) = unjudged(program, program, workload)
    assert line.startswith("what one turn of the loop around line 18 leaves to the next")


REFILL = "cudaMemcpy(y, h, n * sizeof(float), cudaMemcpyHostToDevice);"
CLEAR = "cudaMemset(y, 0, n * sizeof(float));"


@pytest.mark.parametrize(
    "between",
    [f"{CLEAR} {GROW} {BETWEEN}\n{REFILL} {GROW}", f"{CLEAR} {GROW}\n{GROW}", f"{REFILL} {GROW}\n{CLEAR} {GROW}"],
)
def test_the_same_launch_on_other_contents_is_named(between: str) -> None:
    (line,) = said(between, "grow")
    assert line == "the launch at line 19, before which y changed: one launch of grow was judged"


def test_the_same_launch_on_the_same_contents_is_one() -> None:
    assert said(f"{CLEAR} {GROW}\n{CLEAR} {GROW}", "grow") == ()
    assert said(f"{FIRST}\n{FIRST}") == ()  # what it reads it leaves alone


def test_zeros_that_a_second_launch_does_not_find_are_not_taken_for_granted() -> None:
    def kind(launches: str) -> str:
        document = parse((KERNEL + HOST.replace("LAUNCHES", launches)).encode(), "test.cu")
        return infer(document, document.kernel("grow")).buffer("y").domain.kind

    assert kind(f"{CLEAR} {GROW}") == "zeros"
    assert kind(f"{CLEAR} {GROW} {CLEAR} {GROW}") == "zeros"
    assert kind(f"{CLEAR} {GROW} {REFILL} {GROW}") == "normal"
