"""L7: memory that is allocated in each turn of a loop."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.host import LAUNCH, Call, HostFunction, taken
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import text

KERNEL = "__global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(int n, int steps) {
    for (int k = 0; k < steps; ++k) {
        float* x;
        cudaMalloc(&x, n * sizeof(float));  // L7
        scale<<<1, 256>>>(x, n);
        cudaFree(x);
    }
}
"""
)
ONCE = (
    KERNEL
    + """\
void run(float** parts, int n, int steps, int devices) {
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    for (int k = 0; k < steps; ++k) scale<<<1, 256>>>(x, n);
    for (int d = 0; d < devices; ++d) {
        cudaSetDevice(d);
        cudaMalloc(&parts[d], n * sizeof(float));
        scale<<<1, 256>>>(parts[d], n);
    }
    for (int size = 256; size <= n; size *= 2) {
        float* own;
        cudaMalloc(&own, size * sizeof(float));
        scale<<<1, 256>>>(own, size);
        cudaFree(own);
    }
}
"""
)
ALLOCATES = ("cudaMalloc", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc", "cudaMallocPitch")
_CHANGED = r"\bNAME\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+\s*NAME\b|\bNAME\s*\+\+|&\s*NAME\b|\w\s*&?\s+&?NAME\s*:"
"""How the text of a loop changes a name: an assignment, a step, its address given away, or the turns of a range."""


@host_rule(
    id="L7",
    name="allocation-in-loop",
    title="Memory is allocated in each turn of a loop that launches kernels",
    why="cudaMalloc and cudaFree wait for the device and take longer than most kernels; one buffer serves all turns.",
    cost=Cost.WAITING,
    severity=Severity.WARNING,
    silent_when=(
        "each turn has a buffer, a size or a device of its own",
        "the loop launches nothing",
        "it is cudaMallocAsync, which takes from a pool",
    ),
    fires=(FIRES,),
    silent=(ONCE,),
)
def allocation_in_loop(host: HostFunction) -> Iterator[Hit]:
    for call in host.named(*ALLOCATES):
        if not call.loops or len(call.given) < 2 or not taken(call.given[0]):
            continue
        loop = call.loops[-1]
        inside = host.inside(loop)
        if not any(one.name == LAUNCH for one in inside) or any(one.name == "cudaSetDevice" for one in inside):
            continue
        freed = next((one for one in inside if one.name in ("cudaFree", "cudaFreeHost")), None)
        if freed is not None and not _changes(call, loop):
            yield hit(
                call.node,
                f"{taken(call.given[0])} is allocated and freed in each turn: allocate it once before the loop",
                related=((freed.node, "freed here"),),
            )


def _changes(call: Call, loop: Node) -> bool:
    """Whether the size may be another one in each turn: it has a name that the loop sets."""
    names = set(re.findall(r"[A-Za-z_]\w*", " ".join(text(one) for one in call.given[1:])))
    written = text(loop)
    return any(re.search(_CHANGED.replace("NAME", name), written) for name in names)
