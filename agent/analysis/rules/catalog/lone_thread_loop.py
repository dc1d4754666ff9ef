"""D3: one thread of a block that goes through data alone."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.guards import guards
from agent.analysis.loops import Loop
from agent.analysis.ranges import most
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, callee, text
from agent.analysis.types import literal_value
from agent.analysis.values import value

FIRES = """\
__global__ void sum(const float* x, float* y, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int k = 0; k < blockDim.x; ++k) total += s[k];  // D3
        y[blockIdx.x] = total;
    }
}
"""
SHORT = """\
__global__ void sum(const float* x, float* y, int n) {
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int k = 0; k < 8; ++k) total += x[k];
        y[blockIdx.x] = total;
    }
    for (int k = threadIdx.x; k < n; k += blockDim.x) y[k] += x[k];
}
"""
FEW = 32


@rule(
    id="D3",
    name="lone-thread-loop",
    title="One thread of a block goes through data alone",
    why="The other threads wait or have nothing to do, and each of its loads waits for the one before.",
    cost=Cost.LANES,
    severity=Severity.INFORMATION,
    silent_when=(
        "the loop has 32 turns at most, one for each warp of a block, or touches no memory",
        "the block is a single thread",
    ),
    fires=(FIRES,),
    silent=(SHORT,),
)
def lone_thread_loop(view: View) -> Iterator[Hit]:
    if view.threads == 1 or not view.facts.loops:
        return
    last = -1
    for loop in view.facts.loops:
        if loop.node.start_byte < last or not _long(loop) or not _touches(loop, view):
            continue
        alone = next(
            (g for g in guards(loop.node, view.facts.node) if g.kind == "if" and g.taken and _one(g.condition, view)),
            None,
        )
        if alone is not None:
            last = loop.node.end_byte
            written = " ".join(text(alone.condition).strip("()").split())
            yield hit(
                loop.bound_node,
                f"one thread goes through this loop, that with `{written[:40]}`; the others wait or have nothing to do",
                related=((alone.condition, "one thread"),),
            )


def _long(loop: Loop) -> bool:
    if loop.step_kind != "+" or loop.step.constant is None:
        return False
    turns = (loop.bound - loop.start).constant
    if turns is None:
        bound = most(loop.bound)
        return bound is None or bound > FEW
    return abs(turns) > FEW * abs(loop.step.constant)


def _touches(loop: Loop, view: View) -> bool:
    inside = view.facts.accesses_in(loop.body)
    return any(
        one.space in ("global", "shared") and one.index is not None and loop.atom in one.index.atoms for one in inside
    )


def _one(condition: Node, view: View) -> bool:
    """``threadIdx.x == 0`` and its like, where no other axis is used."""
    test = bare(condition)
    if test is None or view.axes != {"x"}:
        return False
    if test.type == "unary_expression" and text(test.child_by_field_name("operator")) == "!":
        return str(value(test.child_by_field_name("argument"), view.facts.scope)) == "threadIdx.x"
    if text(test.child_by_field_name("operator")) != "==" or callee(test):
        return False
    left = value(test.child_by_field_name("left"), view.facts.scope)
    return str(left) == "threadIdx.x" and literal_value(test.child_by_field_name("right")) is not None
