"""R8: memory taken from the device's heap."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void rows(const float* x, float* y, int n) {
    float* own = new float[n];  // R8
    for (int k = 0; k < n; ++k) own[k] = x[k];
    y[threadIdx.x] = own[n - 1];
    delete[] own;
}
"""
NONE = """\
__global__ void rows(const float* x, float* y, float* scratch, int n) {
    float* own = scratch + threadIdx.x * n;
    float* same = new (own) float[4];
    y[threadIdx.x] = own[n - 1] + same[0];
}
"""

ALONE = """\
__global__ void create(float** held, int n) {
    *held = new float[n];
}
void run(float** held, int n) { create<<<1, 1>>>(held, n); }
"""


@rule(
    id="R8",
    name="device-allocation",
    title="A kernel takes memory from the device's heap",
    why="The heap is one for all threads, slow under contention, and has 8 MB unless the host asks for more; then the "
    "pointer is null.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=("new is given the place", "every launch is one thread"),
    fires=(FIRES,),
    silent=(NONE, ALONE),
)
def device_allocation(view: View) -> Iterator[Hit]:
    if view.launches and all(one.threads == 1 and one.grid == (1, 1, 1) for one in view.launches):
        return
    found = [*view.calls(("malloc",)), *(node for node in view.nodes("new_expression") if not _placed(node))]
    if found:
        first, *others = found
        yield hit(
            first,
            "memory of the device's heap, asked for by each thread: scratch memory that the host allocates once, or an "
            "array of fixed size, needs no heap",
            related=tuple((other, "here as well") for other in others),
        )


def _placed(node: Node) -> bool:
    return node.child_by_field_name("placement") is not None
