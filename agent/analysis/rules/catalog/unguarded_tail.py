"""L4: a grid rounded up, and an access with no check."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import descendants, text
from agent.analysis.values import dependence

FIRES = """\
__global__ void scale(float* x, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = a * x[i];  // L4
}
void run(float* x, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, 2.0f);
}
"""
HALF = """\
__global__ void reverse(const float* x, float* y, int n) {
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = x[i];  // L4
    __syncthreads();
    if (i < n) y[i] = s[127 - threadIdx.x];
}
void run(const float* x, float* y, int n) {
    const int threads = 128;
    int blocks = n / threads + 1;
    reverse<<<blocks, threads>>>(x, y, n);
}
"""
CHECKED = """\
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = a * x[i];
}
void run(float* x, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, 2.0f, n);
}
"""
EXACT = """\
__global__ void scale(float* x, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = a * x[i];
}
void run(float* x) {
    const int n = 1 << 20;
    scale<<<(n + 255) / 256, 256>>>(x, 2.0f);
}
"""


@rule(
    id="L4",
    name="unguarded-tail",
    title="The grid is rounded up and an access is not checked",
    why="Where the size is no multiple of the block, the last block has threads past the end of the data.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "it cannot be told how the grid follows from a size",
        "the size is a known number",
        "any condition on the thread's index stands before or around the access, or the index is clamped",
    ),
    fires=(FIRES, HALF),
    silent=(CHECKED, EXACT),
)
def unguarded_tail(view: View) -> Iterator[Hit]:
    rounded = [number for number, launch in enumerate(view.launches) if launch.rounds == "up"]
    # every launch in sight, or the access may be meant for exact sizes
    if not rounded or len(rounded) < len(view.launches):
        return
    bare = [access for access in view.facts.accesses if _walks(access, view) and not _checked(access, view)]
    seen: set[str] = set()
    for access in bare:
        if access.name in seen:
            continue
        seen.add(access.name)
        launch = view.launches[rounded[0]]
        yield hit(
            access.node,
            f"the grid is {launch.size} rounded up to whole blocks of {launch.block[0]}, but `{text(access.node)}` is "
            "not checked: threads of the last block pass the end unless the buffer is padded",
            related=((at_launch(rounded[0], "grid"), "rounded up here"),),
        )


def _walks(access: Access, view: View) -> bool:
    """Whether the index is the thread's number in the grid plus what has no thread in it."""
    if access.space != "global" or access.index is None or access.atomic:
        return False
    across, within = access.index.coefficient("blockIdx.x"), access.index.coefficient("threadIdx.x")
    extent = view.block[0]
    return (
        across is not None and within is not None and within.constant == 1 and across.constant == extent
        and not access.index.without("blockIdx.x").without("threadIdx.x").depends
    )  # fmt: skip


def _checked(access: Access, view: View) -> bool:
    """Whether anything before or around an access asks for the thread's index."""
    if any(not _uniform(guard.condition, view) for guard in view.guards(access)):
        return True
    for leave in descendants(view.facts.body, "if_statement"):
        condition = leave.child_by_field_name("condition")
        if leave.start_byte < access.node.start_byte and condition is not None and not _uniform(condition, view):
            jumps = ("return_statement", "continue_statement", "break_statement", "goto_statement")
            if any(True for _ in descendants(leave, *jumps)):
                return True
    return False


def _uniform(condition: Node, view: View) -> bool:
    return not dependence(condition, view.facts.scope) & {"threadIdx.x", "unknown", "blockIdx.x"}
