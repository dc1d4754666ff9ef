"""S7: more dynamic shared memory than a launch gets without asking."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void stage(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
}
void run(float* x) {
    stage<<<1, 256, 64 * 1024>>>(x);  // S7
}
"""
ASKED = """\
__global__ void stage(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
}
void run(float* x) {
    cudaFuncSetAttribute(stage, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);
    stage<<<1, 256, 64 * 1024>>>(x);
}
"""
SMALL = """\
__global__ void stage(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
}
void run(float* x, int bytes) {
    stage<<<1, 256, 256 * sizeof(float)>>>(x);
    stage<<<1, 256, bytes>>>(x);
}
"""
FREE = 48 * 1024


@rule(
    id="S7",
    name="large-dynamic-shared",
    title="More than 48 KB of dynamic shared memory without asking",
    why="A launch gets up to 48 KB; for more, cudaFuncAttributeMaxDynamicSharedMemorySize must be set first.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the number of bytes cannot be told", "the file sets a function's attributes anywhere"),
    fires=(FIRES,),
    silent=(ASKED, SMALL),
)
def large_dynamic_shared(view: View) -> Iterator[Hit]:
    for number, launch in enumerate(view.launches):
        if launch.shared is not None and launch.shared > FREE and not view.raised:
            yield hit(
                at_launch(number, "shared"),
                f"{launch.shared} bytes of dynamic shared memory do not launch unless "
                f"cudaFuncAttributeMaxDynamicSharedMemorySize is set: {FREE} is the most without",
            )
