"""S8: a shared array in which each thread uses a slot of its own."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.uses import uses

FIRES = """\
__global__ void square(const float* x, float* y) {
    __shared__ float s[256];  // S8
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] * s[threadIdx.x];
}
"""
EXCHANGED = """\
__global__ void shift(const float* x, float* y) {
    __shared__ float s[256];
    __shared__ float t[8];
    s[threadIdx.x] = x[threadIdx.x];
    t[threadIdx.x % 8] = 0.0f;
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x] + t[threadIdx.x % 8];
}
"""


@rule(
    id="S8",
    name="private-shared-slot",
    title="Each thread uses its own slot of a shared array only",
    why="Nothing passes between threads there: a variable does the same in a register, with no barrier.",
    cost=Cost.PASSES,
    severity=Severity.HINT,
    silent_when=(
        "some access has another index, or one that cannot be followed",
        "the array, or an element's address, goes somewhere",
    ),
    fires=(FIRES,),
    silent=(EXCHANGED,),
)
def private_shared_slot(view: View) -> Iterator[Hit]:
    found: dict[str, list[Access]] = {}
    for access in view.facts.accesses:
        if access.space == "shared" and access.root is not None:
            found.setdefault(access.root.key, []).append(access)
    for accesses in found.values():
        symbol = accesses[0].root
        assert symbol is not None
        if symbol.extern or not symbol.dims or not all(_own(access, accesses[0], view) for access in accesses):
            continue
        seen = uses(symbol, view.facts)
        if seen.followed and len(seen.names) == len(accesses) and _both(accesses):
            yield hit(
                symbol.declarator,
                f"each thread writes and reads its own element of {symbol.name} only: a variable does the same",
                related=tuple((access.node, "the thread's own slot") for access in accesses),
            )


def _own(access: Access, first: Access, view: View) -> bool:
    """Whether the index is the same as in the first access, and another one in each thread of a block."""
    index = access.index
    if index is None or index != first.index or access.atomic:
        return False
    slopes = {axis: index.coefficient(f"threadIdx.{axis}") for axis in view.axes}
    if set(view.axes) != {"x"}:
        return False
    slope = slopes["x"]
    return slope is not None and slope.constant not in (None, 0) and not index.without("threadIdx.x").depends


def _both(accesses: list[Access]) -> bool:
    return any(access.writes for access in accesses) and any(access.reads for access in accesses)
