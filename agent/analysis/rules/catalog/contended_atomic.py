"""T1: all threads update one address."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.guards import guards
from agent.analysis.rules.divergence import lets_most_through
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee
from agent.analysis.values import is_uniform

FIRES = """\
__global__ void sum(const float* x, float* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, x[i]);  // T1
}
"""
ROW = """\
__global__ void row_max(const int* x, int* most, int cols) {
    int row = blockIdx.x;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) atomicMax(&most[row], x[row * cols + c]);  // T1
}
"""
ONE_A_BLOCK = """\
__global__ void sum(const float* x, float* total, int n) {
    __shared__ float s;
    if (threadIdx.x == 0) s = x[blockIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, s);
}
"""
SPREAD = """\
__global__ void count(const unsigned char* x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i]], 1);
}
"""
RARE = """\
__global__ void failures(const float* x, float* worst, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] < 0.0f) atomicAdd(worst, x[i]);
    if (i < n) atomicAdd(count, 1);
}
"""
FOLDS = frozenset(("atomicAdd", "atomicSub", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"))


@rule(
    id="T1",
    name="contended-atomic",
    title="All threads of a block update one address in global memory",
    why="Atomic operations on one address are done one after the other, for all threads of the grid that meet there.",
    cost=Cost.WAITING,
    severity=Severity.WARNING,
    silent_when=(
        "the address depends on the thread or on loaded values",
        "the operand is the same for all threads: compilers fold such updates over a warp",
        "a condition other than a bound lets few threads through, or may",
    ),
    fires=(FIRES, ROW),
    silent=(ONE_A_BLOCK, SPREAD, RARE),
)
def contended_atomic(view: View) -> Iterator[Hit]:
    found: dict[str, list[Access]] = {}
    for access in view.facts.accesses:
        if access.atomic and access.space == "global" and _contended(access, view):
            found.setdefault(access.name, []).append(access)
    for first, *others in found.values():
        yield hit(
            first.node,
            f"every thread of a block does {callee(first.node)} on the same element of {first.name}: reduce over the "
            "warp or the block first, then update once",
            "as many updates in a row as there are threads",
            tuple((other.node, f"{callee(other.node)} on one element") for other in others),
        )


def _contended(access: Access, view: View) -> bool:
    given = arguments(access.node)
    if callee(access.node) not in FOLDS or len(given) < 2 or access.index is None:
        return False
    if any(not atom.same_for_all or "memory" in atom.depends for atom in access.index.atoms):
        return False
    if is_uniform(given[1], view.facts.scope):
        return False
    return all(lets_most_through(guard.condition, view) for guard in guards(access.node, view.facts.node))
