"""L19: a copy whose direction is not that of its pointers."""

from collections.abc import Iterator

from agent.analysis.host import HostFunction, variable
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import text

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(int n) {
    float *h = (float*)malloc(n * sizeof(float)), *x;
    cudaMalloc(&x, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyDeviceToHost);  // L19
    step<<<1, 256>>>(x);
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyDeviceToHost);  // L19
}
"""
)
RIGHT = (
    KERNEL
    + """\
void run(float* given, int n) {
    float *h = (float*)malloc(n * sizeof(float)), *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    step<<<1, 256>>>(x);
    cudaMemcpy(y, x, n * sizeof(float), cudaMemcpyDeviceToDevice);
    cudaMemcpy(h, x, n * sizeof(float), cudaMemcpyDefault);
    cudaMemcpy(given, x, n * sizeof(float), cudaMemcpyHostToDevice);
}
"""
)
SIDES = {"device": "Device", "pageable": "Host", "stack": "Host", "pinned": "Host"}


@host_rule(
    id="L19",
    name="copy-direction",
    title="A copy's direction is not that of its pointers",
    why="On most systems the runtime compares the direction with the pointers, and refuses to copy.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("it is not known where one of the buffers lies", "the direction is cudaMemcpyDefault or computed"),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def copy_direction(host: HostFunction) -> Iterator[Hit]:
    for call in host.named("cudaMemcpy", "cudaMemcpyAsync"):
        if len(call.given) < 4:
            continue
        to, source = (SIDES.get(host.place(one)) for one in call.given[:2])
        right, written = f"cudaMemcpy{source}To{to}", text(call.given[3])
        if to is None or source is None or written == right or not written.startswith("cudaMemcpy"):
            continue
        if written != "cudaMemcpyDefault":
            yield hit(
                call.given[3],
                f"{variable(call.given[1])} is memory of the {source.lower()} and {variable(call.given[0])} of the "
                f"{to.lower()}: {right}",
                mend=replaced(f"Write {right}", (call.given[3], right)),
            )
