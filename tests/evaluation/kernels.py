"""Small programs for the judge's tests: an original with its workload in a directive, and rewrites of its kernel."""

from attrs import evolve

from agent.evaluation.setting import Setting
from agent.execution.compiler.result import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.source.document import parse
from agent.workload.directive import read_directive
from agent.workload.plan import Plan
from agent.workload.program import Program
from agent.workload.workload import Workload


def original(text: str) -> tuple[Program, Workload]:
    """The last kernel of ``text`` (its directive stands above it) with its workload."""
    document = parse(text.encode(), "test.cu")
    workload = read_directive(document, document.kernels[-1])
    assert workload is not None, "the test's kernel has no directive"
    return Program(document, workload.plan, "original"), workload


def rewrite(text: str, plan: Plan, label: str = "candidate") -> Program:
    """A candidate: other text, the plan as given."""
    return Program(parse(text.encode(), "test.cu"), plan, label)


def setting(**more: object) -> Setting:
    plain = Setting(device=Emulator(), target=find_target("H200"), options=Options(), seconds=60.0)
    return evolve(plain, **more) if more else plain


SOFTMAX = """
// cuda-lsp: workload
//   size     rows = 512, cols = 4096
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   softmax<<<rows, 128>>>(x, y, rows, cols)
__global__ void softmax(const float* x, float* y, int rows, int cols) {
    __shared__ float s[128];
    int row = blockIdx.x, t = threadIdx.x;
    const float* in = x + (size_t)row * cols;
    float* out = y + (size_t)row * cols;
    float peak = -3.402823e38f;
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
