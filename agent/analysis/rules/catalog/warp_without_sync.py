"""Y7: lanes of a warp that pass values through shared memory with nothing between."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.coalescing import WARP
from agent.analysis.dependence import PURE
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import bare, callee, contains, text
from agent.analysis.values import value

FIRES = """\
__global__ void sum(const float* x, float* y) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        s[t] += s[t + 16];  // Y7
        s[t] += s[t + 8];
        s[t] += s[t + 4];
        s[t] += s[t + 2];
        s[t] += s[t + 1];
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""
RIGHT = """\
__global__ void sum(const float* x, float* y) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        __syncwarp();
        float v = s[t];
        for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
        if (t == 0) y[blockIdx.x] = v;
    }
}
"""


@rule(
    id="Y7",
    name="warp-without-sync",
    title="Lanes of a warp pass values through shared memory with nothing between",
    why="Since compute capability 7.0 the lanes of a warp need not run together: __syncwarp() orders what they do.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "it is not in a branch that one warp takes, by a comparison of its index with a number",
        "an index cannot be followed, or anything that may wait stands between",
    ),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def warp_without_sync(view: View) -> Iterator[Hit]:
    shared: dict[str, list[Access]] = {}
    for access in view.facts.accesses:
        if access.space == "shared" and access.root is not None and access.index is not None and not access.atomic:
            shared.setdefault(access.root.key, []).append(access)
    for accesses in shared.values():
        found = next(_pairs(accesses, view), None)
        if found is not None:
            write, read = found
            yield hit(
                read.node if read.node.start_byte > write.node.start_byte else write.node,
                f"`{text(read.node)}` is another lane's, which wrote it just before: put __syncwarp() between, or use "
                "shuffles",
                related=((write.node, "written here by each lane"),),
            )


def _pairs(accesses: list[Access], view: View) -> Iterator[tuple[Access, Access]]:
    """(write, read of another lane's element in a later statement) with nothing between that may wait."""
    for write in accesses:
        if not write.writes or not _in_one_warp(write, view):
            continue
        for read in accesses:
            if read.node.start_byte < _end(write.node) or not read.reads or read.writes or not _close(write, read):
                continue
            if not _waits(view, _end(write.node), read.node.start_byte) and _together(write, read):
                yield write, read


def _end(node: Node) -> int:
    while node.parent is not None and node.type != "expression_statement":
        node = node.parent
    return node.end_byte


def _close(write: Access, read: Access) -> bool:
    """Whether the read is of an element that another lane of the warp wrote."""
    assert write.index is not None and read.index is not None
    slope, apart = write.index.coefficient("threadIdx.x"), (read.index - write.index).constant
    return slope is not None and slope.constant == 1 and apart is not None and 0 < abs(apart) < WARP


def _together(write: Access, read: Access) -> bool:
    """Whether the way leads from one to the other: they are not in two branches of one condition."""
    above = read.node.parent
    while above is not None and not contains(above, write.node):
        above = above.parent
    return above is not None and above.type == "compound_statement"


def _in_one_warp(access: Access, view: View) -> bool:
    return any(
        guard.kind == "if" and guard.taken and _first_warp(guard.condition, view) for guard in view.guards(access)
    )


def _first_warp(condition: Node, view: View) -> bool:
    test = bare(condition)
    if test is None or text(test.child_by_field_name("operator")) != "<":
        return False
    left = value(test.child_by_field_name("left"), view.facts.scope)
    right = value(test.child_by_field_name("right"), view.facts.scope).constant
    return str(left) == "threadIdx.x" and right is not None and 1 < right <= WARP


def _waits(view: View, start: int, end: int) -> bool:
    if any(start <= call.start_byte < end and callee(call) not in PURE for call in view.facts.calls):
        return True
    return any(start <= node.start_byte < end for node in view.nodes("gnu_asm_expression"))
