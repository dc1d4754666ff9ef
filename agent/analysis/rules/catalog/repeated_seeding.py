"""L15: a random generator that is started again and again."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import LOOPS, ancestors, arguments, bare, contains, text

FIRES = """\
#include <curand_kernel.h>
__global__ void walk(float* x, int steps) {
    curandState state;
    for (int k = 0; k < steps; ++k) {
        curand_init(1234, threadIdx.x, k, &state);  // L15
        x[threadIdx.x] += curand_uniform(&state);
    }
}
"""
ONCE = """\
#include <curand_kernel.h>
__global__ void walk(float* x, curandState* states, int steps, int n) {
    curandState state;
    curand_init(1234, threadIdx.x, 0, &state);
    for (int k = 0; k < steps; ++k) x[threadIdx.x] += curand_uniform(&state);
    for (int i = threadIdx.x; i < n; i += blockDim.x) curand_init(1234, i, 0, &states[i]);
}
"""


@rule(
    id="L15",
    name="repeated-seeding",
    title="A random generator is started in a loop",
    why="curand_init is a hundred times a draw: with a sequence number it multiplies matrices to skip ahead.",
    cost=Cost.ARITHMETIC,
    severity=Severity.INFORMATION,
    silent_when=("each turn starts another state", "it is not in a loop"),
    fires=(FIRES,),
    silent=(ONCE,),
)
def repeated_seeding(view: View) -> Iterator[Hit]:
    for call in view.calls(("curand_init",)):
        if len(arguments(call)) != 4:
            continue
        state = bare(arguments(call)[3])
        if state is None or state.type != "pointer_expression":
            continue
        name = bare(state.child_by_field_name("argument"))
        symbol = view.facts.symbols.resolve(name) if name is not None and name.type == "identifier" else None
        loop = next((above for above in ancestors(call) if above.type in LOOPS), None)
        if (
            symbol is not None
            and loop is not None
            and symbol.space == "local"
            and not contains(loop, symbol.declarator)
        ):
            yield hit(
                call,
                f"{text(name)} is started anew in each turn: start it once before the loop and draw from it inside",
                "some hundred instructions a turn",
            )
