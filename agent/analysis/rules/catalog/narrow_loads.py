"""M8: four neighbours, loaded one by one."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, number
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors, text

FIRES = """\
__global__ void length(const float* q, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = q[4 * i] * q[4 * i] + q[4 * i + 1] + q[4 * i + 2] + q[4 * i + 3];  // M8
}
"""
OTHERWISE = """\
__global__ void length(const float* q, const float4* v, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = q[3 * i] + q[3 * i + 1] + q[3 * i + 2] + q[3 * i + 3];
    y[i] += v[i].x + v[i].y + v[i].z + v[i].w;
    y[i] += q[4 * i + 1] + q[4 * i + 2] + q[4 * i + 3] + q[4 * i + 4];
}
"""
LANES = 4


@rule(
    id="M8",
    name="narrow-loads",
    title="A thread loads four neighbours one by one",
    why="Four requests of 4 bytes for each lane, 16 bytes apart, touch each sector four times; a float4 is one.",
    cost=Cost.TRAFFIC,
    severity=Severity.HINT,
    silent_when=(
        "the first of the four is not known to lie at a multiple of four",
        "the elements have not 4 bytes, or are the same for all threads",
        "the kernel writes through the pointer",
    ),
    fires=(FIRES,),
    silent=(OTHERWISE,),
)
def narrow_loads(view: View) -> Iterator[Hit]:
    groups: dict[tuple[str, Poly, int], dict[int, Access]] = {}
    written = {access.name for access in view.facts.accesses if access.writes}
    for access in view.facts.accesses:
        if access.space != "global" or access.index is None or access.name in written or access.root is None:
            continue
        if any(factor % LANES for product, factor in access.index.terms if product):
            continue
        shift = dict(access.index.terms).get((), 0)
        base = access.index - number(shift % LANES)
        if not _steps_by_four(base) or view.element_bytes(access) != 4:
            continue
        block = next((above.start_byte for above in ancestors(access.node) if above.type == "compound_statement"), 0)
        groups.setdefault((access.name, base, block), {}).setdefault(shift % LANES, access)
    for (name, _, _), found in groups.items():
        if len(found) == LANES:
            first, *others = sorted(found.values(), key=lambda access: access.node.start_byte)
            yield hit(
                first.node,
                f"four neighbours of {name} are loaded one by one from `{text(found[0].node)}`, a multiple "
                "of four: one 16-byte load takes all, if the buffer is aligned",
                "four requests (one would do)",
                tuple((other.node, "of the same four") for other in others),
            )


def _steps_by_four(base: Poly) -> bool:
    """Whether each part is a multiple of four, and the thread's index is in one."""
    depends = any(source.startswith("threadIdx") for source in base.depends)
    return depends and "unknown" not in base.depends and all(factor % LANES == 0 for _, factor in base.terms)
