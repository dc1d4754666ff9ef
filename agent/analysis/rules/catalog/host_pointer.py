"""L13: a kernel that is given memory of the host."""

from collections.abc import Iterator

from agent.analysis.host import LAUNCH, HostFunction, variable
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule

KERNEL = "__global__ void step(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(int n) {
    float* h = (float*)malloc(n * sizeof(float));
    float small[4];
    step<<<1, 256>>>(h, n);  // L13
    step<<<1, 256>>>(small, 4);  // L13
}
"""
)
DEVICE = (
    KERNEL
    + """\
void run(float* given, int n) {
    float *x, *shared, *pinned;
    cudaMalloc((void**)&x, n * sizeof(float));
    cudaMallocManaged(&shared, n * sizeof(float));
    cudaMallocHost(&pinned, n * sizeof(float));
    step<<<1, 256>>>(x, n);
    step<<<1, 256>>>(shared, n);
    step<<<1, 256>>>(pinned, n);
    step<<<1, 256>>>(given, n);
    float* parts[2] = {x, shared};
    step<<<1, 256>>>(parts[0], n);
}
"""
)

CHILDREN = (
    KERNEL
    + """\
__global__ void split(float* x, int n) {
    float* half = (float*)malloc(n * sizeof(float));
    half[0] = x[0];
    step<<<1, 256>>>(half, n);
}
"""
)


@host_rule(
    id="L13",
    name="host-pointer",
    title="A kernel is given memory of the host",
    why="Memory of malloc, new or the stack has no address on the device, except on systems that share all memory.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "it is not known what the pointer points at",
        "the memory is managed, pinned or registered",
        "a kernel launches a kernel",
    ),
    fires=(FIRES,),
    silent=(DEVICE, CHILDREN),
)
def host_pointer(host: HostFunction) -> Iterator[Hit]:
    if host.named("cudaHostRegister"):
        return
    for launch in host.named(LAUNCH):
        for given in launch.given:
            if host.place(given) in ("pageable", "stack"):
                yield hit(given, f"{variable(given)} is memory of the host: the kernel cannot read it")
