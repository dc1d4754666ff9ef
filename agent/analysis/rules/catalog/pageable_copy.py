"""L10: an asynchronous copy of pageable memory."""

from collections.abc import Iterator

from agent.analysis.host import HostFunction, variable
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(float* x, int n, cudaStream_t stream) {
    float* h = (float*)malloc(n * sizeof(float));
    cudaMemcpyAsync(x, h, n * sizeof(float), cudaMemcpyHostToDevice, stream);  // L10
    step<<<1, 256, 0, stream>>>(x);
}
"""
)
PINNED = (
    KERNEL
    + """\
void run(float* x, float* given, int n, cudaStream_t stream) {
    float* h;
    cudaMallocHost(&h, n * sizeof(float));
    float* own = new float[n];
    cudaHostRegister(own, n * sizeof(float), 0);
    cudaMemcpyAsync(x, h, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(x, own, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(x, given, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    step<<<1, 256, 0, stream>>>(x);
}
"""
)


@host_rule(
    id="L10",
    name="pageable-copy",
    title="An asynchronous copy of memory that is not pinned",
    why="Pageable memory goes through a buffer of the driver: the copy is slower and overlaps with nothing.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=("it is not known where the buffer lies", "the function registers memory with cudaHostRegister"),
    fires=(FIRES,),
    silent=(PINNED,),
)
def pageable_copy(host: HostFunction) -> Iterator[Hit]:
    if host.named("cudaHostRegister"):
        return
    seen: set[str] = set()
    for call in host.named("cudaMemcpyAsync"):
        for given in call.given[:2]:
            name = variable(given)
            if host.place(given) == "pageable" and name not in seen:
                seen.add(name)
                yield hit(
                    call.node,
                    f"{name} is not pinned, so this copy is not asynchronous: allocate it with cudaMallocHost",
                )
