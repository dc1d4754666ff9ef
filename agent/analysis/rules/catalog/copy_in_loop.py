"""L8: copies that the host waits for, in a loop that launches kernels."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.host import ALLOCATES, LAUNCH, Call, HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import contains

KERNEL = "__global__ void step(float* x, int* done) { x[threadIdx.x] += 1.0f; *done = 1; }\n"
FIRES = (
    KERNEL
    + """\
void run(float* x, int* done) {
    int stop = 0;
    while (!stop) {
        step<<<1, 256>>>(x, done);
        cudaMemcpy(&stop, done, sizeof(int), cudaMemcpyDeviceToHost);  // L8
    }
}
"""
)
OUTSIDE = (
    KERNEL
    + """\
void run(float* x, float* h, int* done, cudaStream_t stream) {
    for (int k = 0; k < 100; ++k) {
        step<<<1, 256, 0, stream>>>(x, done);
        cudaMemcpyAsync(h, x, 1024, cudaMemcpyDeviceToHost, stream);
        cudaMemcpy(x, x + 256, 1024, cudaMemcpyDeviceToDevice);
    }
    cudaMemcpy(h, x, 1024, cudaMemcpyDeviceToHost);
    for (int k = 0; k < 100; ++k) {
        step<<<1, 256, 0, stream>>>(x, done);
        if (k % 50 == 0) cudaMemcpy(h, x, 1024, cudaMemcpyDeviceToHost);
    }
}
"""
)


@host_rule(
    id="L8",
    name="copy-in-loop",
    title="A loop that launches kernels waits for a copy in each turn",
    why="The device stands still while the host waits and then launches again: a gap of several microseconds a turn.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=(
        "the copy is asynchronous, or stays on the device",
        "no launch stands in the same loop",
        "a condition decides whether it copies",
        "the loop allocates: each turn is a run of its own",
    ),
    fires=(FIRES,),
    silent=(OUTSIDE,),
)
def copy_in_loop(host: HostFunction) -> Iterator[Hit]:
    seen: set[int] = set()
    for call in host.named("cudaMemcpy"):
        if not call.loops or len(call.given) != 4 or b"DeviceToDevice" in (call.given[3].text or b""):
            continue
        loop = call.loops[-1]
        if not _each_turn(call, loop) or any(one.name in ALLOCATES for one in host.inside(loop)):
            continue
        launch = next((one for one in host.named(LAUNCH) if one.loops and one.loops[-1] == loop), None)
        if launch is not None and loop.start_byte not in seen:
            seen.add(loop.start_byte)
            yield hit(
                call.node,
                "host and device wait for each other in each turn: keep the data on the device, or copy asynchronously "
                "between pinned buffers while the next launch runs",
                related=((launch.node, "launched in the same loop"),),
            )


def _each_turn(call: Call, loop: Node) -> bool:
    """Whether a call is made in each turn of the loop around it, breaks apart."""
    node = call.node.parent
    while node is not None and node != loop:
        if node.type in ("if_statement", "switch_statement", "conditional_expression") or node.type.startswith(
            "preproc"
        ):
            condition = node.child_by_field_name("condition")
            if condition is None or not contains(condition, call.node):
                return False
        node = node.parent
    return True
