"""M12: a vector that is read from where none may lie."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import pointer
from agent.analysis.affine import Poly
from agent.analysis.guards import guards
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.traffic import rare
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import ancestors, arguments, bare, callee, text
from agent.workload.dtypes import base, from_c_type, size_of

FIRES = """\
__global__ void load(const float* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = *reinterpret_cast<const float4*>(&x[4 * i + 1]);  // M12
    y[i + n] = *(float4*)(x + i);  // M12
}
"""
ALIGNED = """\
__global__ void load(const float* x, float4* y, int first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = *reinterpret_cast<const float4*>(&x[4 * i + 8]);
    y[i + n] = *(float4*)(x + first + 4 * i);
    if (i % 4 == 0) y[i] = *(float4*)(x + i);
}
"""


@rule(
    id="M12",
    name="misaligned-vector",
    title="A vector is read or written where none may lie",
    why="An access of 8 or 16 bytes must stand at a multiple of its size; otherwise the kernel ends with an error.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the offset cannot be followed, or has a part that may be a multiple",
        "a condition picks single threads",
    ),
    fires=(FIRES,),
    silent=(ALIGNED,),
)
def misaligned_vector(view: View) -> Iterator[Hit]:
    for node in (*view.nodes("cast_expression"), *view.calls(("reinterpret_cast",))):
        kind, inner = _cast(node)
        wide = from_c_type(kind.rstrip("* ").removeprefix("const ")) if kind.endswith("*") else None
        if wide is None or inner is None or base(wide)[1] not in (2, 4) or not _used(node):
            continue
        root, offset = pointer(inner, view.facts.scope)
        narrow = from_c_type(root.type) if isinstance(root, Symbol) and root.pointer + len(root.dims) == 1 else None
        if narrow is None or offset is None or base(narrow)[1] != 1:
            continue
        lanes = size_of(wide) // size_of(narrow)
        if lanes > 1 and _never_aligned(offset, lanes) and not rare(tuple(guards(node, view.facts.node)), view):
            written = " ".join(text(inner).split())
            yield hit(
                node,
                f"`{written}` is not a multiple of {lanes} elements in each thread: a {size_of(wide)}-byte "
                "access there is misaligned",
            )


def _cast(node: Node) -> tuple[str, Node | None]:
    """(type as written, what is cast)."""
    if node.type == "cast_expression":
        return text(node.child_by_field_name("type")), node.child_by_field_name("value")
    function, given = node.child_by_field_name("function"), arguments(node)
    written = text(function.child_by_field_name("arguments")).strip("<>") if function is not None else ""
    return written.strip(), given[0] if len(given) == 1 and callee(node) == "reinterpret_cast" else None


def _used(node: Node) -> bool:
    """Whether what is cast is read or written at once."""
    above = next((one for one in ancestors(node) if one.type != "parenthesized_expression"), None)
    if above is None:
        return False
    if above.type == "pointer_expression":
        return text(above.child_by_field_name("operator")) == "*"
    return above.type == "subscript_expression" and bare(above.child_by_field_name("argument")) == node


def _never_aligned(offset: Poly, lanes: int) -> bool:
    """Whether some thread of each warp surely stands beside a multiple."""
    within = offset.coefficient("threadIdx.x")
    rest = [factor % lanes for product, factor in offset.terms if product]
    if all(factor == 0 for factor in rest):
        return dict(offset.terms).get((), 0) % lanes != 0
    others = offset.without("threadIdx.x")
    known = within is not None and within.constant is not None and within.constant % lanes != 0
    return known and "threadIdx.x" not in others.depends
