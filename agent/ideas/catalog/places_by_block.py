"""Take places from a counter for a whole block by one atomic."""

from agent.ideas.atomics.places import Places, by_block, places
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 16777216
//   buffer   x: f32[n] in normal
//   buffer   kept: f32[n] out
//   buffer   count: i32[1] inout zeros
//   compare  kept multiset
//   launch   positive<<<(n + 255) / 256, 256>>>(x, kept, count, n)
__global__ void positive(const float* x, float* kept, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (v > 0.0f) {
        int place = atomicAdd(count, 1);
        kept[place] = v;
    }
}
"""


@catalogued(
    name="places-by-block",
    title="Take places from a counter for a whole block by one atomic",
    rationale=(
        "Threads that append to a list take their places from one counter, by atomics that are done one after the "
        "other: the compiler gathers those of a warp at most. A ballot in each warp and a sum over the warps tell each "
        "thread of a block its rank; one thread asks for as many places as the block needs. Neighbours then write next "
        "to each other as well."
    ),
    needs=(
        "one `atomicAdd(counter, 1)` whose result is used, at an address that is the same for all threads of a block, "
        "and that nothing else touches",
        "no loop around it; threads leave before it by plain tests only",
        "one-dimensional blocks of whole warps",
    ),
    effect="atomics from one a warp to one a block",
    risk="two barriers; the list comes out in another order, as it was at random before",
    example=EXAMPLE,
)
def places_by_block(view: View) -> Match | Refusal:
    found = places(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Places) -> Match:
    spelled = source_text(view.document, found.call.node)
    return Match(
        line=view.document.line(found.call.node.start_byte),
        title=f"take places from `{found.root.name}` for a whole block at once",
        why=f"each warp sends `{spelled}` to one address, where they are done one after the other",
        expects=(Expectation("atomics", 32 / (view.block[0] or 32), "atomics from one a warp to one a block"),),
        variants=(
            Variant(
                "one atomic a block",
                "ranks by ballot, one thread asks for all",
                Scope.DROP_IN,
                lambda: by_block(view, found),
            ),
        ),
    )
