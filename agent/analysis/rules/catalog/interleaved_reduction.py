"""D2: a reduction in which fewer and fewer lanes of each warp work."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, contains, text
from agent.analysis.types import literal_value
from agent.analysis.values import value

FIRES = """\
__global__ void sum(const float* x, float* y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        if (t % (2 * d) == 0) s[t] += s[t + d];  // D2
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""
SEQUENTIAL = """\
__global__ void sum(const float* x, float* y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t % 32 == 0) y[blockIdx.x] = s[0];
}
"""


@rule(
    id="D2",
    name="interleaved-reduction",
    title="A reduction in which fewer and fewer lanes of each warp work",
    why="Lanes far apart stay active, so that all warps run to the end, each for one or two lanes.",
    cost=Cost.LANES,
    severity=Severity.INFORMATION,
    silent_when=("the step of the loop is not in the divisor of the thread's index",),
    fires=(FIRES,),
    silent=(SEQUENTIAL,),
)
def interleaved_reduction(view: View) -> Iterator[Hit]:
    for rest in view.operations("%"):
        loop = next((one for one in view.facts.loops if one.step_kind == "*" and contains(one.body, rest)), None)
        test, branch = _test(rest)
        if loop is None or branch is None or not contains(loop.body, branch):
            continue
        thread = value(rest.child_by_field_name("left"), view.facts.scope).coefficient("threadIdx.x")
        divisor = value(rest.child_by_field_name("right"), view.facts.scope)
        if thread is None or not thread.terms or loop.atom not in divisor.atoms:
            continue
        if any(one.writes and one.space in ("shared", "global") for one in view.facts.accesses_in(branch)):
            yield hit(
                test,
                f"one lane in `{text(rest.child_by_field_name('right'))}` works, spread over all warps: let the first "
                "threads of the block do it (`t < d`, d halving), or use shuffles",
            )


def _test(rest: Node) -> tuple[Node, Node | None]:
    """(comparison with zero, the if statement that it decides)"""
    test = rest.parent
    while test is not None and test.type == "parenthesized_expression":
        test = test.parent
    if test is None or text(test.child_by_field_name("operator")) != "==":
        return rest, None
    if literal_value(test.child_by_field_name("right")) != 0.0:
        return rest, None
    above = test.parent
    while above is not None and above.type in ("parenthesized_expression", "condition_clause", "binary_expression"):
        above = above.parent
    inside = above is not None and above.type == "if_statement" and bare(above.child_by_field_name("condition"))
    return test, above if inside else None
