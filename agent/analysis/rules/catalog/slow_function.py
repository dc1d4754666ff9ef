"""A13: an accurate function in a loop where a fast one exists."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, ancestors, callee

FIRES = """\
__global__ void wave(float* y, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += sinf(0.1f * k) * expf(-0.01f * k);  // A13
    y[threadIdx.x] = s;
}
"""
OUTSIDE = """\
__global__ void wave(float* y, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += __sinf(0.1f * k);
    y[threadIdx.x] = expf(s);
}
"""
FAST = {"sinf": "__sinf", "cosf": "__cosf", "expf": "__expf", "logf": "__logf", "powf": "__powf", "tanf": "__tanf"}


@rule(
    id="A13",
    name="slow-function",
    title="An accurate function in a loop where a fast one exists",
    why="The special function unit computes sines, exponentials and logarithms with an error that is absolute, in a "
    "fraction of the time.",
    cost=Cost.ARITHMETIC,
    severity=Severity.HINT,
    silent_when=("it is not in a loop", "the file defines a function or macro of that name"),
    fires=(FIRES,),
    silent=(OUTSIDE,),
    default=False,
)
def slow_function(view: View) -> Iterator[Hit]:
    found = [call for call in view.calls(FAST) if any(above.type in LOOPS for above in ancestors(call))]
    if found:
        first, *others = found
        name = callee(first)
        yield hit(
            first,
            f"{name} in a loop: where a larger error is fine, {FAST[name]} takes a fraction of the time",
            related=tuple((other, f"{callee(other)} as well") for other in others),
        )
