"""L6: errors of the runtime that nobody looks at."""

from collections.abc import Iterator

from agent.analysis.host import HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule

KERNEL = "__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(const float* h, int n) {
    float* x;
    cudaMalloc(&x, n * sizeof(float));  // L6
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<1, 32>>>(x);
}
"""
)
CHECKED = (
    KERNEL
    + """\
#define CHECK(call) if ((call) != cudaSuccess) throw 1
int run(const float* h, int n) {
    float* x;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    cudaError_t status = cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<1, 32>>>(x);
    cudaDeviceSynchronize();
    return status;
}
"""
)
FAILS = ("cudaMalloc", "cudaMallocManaged", "cudaMallocHost", "cudaMallocPitch", "cudaMemcpy", "cudaMemcpyToSymbol")


@host_rule(
    id="L6",
    name="discarded-error",
    title="Nobody looks at the error of an allocation or a copy",
    why="After a failed allocation, kernels run on a pointer that is none, and results are whatever was there.",
    cost=Cost.RESULT,
    severity=Severity.HINT,
    silent_when=("the call stands in a macro, an expression or an argument", "it is no allocation and no copy"),
    fires=(FIRES,),
    silent=(CHECKED,),
    default=False,
)
def discarded_error(host: HostFunction) -> Iterator[Hit]:
    found = [call for call in host.named(*FAILS) if call.discarded]
    if found:
        first, *others = found
        yield hit(
            first.node,
            f"{first.name} returns an error that nobody looks at",
            related=tuple((other.node, f"{other.name} as well") for other in others),
        )
