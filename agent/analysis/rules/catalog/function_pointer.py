"""R9: a call through a pointer to a function."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import callee, descendants, text

FIRES = """\
__global__ void map(float* x, float (*f)(float)) {
    x[threadIdx.x] = f(x[threadIdx.x]);  // R9
}
"""
INLINED = """\
template <typename F>
__global__ void map(float* x, F f) {
    x[threadIdx.x] = f(x[threadIdx.x]);
}
"""


@rule(
    id="R9",
    name="function-pointer",
    title="A kernel calls a function through a pointer",
    why="Such a call is not inlined: it spills registers, and the pointer must have been taken on the device.",
    cost=Cost.ARITHMETIC,
    severity=Severity.INFORMATION,
    silent_when=("what is called is a template parameter: it is inlined",),
    fires=(FIRES,),
    silent=(INLINED,),
)
def function_pointer(view: View) -> Iterator[Hit]:
    declarator = view.facts.node.child_by_field_name("declarator")
    listing = declarator.child_by_field_name("parameters") if declarator is not None else None
    if listing is None or b"(*" not in (listing.text or b"").replace(b" ", b""):
        return
    pointers = {
        text(name)
        for function in descendants(listing, "function_declarator")
        if text(function.child_by_field_name("declarator")).startswith("(*")
        for name in descendants(function, "identifier")
        if name.start_byte < function.child_by_field_name("parameters").start_byte  # type: ignore[union-attr]
    }
    for call in view.facts.calls if pointers else ():
        if callee(call) in pointers:
            yield hit(call, f"{callee(call)} is a pointer to a function: the call is not inlined")
