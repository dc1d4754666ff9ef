"""L23: a grid that no device runs."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void fill(float* x) { x[blockIdx.y] = 1.0f; }
void run(float* x) {
    fill<<<dim3(1, 70000), 32>>>(x);  // L23
    fill<<<100 / 256, 256>>>(x);  // L23
}
"""
FITS = """\
__global__ void fill(float* x, int n) { x[blockIdx.x] = 1.0f; }
void run(float* x, int n) {
    fill<<<70000, 32>>>(x, n);
    fill<<<dim3(1, 65535), 32>>>(x, n);
    fill<<<n / 256, 256>>>(x, n);
}
"""
MOST = (2**31 - 1, 65535, 65535)


@rule(
    id="L23",
    name="impossible-grid",
    title="A grid that no device runs",
    why="A grid has at least one block, and at most 2147483647, 65535 and 65535 along x, y and z; other launches fail.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the grid's size cannot be told",),
    fires=(FIRES,),
    silent=(FITS,),
)
def impossible_grid(view: View) -> Iterator[Hit]:
    for number, launch in enumerate(view.launches):
        for axis, extent, most in zip("xyz", launch.grid, MOST, strict=True):
            if extent is not None and not 1 <= extent <= most:
                yield hit(
                    at_launch(number, "grid"),
                    f"a grid of {extent} blocks along {axis} does not launch: 1 to {most} do",
                )
                break
