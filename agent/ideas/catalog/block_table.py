"""Work out once a block what is the same for all its threads: terms of a loop, and tables that each thread fills."""

from agent.analysis.syntax import text
from agent.ideas.blocktable.site import Table, tables
from agent.ideas.blocktable.write import tabled
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.tables.match import filled_once
from agent.ideas.tables.site import table
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 20
//   size     taps = 64
//   buffer   x: f32[n + taps] in normal
//   buffer   y: f32[n] out
//   launch   smooth<<<(n + 255) / 256, 256>>>(x, y, n, taps, 12.5)
__global__ void smooth(const float* x, float* y, int n, int taps, float spread) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < taps; ++k) {
        float weight = expf(-k * k / (2.0f * spread));
        sum += weight * x[i + k];
    }
    y[i] = sum;
}
"""


@catalogued(
    name="block-table",
    title="Work out once a block what is the same for all its threads",
    rationale=(
        "A power, an exponential or a sine is ten to fifty instructions. Where its arguments hang on a loop's counter "
        "and on values that are the same for all threads, every thread works out the same numbers, turn for turn, and "
        "the compiler cannot see beyond one thread. A block's threads can share the turns between them and keep the "
        "values in shared memory: a turn then takes one load, which all lanes of a warp get at once. An array of a "
        "thread's own that all threads fill alike and read at places which only the data know is such a table already: "
        "it cannot stay in registers, and every thread writes its own copy to local memory, which is memory of the "
        "card behind L1."
    ),
    needs=(
        "a call of such a function in one or two loops that count up by one, between bounds that are the same for the "
        "whole block; of a power or a function of doubles also one that hangs on no counter",
        "arguments that hang on the counters and on parameters or locals that keep their value, and on no memory",
        "a place before any thread leaves where all of that is known",
        "a table of 16 KiB at most at the declared sizes; turns beyond it are worked out as before",
        "or a local array of 8 elements to 8 KB, of the kernel or of a device function that it calls, declared at the "
        "top of the body and filled right there from constants, its own variables and (in the kernel) scalar "
        "parameters, and after that only read, element by element, at an index that the compiler does not know",
    ),
    effect="instructions in the loop, or stores to local memory; one barrier more",
    risk=(
        "shared memory may limit how many blocks an SM holds; a loop that few threads enter gains nothing; a local "
        "table is filled by one thread, for which the block waits"
    ),
    example=EXAMPLE,
)
def block_table(view: View) -> Match | Refusal:
    own = table(view)
    if not isinstance(own, str):
        return filled_once(view, own)
    found = tables(view)
    return Refusal(f"{found}; {own}") if isinstance(found, str) else _match(view, found)


def _match(view: View, found: tuple[Table, ...]) -> Match:
    entries = [entry for table in found for entry in table.entries]
    spelled = ", ".join(f"`{source_text(view.document, entry.places[0])}`" for entry in entries[:3])
    counters = dict.fromkeys(text(loop.variable.declarator) for table in found for loop in table.loops)
    return Match(
        line=view.document.line(entries[0].places[0].start_byte),
        title=f"work {spelled} out once for the whole block",
        why=(
            f"every thread works out {spelled}{' for each ' if counters else ''}{' and '.join(counters)}, and all "
            "threads of a block get the same"
        ),
        expects=(Expectation("instructions", 0.6, "instructions of the loop that hang on its counter alone"),),
        variants=(
            Variant(
                "table in shared memory",
                "the block's threads work the values out once, each turn looks them up",
                Scope.DROP_IN,
                lambda: tabled(view, found),
            ),
        ),
    )
