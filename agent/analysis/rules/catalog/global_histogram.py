"""T3: a histogram of few bins in global memory."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.ranges import most
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, text
from agent.analysis.values import dependence, value
from agent.analysis.widths import integer_type

FIRES = """\
__global__ void count(const unsigned char* x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i]], 1);  // T3
}
"""
MASKED = """\
__global__ void count(const unsigned* x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i] & 63], 1);  // T3
}
"""
OTHERWISE = """\
__global__ void count(const unsigned* x, int* bins, const int* part, int n) {
    __shared__ int own[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own[x[i] & 63], 1);
    if (i < n) atomicAdd(&bins[x[i]], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""
MOST_BINS = 4096


@rule(
    id="T3",
    name="global-histogram",
    title="A histogram of few bins is counted in global memory",
    why="All blocks meet at the same few elements; a copy for each block in shared memory is added up once at the end.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=("the number of bins is not known from the type or the mask of what is counted", "it is over 4096"),
    fires=(FIRES, MASKED),
    silent=(OTHERWISE,),
    fix="block-histogram",
)
def global_histogram(view: View) -> Iterator[Hit]:
    for access in view.facts.accesses:
        if not access.atomic or access.space != "global" or callee(access.node) not in ("atomicAdd", "atomicInc"):
            continue
        bins = _bins(access, view)
        if bins is not None and 1 < bins <= MOST_BINS:
            yield hit(
                access.node,
                f"{access.name} has {bins} bins at most, and all blocks count there: count in shared memory for each "
                "block first",
                "updates that wait for those of all other blocks",
            )


def _bins(access: Access, view: View) -> int | None:
    """How many elements an update may choose from, by loaded values."""
    target = arguments(access.node)[0]
    place = bare(target.child_by_field_name("argument")) if target.type == "pointer_expression" else None
    subscripts = [] if place is None else subscripts_of(place)
    if len(subscripts) != 1 or "memory" not in dependence(subscripts[0], view.facts.scope):
        return None
    bound = most(value(subscripts[0], view.facts.scope))
    return bound + 1 if bound is not None else _by_type(bare(subscripts[0]), view)


def _by_type(node: Node | None, view: View) -> int | None:
    """256 for a byte, directly or through a variable."""
    if node is not None and node.type == "identifier":
        symbol: Symbol | None = view.facts.symbols.resolve(node)
        if symbol is not None and symbol.fixed and symbol.init is not None:
            return (
                256
                if "u8" in (integer_type(node, view.facts.symbols), integer_type(symbol.init, view.facts.symbols))
                else None
            )
    return 256 if node is not None and text(node) and integer_type(node, view.facts.symbols) == "u8" else None
