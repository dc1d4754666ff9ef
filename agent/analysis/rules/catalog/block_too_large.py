"""L2: a block that no device can run."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
void run(float* x, int n) {
    fill<<<(n + 2047) / 2048, 2048>>>(x, n);  // L2
    dim3 block(64, 32);
    fill<<<n / 64, block>>>(x, n);  // L2
    fill<<<1, dim3(1, 1, 128)>>>(x, n);  // L2
}
"""
FITS = """\
__global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
void run(float* x, int n) {
    fill<<<(n + 1023) / 1024, 1024>>>(x, n);
    fill<<<1, dim3(16, 1, 64)>>>(x, n);
}
"""
MOST = (1024, 1024, 64)


@rule(
    id="L2",
    name="block-too-large",
    title="A block is larger than any device runs",
    why="A block has at most 1024 threads, and at most 1024, 1024 and 64 along x, y and z; a larger launch fails.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the block's size cannot be told",),
    fires=(FIRES,),
    silent=(FITS,),
)
def block_too_large(view: View) -> Iterator[Hit]:
    for number, launch in enumerate(view.launches):
        threads = launch.threads
        for axis, extent, most in zip("xyz", launch.block, MOST, strict=True):
            if extent is not None and extent > most:
                message = f"a block of {extent} threads along {axis} does not launch: {most} is the most"
                yield hit(at_launch(number, "block"), message)
                break
        else:
            if threads is not None and threads > 1024:
                shown = " x ".join(str(extent) for extent in launch.block if extent != 1)
                message = f"a block of {shown} = {threads} threads does not launch: 1024 is the most"
                yield hit(at_launch(number, "block"), message)
