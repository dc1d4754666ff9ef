"""Fill a table that is the same for all threads once a block, in shared memory."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.tables.site import Table, table
from agent.ideas.tables.write import once_a_block
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 22
//   buffer   x: f32[n] in uniform(0, 1)
//   buffer   y: f32[n] out
//   launch   shade<<<(n + 255) / 256, 256>>>(x, y, n, 0.02)
__global__ void shade(const float* x, float* y, int n, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float level = 0.0f;
    float ramp[64];
    for (int k = 0; k < 64; ++k) {
        level += step * (k % 5);
        ramp[k] = level;
    }
    y[i] = ramp[(int)(x[i] * 63.0f)];
}
"""


@catalogued(
    name="table-once-a-block",
    title="Fill a table that is the same for all threads once a block, in shared memory",
    rationale=(
        "An array of a thread's own that is read at places which only the data know cannot stay in registers: it lies "
        "in local memory, which is memory of the card behind L1, and every thread writes its own copy of it first. "
        "Where what is written is the same for all threads, one copy in shared memory serves the block."
    ),
    needs=(
        "a local array, of the kernel or of a device function that it calls, declared at the top of the body and "
        "filled right there",
        "the filling uses constants, its own variables and (in the kernel) scalar parameters; functions that it calls "
        "only write what they are handed",
        "after that the array is only read, element by element, at an index that the compiler does not know",
        "8 elements to 8 KB",
    ),
    effect="stores to local memory fall away; its reads become reads of shared memory",
    risk="the block waits for one thread at its beginning: for a short table that may take longer",
    example=EXAMPLE,
)
def table_once_a_block(view: View) -> Match | Refusal:
    found = table(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Table) -> Match:
    threads = view.threads or 256
    return Match(
        line=view.document.line(found.array.declarator.start_byte),
        title=f"fill {found.array.name} once a block, in shared memory",
        why=(
            f"every thread writes the same {found.elements} elements of {found.array.name} to local memory, as "
            f"`{source_text(view.document, found.read)}` is read at an index that only the data know"
        ),
        expects=(
            Expectation(
                "DRAM bytes", 0.5, f"no local memory for {found.array.name}: {found.bytes * threads >> 10} KB a block"
            ),
        ),
        variants=(
            Variant(
                "one thread fills it",
                "one thread of each block fills the table before all others read it",
                Scope.DROP_IN,
                lambda: once_a_block(view, found),
            ),
        ),
    )
