"""W3: a mask that does not name the lane that passes it."""

from collections.abc import Iterator

import numpy as np
from tree_sitter import Node

from agent.analysis.coalescing import WARP
from agent.analysis.guards import decide, decided, guards, stopped
from agent.analysis.rules.divergence import TAKES_MASK
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee, text
from agent.analysis.values import value

FIRES = """\
__global__ void sum(float* x) {
    float v = x[threadIdx.x];
    v += __shfl_down_sync(0xffff, v, 8);  // W3
    x[threadIdx.x] = v;
}
void run(float* x) { sum<<<1, 64>>>(x); }
"""
NAMED = """\
__global__ void sum(float* x, int n) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16) v += __shfl_down_sync(0xffff, v, 8);
    if (v > 0.0f) v += __shfl_down_sync(0xffff, v, 8);
    v += __shfl_down_sync(0xffffffff, v, 8);
    x[threadIdx.x] = v;
}
void run(float* x) { sum<<<1, 64>>>(x, 3); }
"""
HALF = """\
__global__ void sum(float* x) { x[threadIdx.x] += __shfl_down_sync(0xffff, x[threadIdx.x], 8); }
void run(float* x) { sum<<<1, 16>>>(x); }
"""
FULL = 0xFFFFFFFF


@rule(
    id="W3",
    name="mask-without-caller",
    title="A mask does not name a lane that passes it",
    why="A lane that calls with a mask in which it is not itself gets a value that is not defined.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the mask is computed", "the block is not known", "a condition around cannot be followed"),
    fires=(FIRES,),
    silent=(NAMED, HALF),
)
def mask_without_caller(view: View) -> Iterator[Hit]:
    calls = view.calls(TAKES_MASK)
    if not calls or view.threads is None or view.everyone is None:
        return
    for call in calls:
        given = arguments(call)
        mask = value(given[0], view.facts.scope).constant if given else None
        if mask is None or mask & FULL == FULL:
            continue
        lane = _outside(call, mask & FULL, view)
        if lane is not None:
            yield hit(call, f"lane {lane} comes to this {callee(call)}, but {text(given[0])} does not name it")


def _outside(call: Node, mask: int, view: View) -> int | None:
    """A lane that surely comes and is not named."""
    assert view.everyone is not None
    found = tuple(guards(call, view.facts.node))
    if any(guard.kind == "loop" for guard in found):
        return None
    if not all(decided(decide(guard.condition, view.facts.scope, view.everyone)) for guard in found):
        return None
    count = np.size(view.everyone["threadIdx.x"])
    away = np.broadcast_to(stopped(found, view.facts.scope, view.everyone), count)
    lanes = (thread % WARP for thread in range(count) if not away[thread])
    return next((lane for lane in lanes if not mask >> lane & 1), None)
