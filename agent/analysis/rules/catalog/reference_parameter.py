"""R4: a kernel that takes a reference."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Mend, Place, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text, tokens

FIRES = """\
struct Shape { int rows, cols; };
__global__ void fill(float* x, const Shape& shape) {  // R4
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < shape.rows * shape.cols) x[i] = 1.0f;
}
"""
BY_VALUE = """\
struct Shape { int rows, cols; };
__global__ void fill(float* x, const Shape shape) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float& out = x[i];
    if (i < shape.rows * shape.cols) out = 1.0f;
}
"""


@rule(
    id="R4",
    name="reference-parameter",
    title="A kernel takes a parameter by reference",
    why="A reference is the address of the caller's object: host memory, which a kernel cannot read on most systems.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the parameter is passed by value or by pointer",),
    fires=(FIRES,),
    silent=(BY_VALUE,),
)
def reference_parameter(view: View) -> Iterator[Hit]:
    for parameter in view.facts.kernel.parameters:
        if parameter.type.rstrip().endswith("&") and not parameter.type.rstrip().endswith("&&"):
            node = view.facts.node.descendant_for_byte_range(parameter.span.start, parameter.span.end)
            if node is not None:
                yield hit(
                    node,
                    f"{parameter.name} is a reference to an object of the host: pass it by value",
                    mend=_by_value(node, parameter.type),
                )


def _by_value(node: Node, written: str) -> Mend | None:
    """Only of a constant: what a kernel writes through a reference would be lost in a copy."""
    if "const" not in tokens(node) or text(node).count("&") != 1 or "const" not in written:
        return None
    start = node.start_byte + text(node).encode().index(b"&")
    return Mend("Pass it by value", ((Place(start, start + 1), ""),))
