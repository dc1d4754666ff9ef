"""L5: launches whose errors nobody asks for."""

import re
from collections.abc import Iterator

from agent.analysis.host import LAUNCH, HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule

KERNEL = """\
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""
FIRES = (
    KERNEL
    + """\
void run(float* x, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, n);  // L5
    cudaDeviceSynchronize();
}
"""
)
CHECKED = (
    KERNEL
    + """\
#define CHECK(call) if ((call) != cudaSuccess) throw 1
void run(float* x, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, n);
    CHECK(cudaGetLastError());
}
void synchronized(float* x, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, n);
    CHECK(cudaDeviceSynchronize());
}
"""
)
_CHECKS = re.compile(r"check|err|assert|safe|verify|throw|success|try", re.IGNORECASE)


@host_rule(
    id="L5",
    name="unchecked-launch",
    title="Nobody asks whether a launch worked",
    why="A launch returns nothing: a block that is too large, or a kernel for another card, shows in "
    "cudaGetLastError() only.",
    cost=Cost.RESULT,
    severity=Severity.HINT,
    silent_when=("anything after the launch asks for an error, or has a name that says so",),
    fires=(FIRES,),
    silent=(CHECKED,),
    default=False,
)
def unchecked_launch(host: HostFunction) -> Iterator[Hit]:
    launches = host.named(LAUNCH)
    if not launches:
        return
    last = max(call.node.start_byte for call in launches)
    for call in host.calls:
        checked = _CHECKS.search(call.name) or (call.name.startswith("cuda") and not call.discarded)
        if checked and (call.node.start_byte > last or call.name != "cudaMalloc"):
            return
    first, *others = launches
    yield hit(
        first.node,
        "nothing in this function asks whether the launch worked: cudaGetLastError() tells",
        related=tuple((other.node, "not asked either") for other in others),
    )
