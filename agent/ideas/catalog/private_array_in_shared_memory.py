"""Keep a small array of each thread's own in a column of shared memory, where data decide which element is wanted."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.privates.site import Private, private_array
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, fresh_local, indented, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 20
//   buffer   x: u8[n * 64] in integers(0, 8)
//   buffer   top: i32[n] out
//   launch   most<<<(n + 127) / 128, 128>>>(x, top, n)
__global__ void most(const unsigned char* x, int* top, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int count[8];
    for (int k = 0; k < 8; ++k) count[k] = 0;
    for (int j = 0; j < 64; ++j) count[x[j * n + i] % 8]++;
    int best = 0;
    for (int k = 1; k < 8; ++k) {
        if (count[k] > count[best]) best = k;
    }
    top[i] = best;
}
"""


@catalogued(
    name="private-array-in-shared-memory",
    title="Keep a thread's own array in a column of shared memory",
    rationale=(
        "An array of a thread's own whose index the data decide lies in local memory. The same element of all lanes is "
        "one line of L1 there; where the lanes want different elements, one access takes as many lines. In shared "
        "memory a thread's elements can lie in a column, one bank for each lane: whatever elements they want, one pass "
        "serves them all. No thread sees another's, so that nothing has to be waited for."
    ),
    needs=(
        "a local array of 4 elements or more and of at most 128 bytes a thread, declared alone and without contents, "
        "used element by element only",
        "an index that is not the same for all threads",
        "a block of a fixed number of threads, whose arrays fit into 48 KB",
    ),
    effect="an access to the array takes one pass, and no line of L1",
    risk="shared memory for each thread may lower the occupancy",
    example=EXAMPLE,
)
def private_array_in_shared_memory(view: View) -> Match | Refusal:
    found = private_array(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Private) -> Match:
    name = found.array.name
    spelled = source_text(view.document, found.apart)
    lines = min(32, max(1, found.elements // found.spread))
    return Match(
        line=view.document.line(found.array.declarator.start_byte),
        title=f"keep {name} in shared memory, a column for each thread",
        why=(
            f"the lanes of a warp want different elements of their own {name} at `{spelled}`: up to {lines} lines of "
            "local memory, where shared memory takes one pass"
        ),
        expects=(Expectation("time", 0.6, f"an access to {name} from up to {lines} lines of L1 to one pass"),),
        variants=(
            Variant(
                "a column for each thread",
                f"{found.bytes >> 10} KB of shared memory for a block",
                Scope.DROP_IN,
                lambda: _written(view, found),
            ),
        ),
    )


def _written(view: View, found: Private) -> Rewrite:
    document, name = view.document, found.array.name
    column = fresh_local("column", document, view.kernel)
    dims = "".join(f"[{source_text(document, dim)}]" for dim in found.array.dims if dim is not None)
    row = "threadIdx.y" if view.block[2] == 1 else "(threadIdx.z * blockDim.y + threadIdx.y)"
    flat = view.block[1] == view.block[2] == 1
    thread = "threadIdx.x" if flat else f"{row} * blockDim.x + threadIdx.x"
    own = thread if found.spread == 1 else f"{found.spread} * {thread}" if flat else f"{found.spread} * ({thread})"
    lines = (
        f"// A column of {name} for each thread: whichever elements the lanes of a warp want, each has its own bank.\n"
        f"__shared__ {found.array.type} {name}{dims}[{found.spread * (view.threads or 1)}];\n"
        f"const int {column} = {own};"
    )
    return Rewrite(
        (
            replace(found.declared, indented(document, found.declared, lines)),
            *(Edit(Span(use.end_byte, use.end_byte), f"[{column}]".encode()) for use in found.uses),
        )
    )
