"""L20: a copy, or a fill, of another number of bytes than its buffer has."""

import re
from collections.abc import Iterator

from agent.analysis.host import Call, HostFunction, squeezed, variable
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import host_rule
from agent.analysis.syntax import text

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(int n) {
    float *h = (float*)malloc(n * sizeof(float)), *x;
    cudaMalloc(&x, n * sizeof(float));
    cudaMemcpy(x, h, n, cudaMemcpyHostToDevice);  // L20
    step<<<1, 256>>>(x);
    cudaMemcpy(h, x, sizeof(h), cudaMemcpyDeviceToHost);  // L20
    cudaMemset(x, 0, n);  // L20
    cudaMemset(x, 0, n * sizeof(float) - 1);  // L20
}
"""
)
RIGHT = (
    KERNEL
    + """\
void run(int n, int bytes) {
    float *h = (float*)malloc(n * sizeof(float)), *x, small[8];
    cudaMalloc(&x, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(x, h, sizeof(float) * n, cudaMemcpyHostToDevice);
    cudaMemcpy(x, small, sizeof(small), cudaMemcpyHostToDevice);
    step<<<1, 256>>>(x);
    cudaMemset(x, 0, n * sizeof(float));
    cudaMemcpy(h, x, bytes, cudaMemcpyDeviceToHost);
}
"""
)
_SIZEOF = re.compile(r"\*sizeof\([^()]*\)|sizeof\([^()]*\)\*")
_BYTES = re.compile(r"sizeof\((?:un)?(?:signed)?(?:char|bool|u?int8_t|byte|std::byte|uchar|u8)\)")


@host_rule(
    id="L20",
    name="copy-size",
    title="A copy or a fill counts elements, or a pointer, in place of bytes",
    why="The third argument is in bytes: without sizeof a part is left out, and sizeof of a pointer is 8. What a fill "
    "leaves out holds whatever was there before.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the buffer was not allocated as a number times sizeof in this function", "elements have one byte"),
    fires=(FIRES,),
    silent=(RIGHT,),
)
def copy_size(host: HostFunction) -> Iterator[Hit]:
    for call in host.named("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync"):
        fills = "Memset" in call.name
        if len(call.given) < (3 if fills else 4):
            continue
        buffers = call.given[:1] if fills else call.given[:2]
        name = next((one for one in map(variable, buffers) if one and _lacks(call, one, host)), None)
        if name is not None:
            yield hit(
                call.given[2],
                f"{name} has {host.sizes[name]} bytes; `{text(call.given[2])}` is another number of bytes",
            )


def _lacks(call: Call, name: str, host: HostFunction) -> bool:
    """Whether a size is that of an allocation without its sizeof, or is the size of the pointer itself."""
    size, asked = squeezed(call.given[2]), host.sizes.get(name, "")
    if (
        _SIZEOF.search(asked) is None
        or _BYTES.search(asked)
        or host.places.get(name) not in ("device", "pageable", "pinned", "managed")
    ):
        return False
    short = re.fullmatch(rf"{re.escape(asked)}-\d+", size) is not None
    return short or size == f"sizeof({name})" or (_SIZEOF.sub("", asked).strip("()") == size.strip("()") != "")
