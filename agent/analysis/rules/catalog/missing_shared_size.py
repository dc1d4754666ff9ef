"""S5: dynamic shared memory that a launch does not give."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void turn(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
void run(float* x) {
    turn<<<1, 256>>>(x);  // S5
}
"""
GIVEN = FIRES.replace("256>>>", "256, 256 * sizeof(float)>>>").replace("  // S5", "")
SOMETIMES = """\
// With a condition around each use, a launch without may be meant.
__global__ void turn(float* x, int staged) {
    extern __shared__ float s[];
    if (staged) s[threadIdx.x] = x[threadIdx.x];
}
void run(float* x) {
    turn<<<1, 256>>>(x, 0);
}
"""


@rule(
    id="S5",
    name="missing-shared-size",
    title="A launch gives no dynamic shared memory to a kernel that uses it",
    why="An extern __shared__ array has as many bytes as the launch's third argument says; without it, none.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("every use stands under a condition", "the number of bytes is given but cannot be told"),
    fires=(FIRES,),
    silent=(GIVEN, SOMETIMES),
)
def missing_shared_size(view: View) -> Iterator[Hit]:
    used = [
        access
        for access in view.facts.accesses
        if access.space == "shared" and access.root is not None and access.root.extern and not view.guards(access)
    ]
    for number, launch in enumerate(view.launches):
        if used and launch.shared == 0:
            yield hit(
                at_launch(number),
                f"{used[0].name} has no bytes in this launch: give its size as the third argument of <<<>>>",
                related=((used[0].node, "used here"),),
            )
