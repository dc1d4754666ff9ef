"""D5: a loop whose length each thread reads from memory."""

from collections.abc import Iterator

from agent.analysis.loops import Loop
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void spmv(const int* rows, const int* cols, const float* a, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float s = 0.0f;
    for (int k = rows[row]; k < rows[row + 1]; ++k) s += a[k] * x[cols[k]];  // D5
    y[row] = s;
}
"""
EVEN = """\
__global__ void matvec(const int* rows, const float* a, const float* x, float* y, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += a[k] * x[k];
    for (int k = rows[blockIdx.x] + threadIdx.x; k < rows[blockIdx.x + 1]; k += blockDim.x) s += a[k];
    y[threadIdx.x] = s;
}
"""


@rule(
    id="D5",
    name="uneven-loop",
    title="A loop whose length each thread reads from memory",
    why="A warp runs as long as its longest lane; where lengths differ, the others wait.",
    cost=Cost.LANES,
    severity=Severity.HINT,
    silent_when=("the ends are the same for all threads of a block, or cannot be followed", "the loop loads nothing"),
    fires=(FIRES,),
    silent=(EVEN,),
    default=False,
)
def uneven_loop(view: View) -> Iterator[Hit]:
    for loop in view.facts.loops:
        inside = view.facts.accesses_in(loop.body)
        if _is_loaded(loop, view) and any(one.space == "global" and one.reads for one in inside):
            yield hit(
                loop.bound_node,
                f"each thread loops up to its own `{' '.join(text(loop.bound_node).split())[:50]}`: a warp takes as "
                "long as its longest lane",
            )


def _is_loaded(loop: Loop, view: View) -> bool:
    """Whether the number of turns is an element, or made from one, that each thread has another of."""
    names = [atom.name for atom in (loop.bound - loop.start).atoms if atom.name.startswith("<")]
    places = {int(name.rsplit(">", 1)[1]) for name in names}
    for access in view.facts.accesses if places else ():
        if access.node.start_byte in places and access.space == "global" and access.index is not None:
            slope = access.index.coefficient("threadIdx.x")
            if slope is not None and slope.terms:
                return True
    return False
