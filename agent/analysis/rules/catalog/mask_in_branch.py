"""W2: a full mask where only some lanes of a warp are."""

from collections.abc import Iterator

from agent.analysis.coalescing import WARP
from agent.analysis.guards import Guard, decide, decided, guards
from agent.analysis.rules.divergence import TAKES_MASK
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import arguments, callee, text
from agent.analysis.values import value

FIRES = """\
__global__ void half(float* x) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16) {
        v += __shfl_down_sync(0xffffffff, v, 8);  // W2
    }
    x[threadIdx.x] = v;
}
"""
WHOLE_WARPS = """\
__global__ void warps(float* x, int n) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 64) v += __shfl_down_sync(0xffffffff, v, 8);
    if (threadIdx.x / 32 == 1) v += __shfl_down_sync(0xffffffff, v, 8);
    if (threadIdx.x < n) v += __shfl_down_sync(0xffffffff, v, 8);
    if (threadIdx.x < 16) v += __shfl_down_sync(0xffffu, v, 8);
    x[threadIdx.x] = v;
}
"""
FULL = 0xFFFFFFFF


@rule(
    id="W2",
    name="mask-in-branch",
    title="A full mask in a branch that only some lanes of a warp take",
    why="Every lane that the mask names must come to the same call; otherwise the behaviour is undefined.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("a condition cannot be followed for each lane", "whole warps take the branch", "the mask is computed"),
    fires=(FIRES,),
    silent=(WHOLE_WARPS,),
)
def mask_in_branch(view: View) -> Iterator[Hit]:
    for call in view.facts.calls:
        given = arguments(call)
        if callee(call) not in TAKES_MASK or not given or value(given[0], view.facts.scope).constant not in (FULL, -1):
            continue
        split = next((guard for guard in guards(call, view.facts.node) if _splits_a_warp(guard, view)), None)
        if split is not None:
            written = " ".join(text(split.condition).strip("()").split())
            yield hit(
                call,
                f"the mask names all 32 lanes, but only those with `{'' if split.taken else 'not '}{written[:60]}` "
                f"come to this {callee(call)}",
                related=((split.condition, "splits a warp"),),
            )


def _splits_a_warp(guard: Guard, view: View) -> bool:
    if guard.kind in ("loop", "switch") or view.everyone is None:
        return False
    decision = decide(guard.condition, view.facts.scope, view.everyone)
    if not decided(decision) or decision[0].ndim == 0:
        return False
    warps = [decision[0][first : first + WARP] for first in range(0, len(decision[0]), WARP)]
    return any(bool(warp.any()) and not bool(warp.all()) for warp in warps)
