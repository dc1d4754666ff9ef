"""S3: a shared array that is only written, or only read."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.uses import uses
from agent.workload.dtypes import from_c_type

FIRES = """\
__global__ void scale(const float* x, float* y) {
    __shared__ float kept[256];  // S3
    __shared__ float weights[4];  // S3
    float v = x[threadIdx.x];
    kept[threadIdx.x] = v;
    __syncthreads();
    y[threadIdx.x] = v * weights[threadIdx.x % 4];
}
"""
USED = """\
__device__ void fill(float* s, float v);
__global__ void scale(const float* x, float* y) {
    __shared__ float kept[256];
    __shared__ float filled[256];
    __shared__ int counts[8];
    kept[threadIdx.x] = x[threadIdx.x];
    fill(filled, x[0]);
    atomicAdd(&counts[threadIdx.x % 8], 1);
    __syncthreads();
    y[threadIdx.x] = kept[255 - threadIdx.x] + filled[threadIdx.x] + counts[0];
}
"""

EITHER = """\
// Which of the two declarations counts is decided elsewhere, so what the last line reads is not known.
__global__ void pick(const float* x, float* y) {
#if SHARED
    __shared__ float kept[256];
    kept[threadIdx.x] = x[threadIdx.x];
#else
    float kept[256];
    kept[threadIdx.x] = x[threadIdx.x];
#endif
    float* v = &kept[threadIdx.x];
    y[threadIdx.x] = *v;
}
"""


@rule(
    id="S3",
    name="idle-shared-array",
    title="A shared array is only written, or only read",
    why="What nobody reads takes room and time; what nobody wrote has no value.",
    cost=Cost.RESULT,
    severity=Severity.INFORMATION,
    silent_when=(
        "the array, an element's address or a reference goes to a function or a pointer",
        "branches of an #if declare it twice",
        "it is extern: several names stand for one place",
        "the elements' type is not known",
    ),
    fires=(FIRES,),
    silent=(USED, EITHER),
)
def idle_shared_array(view: View) -> Iterator[Hit]:
    for symbol in view.facts.symbols.all():
        if symbol.space != "shared" or symbol.extern or not symbol.dims or from_c_type(symbol.type) is None:
            continue
        word = _idle(symbol, view)
        if word:
            yield hit(symbol.declarator, f"the shared array {symbol.name} is {word} in this kernel")


def _idle(symbol: Symbol, view: View) -> str:
    found = uses(symbol, view.facts)
    through = [access for access in view.facts.accesses if access.root is symbol]
    # an access that is not seen is one too many
    if not found.followed or len(found.names) != len(through) or not through:
        return ""
    if not any(access.writes for access in through):
        return "read, and never written"
    return "" if any(access.reads for access in through) else "written, and never read"
