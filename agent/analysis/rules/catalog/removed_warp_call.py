"""W1: warp functions without _sync."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Mend, Severity, at, hit
from agent.analysis.rules.mending import before, reached_by_all
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors, arguments, callee

FIRES = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down(v, d);  // W1
    if (__any(v > 0.0f)) x[threadIdx.x] = v;  // W1
}
"""
RIGHT = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (__any_sync(0xffffffffu, v > 0.0f)) x[threadIdx.x] = v;
}
"""
OLD_TOOLKIT = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
#if __CUDA_ARCH__ < 700
    v += __shfl_down(v, 1);
#else
    v += __shfl_down_sync(0xffffffffu, v, 1);
#endif
    x[threadIdx.x] = v;
}
"""
REMOVED = frozenset(("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all"))
FULL = "0xffffffffu"


@rule(
    id="W1",
    name="removed-warp-call",
    title="A warp function without _sync",
    why="The forms without a mask were removed: they do not compile for compute capability 7.0 and later.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("it stands inside an #if", "the file defines a function or macro of that name"),
    fires=(FIRES,),
    silent=(RIGHT, OLD_TOOLKIT),
)
def removed_warp_call(view: View) -> Iterator[Hit]:
    calls = [call for call in view.facts.calls if callee(call) in REMOVED - view.defined and not _conditional(call)]
    mend = _mend(calls, view)
    for call in calls:
        name = callee(call)
        yield hit(
            call, f"{name} does not compile for sm_70 and later: use {name}_sync with the mask of its lanes", mend=mend
        )


def _mend(calls: list[Node], view: View) -> Mend | None:
    """The mask of the whole warp, where all lanes come to each call. One change for all of them: with one of them left
    the kernel does not compile, so that nothing could be proved."""
    if not all(reached_by_all(call, view) for call in calls):
        return None
    changes = []
    for call in calls:
        name, given = call.child_by_field_name("function"), arguments(call)
        if name is None or not given:
            return None
        # put in and not written over, as the value may be such a call itself
        changes += [(at(name), f"{callee(call)}_sync"), (before(given[0]), f"{FULL}, ")]
    which = "" if len(calls) == 1 else f" in all {len(calls)} calls"
    return Mend(f"Use the _sync forms with the mask of the whole warp{which}", tuple(changes))


def _conditional(node: Node) -> bool:
    return any(above.type.startswith("preproc_") for above in ancestors(node))
