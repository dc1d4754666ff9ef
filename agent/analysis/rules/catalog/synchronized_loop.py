"""L9: a loop that waits for the device after each launch."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.host import LAUNCH, HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import descendants, text

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(float* x, int steps) {
    for (int k = 0; k < steps; ++k) {
        step<<<1, 256>>>(x);
        cudaDeviceSynchronize();  // L9
    }
}
"""
)
NEEDED = (
    KERNEL
    + """\
#include <chrono>
void run(float* x, int* shared, int steps) {
    for (int k = 0; k < steps; ++k) {
        auto start = std::chrono::steady_clock::now();
        step<<<1, 256>>>(x);
        cudaDeviceSynchronize();
        auto end = std::chrono::steady_clock::now();
    }
    for (int k = 0; shared[0] < steps; ++k) {
        step<<<1, 256>>>(x);
        cudaDeviceSynchronize();
        shared[0] += k;
    }
    for (int k = 0; k < steps; ++k) step<<<1, 256>>>(x);
    cudaDeviceSynchronize();
}
"""
)
WAITS = ("cudaDeviceSynchronize", "cudaThreadSynchronize")
_ELSE = re.compile(r"clock|time|now|second|Event|Timer|Memcpy|print|cout|swap", re.IGNORECASE)
_HARMLESS = re.compile(
    r"cuda(?:DeviceSynchronize|ThreadSynchronize|GetLastError|PeekAtLastError)|.*(?i:check|err|assert).*"
)


@host_rule(
    id="L9",
    name="synchronized-loop",
    title="A loop waits for the device after each launch",
    why="Launches of one stream run in order anyway; waiting after each leaves a gap of several microseconds between.",
    cost=Cost.WAITING,
    severity=Severity.INFORMATION,
    silent_when=(
        "the loop measures time, copies, or calls anything but launches and checks",
        "the host reads or writes arrays in the loop: they may be managed",
        "the loop launches into several streams",
    ),
    fires=(FIRES,),
    silent=(NEEDED,),
)
def synchronized_loop(host: HostFunction) -> Iterator[Hit]:
    for wait in host.named(*WAITS):
        if not wait.loops:
            continue
        loop = wait.loops[-1]
        inside = host.inside(loop)
        launch = next((one for one in inside if one.name == LAUNCH and one.loops[-1] == loop), None)
        calm = all(one.name == LAUNCH or _HARMLESS.fullmatch(one.name) for one in inside)
        if launch is not None and calm and not _touches(loop) and not _ELSE.search(_around(loop)):
            yield hit(
                wait.node,
                f"{wait.name} after each launch: the next one waits for this one anyway: waiting once after the loop "
                "is enough",
                related=((launch.node, "launched in each turn"),),
            )


def _touches(loop: Node) -> bool:
    """Whether the host takes an element of anything in the loop, launches left out."""
    for node in descendants(loop, "subscript_expression", "pointer_expression"):
        if not any(above.type == "kernel_call_syntax" or above.type == "argument_list" for above in _above(node, loop)):
            return True
    return False


def _above(node: Node, loop: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None and parent != loop:
        yield parent
        parent = parent.parent


def _around(loop: Node) -> str:
    """The loop's own text, without what is a launch's argument."""
    return re.sub(r"<<<.*?>>>", "", text(loop), flags=re.DOTALL)
