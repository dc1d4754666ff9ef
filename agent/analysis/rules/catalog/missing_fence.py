"""Y11: a last block that reads what others wrote, with no fence."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors, callee, contains, text

FIRES = """\
__global__ void total(float* part, unsigned* count, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = 1.0f;
        last = atomicInc(count, gridDim.x) == gridDim.x - 1;  // Y11
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float s = 0.0f;
        for (int k = 0; k < gridDim.x; ++k) s += part[k];
        *out = s;
    }
}
"""
FENCED = FIRES.replace("        last = atomicInc", "        __threadfence();\n        last = atomicInc").replace(
    "  // Y11", ""
)
COUNTED = """\
__global__ void count(float* part, unsigned* hits, int n) {
    part[blockIdx.x] = 1.0f;
    if (atomicAdd(hits, 1u) == n) part[0] = 2.0f;
}
"""


@rule(
    id="Y11",
    name="missing-fence",
    title="The last block reads what others wrote, with no fence",
    why="A plain store and an atomic operation after it may be seen in any order by other blocks: __threadfence() "
    "between keeps it.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the kernel has any fence, or an ordered atomic operation",
        "the counter is not compared with the number of blocks",
        "what was stored before is not read after",
    ),
    fires=(FIRES,),
    silent=(FENCED, COUNTED),
)
def missing_fence(view: View) -> Iterator[Hit]:
    written = view.facts.document.blanked
    if any(word in written for word in (b"fence", b"memory_order", b"membar")):
        return
    for count in view.facts.accesses:
        if not count.atomic or count.space != "global" or not _against_grid(count.node, view):
            continue
        stored = next((one for one in view.facts.accesses if _published(one, count, view)), None)
        if stored is not None:
            yield hit(
                count.node,
                f"the last block reads {stored.name}, but nothing orders `{text(stored.node)}` before this "
                f"{callee(count.node)}: put __threadfence() between",
                related=((stored.node, "stored here"),),
            )


def _against_grid(call: Node, view: View) -> bool:
    """Whether the old value, directly or through a variable, is compared with a number of blocks."""
    held = next(
        (above for above in ancestors(call) if above.type in ("init_declarator", "assignment_expression")), None
    )
    name = "" if held is None else text(held.child_by_field_name("declarator") or held.child_by_field_name("left"))
    for test in view.operations("==", "!=", "<", ">="):
        if "gridDim" in text(test) and (contains(test, call) or (name and name in text(test))):
            return True
    return False


def _published(store: Access, count: Access, view: View) -> bool:
    if not store.writes or store.reads or store.atomic or store.space != "global" or store.root is None:
        return False
    if store.node.start_byte > count.node.start_byte or "blockIdx" not in str(store.index):
        return False
    return any(
        one.root is store.root and one.reads and one.node.start_byte > count.node.end_byte
        for one in view.facts.accesses
    )
