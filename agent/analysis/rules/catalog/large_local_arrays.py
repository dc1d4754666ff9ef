"""R2: local arrays that no thread's registers can hold."""

from collections.abc import Iterator
from math import prod

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.values import value
from agent.workload.dtypes import from_c_type, size_of

FIRES = """\
__global__ void sort(const float* x, float* y) {
    float own[512];  // R2
    for (int k = 0; k < 512; ++k) own[k] = x[threadIdx.x * 512 + k];
    for (int k = 0; k < 512; ++k) y[threadIdx.x * 512 + k] = own[511 - k];
}
"""
SMALL = """\
__global__ void sort(const float* x, float* y) {
    float own[64];
    static __shared__ float tile[4096];
    for (int k = 0; k < 64; ++k) own[k] = x[k];
    tile[threadIdx.x] = own[3];
    y[threadIdx.x] = own[63] + tile[0];
}
"""
MOST_WORDS = 255


@rule(
    id="R2",
    name="large-local-arrays",
    title="A thread's arrays are larger than its registers",
    why="A thread has 255 registers of 32 bits at most; a larger array lies in local memory, that is, in L1 and DRAM.",
    cost=Cost.TRAFFIC,
    severity=Severity.INFORMATION,
    silent_when=("the extents or the type are not known", "no array alone is larger: their lives may not overlap"),
    fires=(FIRES,),
    silent=(SMALL,),
)
def large_local_arrays(view: View) -> Iterator[Hit]:
    for symbol in view.facts.symbols.all():
        words = _words(symbol, view)
        if words is not None and words > MOST_WORDS:
            yield hit(
                symbol.declarator,
                f"{symbol.name} has {4 * words} bytes for each thread: more than the 1020 that registers hold, so it "
                "lies in local memory",
                "a memory access for each use",
            )


def _words(symbol: Symbol, view: View) -> int | None:
    if symbol.space != "local" or not symbol.dims or symbol.pointer or symbol.const or symbol.extern:
        return None
    dtype = from_c_type(symbol.type)
    extents = [value(dim, view.facts.scope).constant if dim is not None else None for dim in symbol.dims]
    known = [extent for extent in extents if extent is not None]
    if dtype is None or len(known) < len(extents):
        return None
    return -(-prod(known) * size_of(dtype) // 4)
