"""L17: a kernel that launches kernels."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void leaf(float* x) { x[threadIdx.x] += 1.0f; }
__global__ void tree(float* x) {
    if (threadIdx.x == 0) leaf<<<1, 32>>>(x);  // L17
}
"""
HOST = """\
__global__ void leaf(float* x) { x[threadIdx.x] += 1.0f; }
void run(float* x) { leaf<<<1, 32>>>(x); }
"""


@rule(
    id="L17",
    name="device-launch",
    title="A kernel launches a kernel",
    why="A launch from the device costs as much as one from the host, needs -rdc=true and the device runtime, and each "
    "thread that comes there makes one.",
    cost=Cost.WAITING,
    severity=Severity.HINT,
    silent_when=("the launch is made by the host",),
    fires=(FIRES,),
    silent=(HOST,),
    default=False,
)
def device_launch(view: View) -> Iterator[Hit]:
    for configuration in view.nodes("kernel_call_syntax"):
        if configuration.parent is not None:
            yield hit(configuration.parent, "a launch by each thread that comes here, through the device runtime")
