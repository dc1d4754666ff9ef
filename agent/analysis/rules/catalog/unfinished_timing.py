"""L11: a clock that stops before the kernel has run."""

import re
from collections.abc import Iterator

from agent.analysis.host import LAUNCH, Call, HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule

KERNEL = "#include <chrono>\n__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
double run(float* x) {
    auto start = std::chrono::steady_clock::now();
    step<<<1, 256>>>(x);
    auto end = std::chrono::steady_clock::now();  // L11
    return std::chrono::duration<double>(end - start).count();
}
"""
)
WAITED = (
    KERNEL
    + """\
void finish();
double run(float* x) {
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < 100; ++k) step<<<1, 256>>>(x);
    cudaDeviceSynchronize();
    auto end = std::chrono::steady_clock::now();
    step<<<1, 256>>>(x);
    finish();
    auto last = std::chrono::steady_clock::now();
    step<<<1, 256>>>(x);
    auto asked = std::chrono::steady_clock::now();
    cudaDeviceSynchronize();
    auto done = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(end - start).count();
}
"""
)
_CLOCK = re.compile(r"clock|gettimeofday|omp_get_wtime|clock_gettime|now")
_QUIET = re.compile(
    r"printf|fprintf|puts|cudaGetLastError|cudaPeekAtLastError|cudaEventRecord|cudaMemcpyAsync|cudaMemsetAsync|dim3"
)
WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaThreadSynchronize")


@host_rule(
    id="L11",
    name="unfinished-timing",
    title="A clock is read after a launch with no wait between",
    why="A launch returns at once: what is measured is how long it takes to ask for the kernel, not to run it.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "anything between may wait: a synchronization, a copy, a call that is not known",
        "no clock is read before the launch in the same block of statements",
        "a wait and another look at the clock follow: what the launch takes is wanted as well",
    ),
    fires=(FIRES,),
    silent=(WAITED,),
)
def unfinished_timing(host: HostFunction) -> Iterator[Hit]:
    started: Call | None = None
    pending: Call | None = None
    for at, call in enumerate(host.calls):
        if _CLOCK.fullmatch(call.name):
            if pending is None or started is None or _block(call) != _block(started):
                pass
            elif not _waited_for(host.calls[at + 1 :]):
                yield hit(
                    call.node,
                    "the kernel may not have run by now: cudaDeviceSynchronize() before the clock is read, or "
                    "measure with events",
                    related=((started.node, "started here"), (pending.node, "launched here")),
                )
            started, pending = call, None
        elif call.name == LAUNCH:
            pending = call
        elif not _QUIET.fullmatch(call.name):
            pending = None


def _waited_for(after: tuple[Call, ...]) -> bool:
    """Whether the code goes on to wait for the kernel and to read the clock again: both times are wanted."""
    waited = False
    for call in after:
        if call.name == LAUNCH:
            return False
        if _CLOCK.fullmatch(call.name):
            return waited
        waited = waited or call.name in WAITS
    return False


def _block(call: Call) -> int:
    """The block of statements that a call stands in."""
    node = call.node.parent
    while node is not None and node.type != "compound_statement":
        node = node.parent
    return node.start_byte if node is not None else -1
