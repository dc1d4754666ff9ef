"""R1: a thread's own array with an index that only the run knows."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom
from agent.analysis.coalescing import turn, unrolled
from agent.analysis.loops import Loop
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void histogram(const int* x, int* y, int n) {
    int bins[16] = {0};
    for (int i = threadIdx.x; i < n; i += blockDim.x) bins[x[i] & 15] += 1;  // R1
    for (int b = 0; b < 16; ++b) atomicAdd(&y[b], bins[b]);
}
"""
COUNT = """\
__global__ void polynomial(const float* x, float* y, int degree) {
    float power[8];
    power[0] = 1.0f;
    for (int k = 1; k < degree; ++k) power[k] = power[k - 1] * x[threadIdx.x];  // R1
    y[threadIdx.x] = power[0];
}
"""
FIXED = """\
#include "lengths.h"  // LENGTH may be a number
template <int N>
__global__ void sums(const float* x, float* y) {
    float part[8], more[N], last[LENGTH];
    for (int k = 0; k < LENGTH; ++k) last[k] = x[k];
    for (int k = 0; k < 8; ++k) part[k] = x[k * 32 + threadIdx.x];
    for (int k = 0; k < N; ++k) more[k] = part[0];
    for (int k = threadIdx.x; k < threadIdx.x + 8; ++k) part[k - threadIdx.x] += x[k];
    y[threadIdx.x] = part[0] + part[7] + more[N - 1] + last[0];
}
"""

EITHER = """\
__global__ void pick(const int* x, float* y) {
#if SHARED
    __shared__ float list[256];
    list[threadIdx.x] = y[threadIdx.x];
    y[threadIdx.x] = list[x[0] + threadIdx.x];
#else
    float list[4] = {};
    y[threadIdx.x] = list[3];
#endif
    y[threadIdx.x] += list[x[1]];
}
"""


@rule(
    id="R1",
    name="dynamic-local-array",
    title="A thread's own array is indexed by what only the run knows",
    why="Registers have no index: such an array lies in local memory, that is, in L1 and DRAM.",
    cost=Cost.TRAFFIC,
    severity=Severity.INFORMATION,
    silent_when=(
        "the index is a number, or runs through a loop whose length is known to the compiler",
        "the index cannot be followed",
        "branches of an #if declare the array twice, and one may be shared",
    ),
    fires=(FIRES, COUNT),
    silent=(FIXED, EITHER),
)
def dynamic_local_array(view: View) -> Iterator[Hit]:
    seen: set[str] = set()
    for access in view.facts.accesses:
        if access.root is not None and access.root.key not in seen and _dynamic(access, view):
            seen.add(access.root.key)
            yield hit(
                access.node,
                f"{access.name} is indexed by what only the run knows (`{text(access.node)[:60]}`), so it lies in "
                "local memory and not in registers",
                "a memory access for each use",
            )


def _dynamic(access: Access, view: View) -> bool:
    if access.space != "local" or access.root is None or not access.root.dims or access.root.pointer:
        return False
    if access.index is None or not view.facts.symbols.is_alone(access.root):
        return False
    loops = view.facts.loops_around(access.node)
    # a loop from the thread's number whose index starts at zero again is the same for all threads
    atoms = unrolled(access.index, loops).atoms
    return any(_counts(atom, loops, view) or _runtime(atom, view) for atom in atoms)


def _counts(atom: Atom, loops: tuple[Loop, ...], view: View) -> bool:
    """Whether it counts the turns of a loop whose length only the run knows."""
    loop = next((one for one in loops if atom in (one.atom, turn(one))), None)
    if loop is None:
        return False
    length = (loop.bound - loop.start).atoms if loop.step_kind == "+" else loop.bound.atoms | loop.start.atoms
    return bool(length) and all(_parameter(one, view) or _loaded(one) for one in length)


def _runtime(atom: Atom, view: View) -> bool:
    if "@" in atom.name or ":" in atom.name:
        return False
    return bool(atom.depends & {"memory", "threadIdx.x", "threadIdx.y"}) or _parameter(atom, view)


def _loaded(atom: Atom) -> bool:
    return bool(atom.depends) and "unknown" not in atom.depends


def _parameter(atom: Atom, view: View) -> bool:
    return any(parameter.name == atom.name for parameter in view.facts.kernel.parameters)
