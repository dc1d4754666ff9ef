"""R10: printf in a kernel."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors

FIRES = """\
__global__ void root(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] < 0.0f) printf("%d\\n", i);  // R10
    if (i < n) x[i] = sqrtf(x[i]);
}
"""
FOR_DEBUGGING = """\
__global__ void check(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef DEBUG
    printf("%d\\n", i);
#endif
    if (i < n) y[i] = x[i];
}
"""


@rule(
    id="R10",
    name="device-print",
    title="A kernel prints",
    why="A call of printf takes registers and a stack in every thread, also where it is never reached.",
    cost=Cost.LANES,
    severity=Severity.HINT,
    silent_when=("it stands inside an #if", "the kernel writes nothing: it is there to print"),
    fires=(FIRES,),
    silent=(FOR_DEBUGGING,),
    default=False,
)
def device_print(view: View) -> Iterator[Hit]:
    calls = view.calls(("printf",))
    found = [call for call in calls if not any(above.type.startswith("preproc_") for above in ancestors(call))]
    if found and any(access.writes for access in view.facts.accesses):
        first, *others = found
        yield hit(
            first,
            "printf takes registers and a stack in every thread, also where it is not reached",
            related=tuple((other, "here as well") for other in others),
        )
