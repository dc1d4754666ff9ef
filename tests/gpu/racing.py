"""Small programs that are timed against one another, straight on the device."""

from attrs import evolve

from agent.execution.compiler import Build, Options, build
from agent.execution.gpu import Gpu
from agent.execution.timing import Entry, Race
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.directive import read_directive
from agent.workload.generators import families
from agent.workload.program import Program
from tests.fixtures.running import opened

SEED = 0x5EED_0123_4567_89AB

SPIN = """
// cuda-lsp: workload
//   size     n = 256
//   const    ticks = TICKS
//   buffer   y: f32[n] out
//   launch   spin<<<1, 256>>>(y, ticks, n)
__global__ void spin(float* y, long long ticks, int n) {
    long long start = clock64();
    while (clock64() - start < ticks) {}
    if (threadIdx.x < n) y[threadIdx.x] = threadIdx.x;
}
"""

SUM = """
__device__ unsigned long long calls;  // thousands of launches of a million threads: 32 bits would come round
// cuda-lsp: workload
//   size     n = 1000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   twice<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = BODY;
}
"""

ATOMIC = """
// cuda-lsp: workload
//   size     n = 1000000
//   buffer   x: f32[n] in normal
//   buffer   y: f32[16] inout zeros
//   launch   bins<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void bins(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(y + i % 16, x[i]);
}
"""


TABLE = """
__constant__ float weights[64];
// cuda-lsp: workload
//   size     n = 1000000
//   buffer   x: f32[n] in normal
//   symbol   weights: f32[64] in normal
//   buffer   y: f32[n] out
//   launch   weigh<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void weigh(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = weights[i % 64] * x[i];
}
"""


def entry(text: str, gpu: Gpu) -> tuple[Entry, str]:
    """The last kernel of ``text`` on the workload of its directive, and the family of its inputs."""
    document = parse(text.encode(), "test.cu")
    workload = read_directive(document, document.kernels[-1])
    assert workload is not None
    program = Program(document, workload.plan, "test")
    built = build(program, Options(arch=gpu.arch))
    assert isinstance(built, Build), built
    return Entry(built, bind(workload, workload.plan, None, document)), families(workload)[0]


def fixture(file: str, kernel: str, gpu: Gpu) -> tuple[Entry, str]:
    """A kernel of the fixtures at its declared workload."""
    found = opened(file, kernel)
    built = build(found.program, Options(arch=gpu.arch))
    assert isinstance(built, Build), built
    return Entry(built, found.at()), families(found.workload)[0]


def race(one: Entry, other: Entry, family: str, **changes: object) -> Race:
    return evolve(Race((one, other), family, SEED), **changes)
