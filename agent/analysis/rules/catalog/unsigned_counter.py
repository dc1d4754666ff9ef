"""A10: an unsigned 32-bit loop counter in subscripts."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import contains
from agent.workload.dtypes import from_c_type

FIRES = """\
__global__ void gather(const float* x, float* y, int offset, int stride, unsigned n) {
    float s = 0.0f;
    for (unsigned k = 0; k < n; ++k) s += x[offset + stride * k];  // A10
    y[threadIdx.x] = s;
}
"""
SIGNED = """\
__global__ void gather(const float* x, float* y, int offset, int stride, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += x[offset + stride * k];
    for (unsigned k = 0; k < 32u; ++k) s += 1.0f;
    y[threadIdx.x] = s;
}
"""


@rule(
    id="A10",
    name="unsigned-counter",
    title="An unsigned loop counter in the arithmetic of a subscript",
    why="Unsigned numbers may wrap, so that a compiler may not turn the product in a subscript into a running address; "
    "signed ones may not.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=("the counter is signed or has 64 bits", "no subscript multiplies it"),
    fires=(FIRES,),
    silent=(SIGNED,),
    default=False,
)
def unsigned_counter(view: View) -> Iterator[Hit]:
    for loop in view.facts.loops:
        if from_c_type(loop.variable.type) != "u32" or loop.bound.constant is not None:
            continue
        walked = (
            access
            for access in view.facts.accesses
            if contains(loop.body, access.node) and access.space == "global" and access.index is not None
        )
        for access in walked:
            step = access.index.coefficient(loop.atom.name) if access.index is not None else None
            if step is not None and step.terms and step.constant is None:
                yield hit(
                    loop.variable.declarator,
                    f"{loop.variable.name} is unsigned and may wrap: with a signed counter the compiler may step along "
                    f"{access.name}",
                    related=((access.node, "multiplied here"),),
                )
                break
