"""All pairs: read the list of other elements once for each block, a tile at a time."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.pairs.site import Site, site
from agent.ideas.pairs.tiles import Tiles, staged, tiles
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 65536
//   buffer   x: f32[n] in normal
//   buffer   force: f32[n] out
//   launch   attract<<<(n + 255) / 256, 256>>>(x, force, n)
__global__ void attract(const float* x, float* force, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float mine = x[i];
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) {
        float apart = x[j] - mine;
        sum += apart / (fabsf(apart * apart * apart) + 0.01f);
    }
    force[i] = sum;
}
"""


@catalogued(
    name="pairs-in-shared-memory",
    title="Meet all other elements in shared memory, a tile at a time",
    rationale=(
        "Where each thread meets every element of a list, all warps of a block ask global memory for the same element "
        "in every turn, one request each. A block that reads a tile together makes one coalesced request for 32 "
        "elements, and the turns then read shared memory, which answers sooner and at a steady rate."
    ),
    needs=(
        "a one-dimensional launch of whole warps with one index, and one loop in which the elements read in a turn are "
        "the same for all threads and neighbours from turn to turn",
        "the loop only adds up, or keeps a largest or smallest value, and the list is not written",
        "threads leave before the loop by a bound of their index alone",
    ),
    effect="global requests of the loop to 1/32",
    risk="two barriers for each tile; where all of the list stays in L1, little is gained",
    example=EXAMPLE,
    conflicts=("pairs-over-lanes",),
)
def pairs_in_shared_memory(view: View) -> Match | Refusal:
    found = site(view)
    if isinstance(found, str):
        return Refusal(found)
    if 0 < found.turns < found.threads:
        return Refusal(f"{found.turns} turns do not fill one tile of {found.threads}")
    made = tiles(found)
    return Refusal(made) if isinstance(made, str) else _match(found, made)


def _match(found: Site, made: Tiles) -> Match:
    view = found.view
    spelled = " and ".join(f"`{source_text(view.document, one.node)}`" for one in made.streams)
    return Match(
        line=view.document.line(found.pairs.loop.node.start_byte),
        title="stage the list in shared memory, as many elements as the block has threads at a time",
        why=f"all {found.threads // 32} warps of a block read the same {spelled} in each turn",
        expects=(
            Expectation("requests", 0.1, "global requests of the loop to 1/32"),
            Expectation("latency", 0.9, "a turn's reads answered by shared memory"),
        ),
        variants=(
            Variant(
                "tiles in shared memory",
                "the threads read a tile together, wait, and walk over it in shared memory",
                Scope.DROP_IN,
                lambda: staged(made),
            ),
        ),
    )
