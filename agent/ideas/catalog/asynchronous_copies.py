"""Copy the next steps into further buffers while the block computes on this one."""

from math import prod

from agent.analysis.patterns.staged_loop import StagedLoop, staged_loop
from agent.analysis.symbols import Symbol
from agent.analysis.values import value
from agent.execution.architectures import architecture
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.pipeline.write import may_run_ahead, overlapped
from agent.ideas.product.extents import template_values
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View, evaluate

SHARED_BYTES = 48 * 1024
STAGES = (2, 3, 4)
SM, SMS = architecture("sm_90"), 132
REGISTERS, FEW_REGISTERS, SOME = 65536, 32, 8
"""Of an SM; of a thread beside its arrays; elements of an array whose extent is not known."""
HIDDEN = 1792
"""Threads at work on an SM from which on copies ahead cost more than they hide: 0.82x with 2048, on an H200."""
COPIED = (4, 8, 16)
"""Bytes that one cp.async copies (PTX ISA, "cp.async")."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 256 multiple 16
//   buffer   a: f32[n * n] in normal
//   buffer   b: f32[n * n] in normal
//   buffer   c: f32[n * n] out
//   launch   multiply<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n)
__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[16][16];
    __shared__ float b_tile[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        a_tile[y][x] = a[row * n + k + x];
        b_tile[y][x] = b[(k + y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
"""


@catalogued(
    name="asynchronous-copies",
    title="Copy the next steps into further buffers while the block computes",
    rationale=(
        "A block that stages a step, waits, computes and waits again leaves memory idle while it computes, and its "
        "arithmetic idle while it loads; only other blocks on the SM fill the gaps. cp.async (sm_80 and later) copies "
        "from global to shared memory without passing through registers, so the next steps can be on their way while "
        "the block works on this one, and one barrier a step is enough; older cards make plain copies of it."
    ),
    needs=(
        "a loop of staging, a barrier, work and a barrier; the staging copies elements of 4, 8 or 16 bytes and does "
        "nothing else",
        "the arrays are used in this loop only: written by the staging, read by the work",
        "two buffers fit into the shared memory of a block",
        "the SM holds too few threads to hide loads: large blocks of registers, or a small grid",
    ),
    effect="the latency of a step's loads is hidden behind the work on the step before",
    risk="several times the shared memory: fewer blocks may fit on an SM",
    example=EXAMPLE,
)
def asynchronous_copies(view: View) -> Match | Refusal:
    if not view.facts.barriers:
        return Refusal("no loop of it stages data in shared memory")
    if "::" in view.kernel.qualified_name:
        return Refusal("the kernel stands in a namespace, where the header of asynchronous copies cannot be included")
    reasons: list[str] = []
    for loop in view.facts.loops:
        if not any(loop.body.start_byte <= one.start_byte < loop.body.end_byte for one in view.facts.barriers):
            continue
        found = staged_loop(loop, view.facts)
        reason = found if isinstance(found, str) else _fits(found, view)
        if reason is None and not isinstance(found, str):
            return _match(found, view)
        reasons.append(f"the loop at line {view.document.line(loop.node.start_byte)}: {reason}")
    return Refusal(reasons[-1] if reasons else "no loop of it stages data in shared memory")


def _fits(found: StagedLoop, view: View) -> str | None:
    for copy in found.copies:
        if copy.source is None:
            continue
        one, two = view.element_bytes(copy.target), view.element_bytes(copy.source)
        if one not in COPIED or one != two or copy.target.element != copy.source.element:
            return f"elements of {copy.target.name} and {copy.source.name} are not copied as they are"
    if (total := _bytes(found, view)) is None:
        return f"how large {' or '.join(array.name for array in found.arrays)} is is not a number"
    if 2 * total > SHARED_BYTES:
        return f"two buffers of {total} bytes are more than a block has"
    if (busy := _resident(view, total)) >= HIDDEN:
        return f"the {busy} threads that an SM holds at a time hide each other's loads already, and buffers only cost"
    turns = _turns(found, view)
    return f"{turns} steps are too few for an overlap" if turns is not None and turns < 3 else None


