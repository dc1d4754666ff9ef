"""Y2: threads that have returned before a barrier."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.guards import exits_before
from agent.analysis.rules.divergence import barriers, divergent, parts
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, text
from agent.analysis.values import dependence, value

FIRES = """\
__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;  // Y2
    s[threadIdx.x] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 256; ++k) s[0] += s[k];
        y[blockIdx.x] = s[0];
    }
}
"""
WHOLE_BLOCKS = """\
__global__ void rows(const float* x, float* y, int count) {
    __shared__ float s[256];
    int row = blockIdx.x;
    if (row >= count) return;
    s[threadIdx.x] = x[row * 256 + threadIdx.x];
    __syncthreads();
    y[row * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
"""
NOBODY = """\
// All threads have an index below 32; and a trap ends the grid.
__global__ void few(const float* x, float* y, int rows, int n) {
    __shared__ float s[32];
    if (blockIdx.x >= rows || threadIdx.x >= 32) return;
    if (threadIdx.x == 0 && n < 32) {
        asm volatile("trap;");
        return;
    }
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[31 - threadIdx.x];
}
void run(const float* x, float* y, int rows, int n) { few<<<rows, 32>>>(x, y, rows, n); }
"""
OWN_NUMBER = """\
// Of many blocks none is larger than all that they share: nobody returns.
__global__ void pairs(float* x, float* y, unsigned int n) {
    unsigned int t = threadIdx.x;
    if (t >= n) return;
    float* mine = x + blockIdx.x * blockDim.x;
    if (t < blockDim.x / 2) mine[t] += mine[t + blockDim.x / 2];
    __syncthreads();
    if (t == 0) y[blockIdx.x] = mine[0] + mine[1];
}
"""
AFTER = """\
__global__ void last(const float* x, float* y, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i >= n) return;
    y[i] = s[255 - threadIdx.x];
}
"""

_TRAP = re.compile(r"\btrap\s*;|\b__trap\s*\(")


@rule(
    id="Y2",
    name="return-before-barrier",
    title="Some threads return before a barrier",
    why="Every thread of a block must come to __syncthreads(); what happens when some have returned is undefined.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the condition depends on loaded values or on calls that are not followed",
        "all threads of a block return together, or a trap before it ends the grid",
        "in a kernel of several blocks, a thread's number in its own block is compared with what is no number",
    ),
    fires=(FIRES,),
    silent=(WHOLE_BLOCKS, AFTER, NOBODY, OWN_NUMBER),
)
def return_before_barrier(view: View) -> Iterator[Hit]:
    waiting = barriers(view.facts)
    if not waiting:
        return
    for leave, conditions in exits_before(waiting[-1], view.facts.node):
        split = next((guard for guard in conditions if guard.kind == "if" and divergent(guard.condition, view)), None)
        if split is None or _TRAP.search(text(leave.parent)) or _own_number(split.condition, view):
            continue
        after = next(barrier for barrier in waiting if barrier.start_byte > leave.start_byte)
        written = " ".join(text(split.condition).strip("()").split())
        yield hit(
            leave,
            f"threads return here that never come to a later __syncthreads(), which all threads of a block must reach: "
            f"guard the work with `{written[:60]}`, not the barrier",
            related=((after, "the barrier"),),
        )
        return


def _own_number(condition: Node, view: View) -> bool:
    """Whether all that tells threads apart are comparisons of their number in the block with a name, where there are
    several blocks: the name is the length of what they all share."""
    if b"blockIdx" not in view.facts.document.blanked:
        return False
    tests = [part for part in parts(condition) if divergent(part, view)]
    return bool(tests) and all(_against_name(test, view) for test in tests)


def _against_name(test: Node, view: View) -> bool:
    inner = bare(test)
    if inner is None or text(inner.child_by_field_name("operator")) not in (">=", ">", "<", "<="):
        return False
    sides = [inner.child_by_field_name(name) for name in ("left", "right")]
    sources = frozenset().union(*(dependence(side, view.facts.scope) for side in sides if side is not None))
    return not any(source.startswith("blockIdx") for source in sources) and all(
        side is not None and value(side, view.facts.scope).constant is None for side in sides
    )
