"""Y5: two barriers with nothing between."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.dependence import BUILT_IN, PURE
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee, contains, is_barrier, statements, text, walk

FIRES = """\
__global__ void shift(const float* x, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    int from = 255 - threadIdx.x;
    __syncthreads();  // Y5
    y[threadIdx.x] = s[from];
}
"""
BETWEEN = """\
__device__ void more(float* s);
__global__ void shift(const float* x, float* y) {
    __shared__ float s[256];
    __shared__ float total;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 128) s[threadIdx.x] += s[threadIdx.x + 128];
    __syncthreads();
    more(s);
    __syncthreads();
    if (threadIdx.x == 0) total = s[0];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x / 2] + total;
}
"""
MATCHED = """\
__global__ void pair(float* x, int n) {
    __shared__ float s[64];
    if (threadIdx.x < n) {
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = s[63 - threadIdx.x];
        __syncthreads();
    } else {
        __syncthreads();
        __syncthreads();
    }
}
"""
_ACTS = frozenset(
    (
        *("subscript_expression", "pointer_expression", "gnu_asm_expression", "lambda_expression"),
        *("return_statement", "break_statement", "continue_statement", "goto_statement"),
    )
)


@rule(
    id="Y5",
    name="idle-barrier",
    title="Two barriers with no access to memory between",
    why="A second barrier orders nothing that the first did not: all threads of the block wait for nothing.",
    cost=Cost.WAITING,
    severity=Severity.HINT,
    silent_when=(
        "anything between reads or writes memory, jumps, or calls what is not known",
        "the two are not in one block of statements",
        "the other branch of an if has barriers too, which they may be there to match",
    ),
    fires=(FIRES,),
    silent=(BETWEEN, MATCHED),
)
def idle_barrier(view: View) -> Iterator[Hit]:
    if len(view.facts.barriers) < 2:
        return
    for block in view.nodes("compound_statement"):
        if _matches_another(block, view):
            continue
        last: Node | None = None
        for statement in statements(block):
            if is_barrier(statement):
                if last is not None:
                    yield hit(
                        statement,
                        "nothing touches memory since the barrier before: this one orders nothing",
                        related=((last, "the barrier before"),),
                        mend=replaced("Remove the second barrier", (statement, "")),
                    )
                last = statement
            elif last is not None and _acts(statement, view):
                last = None


def _matches_another(block: Node, view: View) -> bool:
    """Whether a block is one branch of an ``if`` and another has barriers."""
    branch: Node | None = block.parent if block.parent is not None and block.parent.type == "else_clause" else block
    above = None if branch is None else branch.parent
    if branch is None or above is None or above.type != "if_statement":
        return False
    sides = (above.child_by_field_name("consequence"), above.child_by_field_name("alternative"))
    others = [side for side in sides if side is not None and side != branch]
    return any(contains(side, barrier) for side in others for barrier in view.facts.barriers)


def _acts(statement: Node, view: View) -> bool:
    """Whether a statement may touch memory that others see, or lead elsewhere."""
    return any(_is_act(node, view) for node in walk(statement))


def _is_act(node: Node, view: View) -> bool:
    if node.type in _ACTS or node.type.startswith("preproc_"):
        return True
    if node.type == "call_expression":
        return callee(node) not in PURE
    return node.type == "identifier" and _is_shared(node, view)


def _is_shared(name: Node, view: View) -> bool:
    """A variable of the block, or what is not known: a reference, a name from outside the kernel."""
    symbol = view.facts.symbols.resolve(name)
    if symbol is None:
        known = text(name) in BUILT_IN or text(name) in PURE
        return not known and bool(view.facts.symbols.outside(text(name)))
    declared = symbol.declarator.parent
    return symbol.space == "shared" or (declared is not None and declared.type == "reference_declarator")
