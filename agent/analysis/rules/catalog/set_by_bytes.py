"""L22: a number that is written byte by byte."""

import re
from collections.abc import Iterator

from agent.analysis.host import HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import text
from agent.analysis.types import literal_value

KERNEL = "__global__ void step(int* x) { x[threadIdx.x] += 1; }\n"
FIRES = (
    KERNEL
    + """\
void run(int* x, int n) {
    cudaMemset(x, 1, n * sizeof(int));  // L22
    step<<<1, 256>>>(x);
}
"""
)
RIGHT = (
    KERNEL
    + """\
void run(int* x, char* c, int n) {
    cudaMemset(x, 0, n * sizeof(int));
    cudaMemset(x, -1, n * sizeof(int));
    cudaMemset(x, 0xff, n * sizeof(int));
    cudaMemset(c, 1, n * sizeof(char));
    cudaMemset(c, 1, n);
    step<<<1, 256>>>(x);
}
"""
)
_WIDE = re.compile(
    r"sizeof\s*\(\s*(?:unsigned\s+)?(?:int|float|double|long|long long|short|size_t|u?int(?:16|32|64)_t)\s*\)"
)


@host_rule(
    id="L22",
    name="set-by-bytes",
    title="A number is written into each byte of wider elements",
    why="cudaMemset sets bytes: a 1 in each byte of an int is 16843009.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the value is 0 or all ones", "the elements have one byte, or their size is not written"),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def set_by_bytes(host: HostFunction) -> Iterator[Hit]:
    for call in host.named("cudaMemset", "cudaMemsetAsync"):
        if len(call.given) < 3:
            continue
        value, kind = literal_value(call.given[1]), _WIDE.search(text(call.given[2]))
        # 0x7f, 0x3f and their like are written for the large number that they make
        if kind is not None and value is not None and 0 < value < 255 and "x" not in text(call.given[1]).lower():
            yield hit(
                call.given[1],
                f"each byte becomes {text(call.given[1])}, not each element of {kind[0]} bytes",
            )
