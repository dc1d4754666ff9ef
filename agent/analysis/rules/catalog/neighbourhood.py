"""M11: threads that read their neighbours' elements."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, number
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void smooth(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0f;  // M11
}
"""
APART = """\
__global__ void smooth(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) y[i] = (x[i] + x[i + 1]) / 2.0f + x[3 * i] + x[3 * i + 1] + x[3 * i + 2];
}
"""


@rule(
    id="M11",
    name="neighbourhood",
    title="Each element is read by several neighbouring threads",
    why="L1 serves what was read before, but each read is a request; a tile in shared memory may need fewer.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=(
        "fewer than three neighbours are read, or threads stand further apart than one element",
        "the kernel has shared memory",
    ),
    fires=(FIRES,),
    silent=(APART,),
    default=False,
)
def neighbourhood(view: View) -> Iterator[Hit]:
    if any(symbol.space == "shared" for symbol in view.facts.symbols.all()):
        return
    groups: dict[tuple[str, Poly], dict[int, Access]] = {}
    for access in view.facts.accesses:
        index = access.index
        if access.space != "global" or index is None or access.writes or "unknown" in index.depends:
            continue
        slope = index.coefficient("threadIdx.x")
        if slope is not None and slope.constant == 1:
            shift = dict(index.terms).get((), 0)
            groups.setdefault((access.name, index - number(shift)), {}).setdefault(shift, access)
    seen: set[str] = set()
    for (name, _), found in groups.items():
        centre = next((shift for shift in found if shift - 1 in found and shift + 1 in found), None)
        if centre is not None and name not in seen:
            seen.add(name)
            first, *others = sorted(found.values(), key=lambda access: access.node.start_byte)
            yield hit(
                first.node,
                f"{len(found)} neighbours of {name} are read by each thread, so each is read by {len(found)} threads",
                related=tuple((other.node, "a neighbour") for other in others),
            )
