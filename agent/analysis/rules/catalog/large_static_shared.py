"""S4: more static shared memory than a kernel may have."""

from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.values import value
from agent.workload.dtypes import from_c_type, size_of

FIRES = """\
#define N 128
__global__ void product(const float* a, float* c) {
    __shared__ float left[N][N];  // S4
    left[threadIdx.y][threadIdx.x] = a[threadIdx.y * N + threadIdx.x];
    __syncthreads();
    c[threadIdx.y * N + threadIdx.x] = left[threadIdx.y][N - 1 - threadIdx.x];
}
"""
FITS = """\
template <int M>
__global__ void product(const float* a, float* c) {
    __shared__ float left[96][128];
    __shared__ float right[M][M];
    left[threadIdx.y][threadIdx.x] = right[threadIdx.y][threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    c[threadIdx.x] = left[threadIdx.y][127 - threadIdx.x] + right[0][threadIdx.x];
}
"""
NEWEST = """\
__device__ void commit(unsigned bar) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%0];" :: "r"(bar) : "memory");
}
__global__ void product(const float* a, float* c) {
    __shared__ float s[16384];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    commit(0);
    c[threadIdx.x] = s[255 - threadIdx.x];
}
"""
MOST = 48 * 1024


@rule(
    id="S4",
    name="large-static-shared",
    title="More than 48 KB of static shared memory",
    why="A kernel's static shared memory is limited to 48 KB; more does not link, but for targets like sm_100a.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the arrays whose size is known fit",
        "the file has instructions that only such targets have (tcgen05, wgmma): the limit is 227 KB there",
    ),
    fires=(FIRES,),
    silent=(FITS, NEWEST),
)
def large_static_shared(view: View) -> Iterator[Hit]:
    sizes = [(symbol, _bytes(symbol, view)) for symbol in view.facts.symbols.all() if symbol.space == "shared"]
    known = [(symbol, size) for symbol, size in sizes if size is not None]
    # arrays of different blocks may share their place
    outermost = [(symbol, size) for symbol, size in known if symbol.scope == view.facts.body]
    total = sum(size for _, size in outermost)
    if total > MOST and not view.newest:
        largest = max(outermost, key=lambda one: one[1])[0]
        yield hit(
            largest.declarator,
            f"{total} bytes of static shared memory, {MOST} is the most: use dynamic shared memory and "
            "cudaFuncAttributeMaxDynamicSharedMemorySize",
        )


def _bytes(symbol: Symbol, view: View) -> int | None:
    dtype = from_c_type(symbol.type)
    if dtype is None or symbol.extern or symbol.pointer:
        return None
    total = size_of(dtype)
    for dim in symbol.dims:
        extent = None if dim is None else value(dim, view.facts.scope).constant
        if extent is None or extent < 0:
            return None
        total *= extent
    return total
