"""W5: __activemask() where the lanes of a warp are meant."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, bare, callee

FIRES = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(__activemask(), v, d);  // W5
    if (threadIdx.x == 0) x[0] = v;
}
"""
RIGHT = """\
__global__ void sum(float* x, int* count, int n) {
    float v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    unsigned here = __activemask();
    if (threadIdx.x % 32 == __ffs(here) - 1) atomicAdd(count, __popc(here));
    if (__any_sync(__activemask(), v > 0.0f)) x[0] = v;
}
"""
GATHERS = frozenset(("__shfl_down_sync", "__shfl_up_sync", "__shfl_xor_sync", "__reduce_add_sync"))


@rule(
    id="W5",
    name="active-mask",
    title="A shuffle among the lanes that happen to be active",
    why="__activemask() tells which lanes run together at that moment, which need not be all that will come: a part of "
    "the sum may be missing.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the mask is used to count or to elect lanes", "lanes are voted on, not summed up"),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def active_mask(view: View) -> Iterator[Hit]:
    for call in view.calls(GATHERS):
        given = arguments(call)
        if given and _is_active(given[0], view):
            yield hit(
                call,
                f"{callee(call)} with __activemask(): lanes that come later are left out; name those that take part",
            )


def _is_active(node: Node, view: View) -> bool:
    inner = bare(node)
    if inner is not None and inner.type == "identifier":
        symbol = view.facts.symbols.resolve(inner)
        inner = bare(symbol.init) if symbol is not None and symbol.fixed else None
    return callee(inner) == "__activemask"
