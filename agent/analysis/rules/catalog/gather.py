"""M5: an index that is itself read from memory."""

import re
from collections.abc import Iterator, Mapping

from agent.analysis.accesses import Access
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void gather(const float* x, const int* order, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[order[i]];  // M5
}
"""
DIRECT = """\
__global__ void copy(const float* x, const int* first, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[first[blockIdx.x] + threadIdx.x];
}
"""
_OPAQUE = re.compile(r"<.*>(\d+)", re.DOTALL)


@rule(
    id="M5",
    name="gather",
    title="Each thread reads where memory tells it to",
    why="Lanes that read far apart cost a sector each: up to 32 where 4 would do, depending on the data.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=("the index is the same for all threads of a block, or its loaded part is",),
    fires=(FIRES,),
    silent=(DIRECT,),
    default=False,
)
def gather(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    reads = {access.node.start_byte: access for access in view.facts.accesses if access.reads and not access.atomic}
    for access in view.facts.accesses:
        if access.space == "global" and not access.atomic and access.name not in seen and _indirect(access, reads):
            seen.add(access.name)
            yield hit(
                access.node,
                f"where `{text(access.node)[:60]}` lies depends on what the thread loaded: neighbours may be far apart",
                "up to 32 sectors per request (4 would do)",
            )


def _indirect(access: Access, reads: Mapping[int, Access]) -> bool:
    """Whether a part of the index is an element that was read at an index with the thread's number in it."""
    for atom in access.index.atoms if access.index is not None else ():
        place = _OPAQUE.fullmatch(atom.name)
        read = reads.get(int(place[1])) if place is not None else None
        if read is not None and read.index is not None and read.space == "global":
            slope = read.index.coefficient("threadIdx.x")
            if slope is not None and slope.terms:
                return True
    return False
