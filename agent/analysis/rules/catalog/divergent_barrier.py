"""Y1: a barrier that some threads of a block do not come to."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.guards import Guard, guards
from agent.analysis.loops import Loop
from agent.analysis.rules.divergence import barriers, divergent
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text
from agent.analysis.vectors import vector

FIRES = """\
__global__ void halve(float* x) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) {
            s[t] += s[t + d];
            __syncthreads();  // Y1
        }
    }
    x[t] = s[0];
}
"""
TRIANGLE = """\
__global__ void triangle(float* x) {
    for (int k = 0; k < threadIdx.x; ++k) {
        x[threadIdx.x] += k;
        __syncthreads();  // Y1
    }
}
"""
UNIFORM = """\
__global__ void halve(float* x, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    if (n > 1) __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    x[t] = s[0];
}
"""
SAME_COUNT = """\
// Both ends carry the thread's index: the number of turns is the same for all.
__global__ void steps(float* x, int start, int end, int step) {
    for (int i = start + threadIdx.x; i < end + threadIdx.x; i += step) {
        x[i] *= 2.0f;
        __syncthreads();
    }
}
"""
WHOLE_BLOCK = """\
__global__ void all(float* x) {
    if (threadIdx.x < 128) {
        x[threadIdx.x] += 1.0f;
        __syncthreads();
        x[threadIdx.x] += x[127 - threadIdx.x];
    }
}
void run(float* x) { all<<<1, 128>>>(x); }
"""


@rule(
    id="Y1",
    name="divergent-barrier",
    title="A barrier in control flow that depends on the thread",
    why="Every thread of a block must come to the same __syncthreads(); otherwise the behaviour is undefined.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the condition depends on loaded values or on calls that are not followed",
        "the condition is the same for all threads of the block that is launched",
        "a loop's number of turns is the same for all threads, or cannot be told",
    ),
    fires=(FIRES, TRIANGLE),
    silent=(UNIFORM, SAME_COUNT, WHOLE_BLOCK),
)
def divergent_barrier(view: View) -> Iterator[Hit]:
    found: dict[int, tuple[Guard, list[Node]]] = {}
    for barrier in barriers(view.facts):
        around = (guard for guard in guards(barrier, view.facts.node) if guard.kind != "exit")
        split = next((guard for guard in around if _splits(guard, view)), None)
        if split is not None:
            found.setdefault(split.condition.start_byte, (split, []))[1].append(barrier)
    for guard, (first, *others) in found.values():
        written = " ".join(text(guard.condition).strip("()").split())
        what = "make different numbers of turns" if guard.kind == "loop" else "differ"
        yield hit(
            first,
            f"the threads of a block {what} in `{written[:60]}`, so that not all of them come to this barrier",
            related=(
                (guard.condition, "depends on the thread"),
                *((other, "a barrier as well") for other in others),
            ),
        )


def _splits(guard: Guard, view: View) -> bool:
    if guard.kind == "loop":
        loop = view.facts.loop(guard.node)
        return loop is not None and _turns_differ(loop, view)
    return divergent(guard.condition, view)


def _turns_differ(loop: Loop, view: View) -> bool:
    """Whether the way from start to bound differs between threads by at least a step."""
    way, step = loop.bound - loop.start, loop.step.constant
    if loop.step_kind != "+" or not step or view.everyone is None:
        return False
    if "unknown" in way.depends or not any(source.startswith("threadIdx") for source in way.depends):
        return False
    ways = vector(way, view.everyone, offsets=True)
    return ways is not None and int(ways.max() - ways.min()) >= abs(step)
