"""L21: a time between events that is asked for too early."""

from collections.abc import Iterator

from agent.analysis.host import Call, HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import text

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
float run(float* x, cudaEvent_t start, cudaEvent_t stop) {
    cudaEventRecord(start);
    step<<<1, 256>>>(x);
    cudaEventRecord(stop);
    float ms;
    cudaEventElapsedTime(&ms, start, stop);  // L21
    return ms;
}
"""
)
WAITED = FIRES.replace("    float ms;", "    cudaEventSynchronize(stop);\n    float ms;").replace("  // L21", "")
COPIED = FIRES.replace(
    "    float ms;", "    float h;\n    cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost);\n    float ms;"
).replace("  // L21", "")


@host_rule(
    id="L21",
    name="early-elapsed",
    title="The time between two events is asked for before the second has happened",
    why="cudaEventElapsedTime does not wait: it returns cudaErrorNotReady, and the time is not set.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("anything between may wait", "the event is recorded elsewhere"),
    fires=(FIRES,),
    silent=(WAITED, COPIED),
)
def early_elapsed(host: HostFunction) -> Iterator[Hit]:
    recorded: dict[str, Call] = {}
    for call in host.calls:
        if call.name == "cudaEventRecord" and call.given:
            recorded[text(call.given[0])] = call
        elif call.name == "cudaEventElapsedTime" and len(call.given) == 3:
            before = recorded.get(text(call.given[2]))
            if before is not None:
                yield hit(
                    call.node,
                    f"{text(call.given[2])} may not have happened by now: wait for it with cudaEventSynchronize",
                    related=((before.node, "recorded here"),),
                )
        elif not call.name.startswith(("cudaEventRecord", "cudaGetLastError", "printf")) and not _wraps(call, recorded):
            recorded.clear()


def _wraps(call: Call, recorded: dict[str, Call]) -> bool:
    """Whether a call is a check around one that is looked at by itself."""
    return any(call.node.start_byte <= one.node.start_byte < call.node.end_byte for one in recorded.values())
