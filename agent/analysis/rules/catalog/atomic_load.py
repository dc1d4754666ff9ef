"""T4: an atomic operation that changes nothing."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee, same
from agent.analysis.types import literal_value

FIRES = """\
__global__ void wait(int* flag, float* x) {
    while (atomicAdd(flag, 0) == 0) {}  // T4
    x[threadIdx.x] += 1.0f;
}
"""
CHANGES = """\
__global__ void take(int* flag, float* x) {
    if (atomicAdd(flag, 1) == 0) x[0] += atomicCAS(flag, 0, 1);
}
"""
NEUTRAL = {"atomicAdd": 0.0, "atomicSub": 0.0, "atomicOr": 0.0, "atomicXor": 0.0}


@rule(
    id="T4",
    name="atomic-load",
    title="An atomic operation that changes nothing, to load a value",
    why="It is done in L2 and takes turns with all others; a volatile load, or one of cuda::atomic_ref, is a load.",
    cost=Cost.WAITING,
    severity=Severity.HINT,
    silent_when=("it may change the value",),
    fires=(FIRES,),
    silent=(CHANGES,),
)
def atomic_load(view: View) -> Iterator[Hit]:
    for call in view.calls((*NEUTRAL, "atomicCAS")):
        if _changes_nothing(call):
            yield hit(call, f"this {callee(call)} only loads: a volatile load or cuda::atomic_ref does that as a load")


def _changes_nothing(call: Node) -> bool:
    given = arguments(call)
    if callee(call) in NEUTRAL and len(given) == 2:
        return literal_value(given[1]) == NEUTRAL[callee(call)]
    return callee(call) == "atomicCAS" and len(given) == 3 and same(given[1], given[2]) and _plain(given[1])


def _plain(node: Node) -> bool:
    return node.type in ("identifier", "number_literal")