def _bytes(found: StagedLoop, view: View) -> int | None:
    """Shared memory that one step takes; None where an extent is not a number."""
    known_names, total = _template_numbers(view), 0
    for access in {copy.target.root: copy.target for copy in found.copies}.values():
        assert access.root is not None
        extents = [
            None if dim is None else value(dim, view.facts.scope).evaluate(known_names) for dim in access.root.dims
        ]
        known = [extent for extent in extents if extent is not None]
        if access.root.extern or len(known) < len(extents):
            return None
        total += prod(known) * (view.element_bytes(access) or 16)
    return total


def _stages(found: StagedLoop, view: View) -> tuple[tuple[int, ...], int]:
    """How many buffers may be tried, and the most that leave the SM as many threads as two do."""
    total, turns = _bytes(found, view) or 0, _turns(found, view)
    fit = [one for one in STAGES if one * total <= SHARED_BYTES and (turns is None or one < turns)]
    fit = fit if may_run_ahead(found) else []
    stages = tuple(dict.fromkeys((2, *fit)))
    same = [one for one in stages if _resident(view, one * total) == _resident(view, 2 * total)]
    return stages, max(same)


def _resident(view: View, shared: int) -> int:
    """Threads that an SM works on at a time, by what its registers and its shared memory hold and the grid brings."""
    threads = view.threads
    grids = [[evaluate(extent, view.sizes) for extent in launch.grid] for launch in view.launches]
    blocks = max((prod(one for one in grid if isinstance(one, int)) for grid in grids), default=1)
    if threads is None:
        return 0
    registers = FEW_REGISTERS + sum(_elements(symbol, view) for symbol in view.facts.symbols.all())
    fit = min(SM.threads_per_sm // threads, SM.blocks_per_sm, REGISTERS // (registers * threads))
    if shared:
        fit = min(fit, SM.shared_per_sm // (shared + SM.shared_reserved))
    return min(fit, -(-blocks // SMS)) * threads


def _elements(symbol: Symbol, view: View) -> int:
    """Elements of a thread's own array, which lie in registers."""
    if symbol.space != "local" or not symbol.dims:
        return 0
    known = _template_numbers(view)
    extents = [None if dim is None else value(dim, view.facts.scope).evaluate(known) for dim in symbol.dims]
    return prod(SOME if extent is None else extent for extent in extents)


def _template_numbers(view: View) -> dict[str, int]:
    """The template's values, where all launches have the same."""
    found = [dict(template_values(view, launch)) for launch in view.launches]
    same = {name: one for name, one in found[0].items() if all(other.get(name) == one for other in found)}
    values = {name: evaluate(one, view.sizes) for name, one in same.items()}
    return {name: number for name, number in values.items() if isinstance(number, int)}


def _turns(found: StagedLoop, view: View) -> int | None:
    """How often the loop runs at the declared sizes."""
    values = {**view.parameters(view.launches[0]), **_template_numbers(view)}
    span = (found.loop.bound - found.loop.start).evaluate(values)
    step = found.loop.step.evaluate(values)
    return None if span is None or not step else max(0, -(-span // step))


def _match(found: StagedLoop, view: View) -> Match:
    stages, default = _stages(found, view)
    names = " and ".join(array.name for array in found.arrays)
    return Match(
        line=view.document.line(found.loop.node.start_byte),
        title="copy the next steps into further buffers while the block computes",
        why=f"the block fills {names}, waits for memory, computes, and only then asks for the next step",
        expects=(Expectation("latency", 0.7, "loads of a step hidden behind the work on those before"),),
        variants=(
            Variant(
                "buffers in turn",
                "cp.async into the buffers that are not being read; a barrier a step instead of two",
                Scope.DROP_IN,
                lambda stages: overlapped(view, found, stages),
                (Tunable("stages", stages, default, "buffers, one of which is worked on"),),
            ),
        ),
    )
