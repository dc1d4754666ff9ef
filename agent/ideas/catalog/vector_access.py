"""Let each thread take several neighbouring elements, loaded and stored by one wide instruction."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.vectors.site import BYTES, Site, sites
from agent.ideas.vectors.write import vectorised
from agent.ideas.view import View
from agent.ideas.whole_blocks import with_whole_blocks

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 24
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   gelu<<<(n + 255) / 256, 256>>>(x, y, n)
__global__ void gelu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
"""


@catalogued(
    name="vector-access",
    title="Load and store several neighbouring elements at once",
    rationale=(
        "A thread that moves 4 bytes (or 2, or 1) an instruction leaves the load/store units, the instruction issue "
        "and the memory requests in flight busy with too little: memory bandwidth is reached with fewer threads, and "
        "more surely, when each request is 16 bytes wide. Elements that all threads walk side by side can be given to "
        "one thread in packs. Where a pack is not whole or not aligned, which is tested as it runs, its elements are "
        "moved one by one."
    ),
    needs=(
        "one coordinate of the grid, or the variable of a loop in steps of the grid, numbers the elements; the "
        "thread's index is used for nothing else",
        "arrays are read or written at that number plus something that does not depend on it; whatever is written is "
        "written side by side",
        "what is written lies in no buffer that the kernel touches elsewhere",
        "rows start aligned at the declared sizes; every launch reaches the bound that the kernel tests",
    ),
    effect="requests to a half, a quarter or less; instructions fall too",
    risk="fewer threads, and more registers for each; sizes whose rows are not aligned gain nothing",
    example=EXAMPLE,
)
def vector_access(view: View) -> Match | Refusal:
    found = sites(view)
    if not isinstance(found, str):
        return _match(view, found)
    whole = with_whole_blocks(view)
    bounded = sites(whole) if whole is not None else found
    if whole is None or isinstance(bounded, str) or any(site.limit is None or site.loop for site in bounded):
        return Refusal(found)
    return _match(whole, bounded)


def _match(view: View, found: tuple[Site, ...]) -> Match:
    groups = [group for site in found for group in site.groups]
    loops, widths = found[0].loop is not None, found[0].widths
    widest = max(group.bytes for group in groups)
    default = min(8, max(2, BYTES // widest))  # bytes would fill an access by 16, and the registers with them
    default = default if default in widths else widths[-1]
    spelled = " and ".join(f"`{source_text(view.document, group.accesses[0].node)}`" for group in groups[:3])
    narrow = min(group.bytes for group in groups)
    return Match(
        line=view.document.line(groups[0].accesses[0].node.start_byte),
        title=f"give each thread {default} neighbouring elements, and move them by one instruction",
        why=(
            f"each thread moves {narrow} bytes at a time ({spelled}), where one instruction moves up to {BYTES}; "
            "neighbouring threads walk side by side, so packs of elements can take their place"
        ),
        expects=(Expectation("requests", round(1 / default, 2), f"requests -{round(100 * (1 - 1 / default))} %"),),
        variants=(
            Variant(
                "packs in the loop" if loops else "packs, fewer threads",
                "the loop takes a pack a turn, in the same launch"
                if loops
                else "as many times fewer threads as a pack has elements",
                Scope.DROP_IN if loops else Scope.RELAUNCH,
                lambda width: vectorised(view, found, width),
                (Tunable("width", widths, default, "neighbouring elements a thread"),),
            ),
        ),
    )
