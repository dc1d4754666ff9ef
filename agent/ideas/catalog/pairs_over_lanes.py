"""All pairs: let several lanes share a thread's loop over all other elements."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.pairs.lanes import shared_by_lanes
from agent.ideas.pairs.site import Site, site
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View, evaluate

CHOICES = (2, 4, 8, 16, 32)
FEWEST_TURNS = 16
"""Turns that each lane keeps at least, or the shuffles behind the loop cost more than they bring."""

ENOUGH = 132 * 1024
"""Threads that hide the latency of arithmetic and cache on an H200: 8 warps for each of the 4 schedulers of its 132
SMs."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 8192
//   buffer   x: f32[n] in normal
//   buffer   force: f32[n] out
//   launch   attract<<<(n + 127) / 128, 128>>>(x, force, n)
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
    name="pairs-over-lanes",
    title="Let several lanes share a thread's loop over all other elements",
    rationale=(
        "Where each thread meets every element of a list, some ten thousand elements make as many threads: a few warps "
        "on each SM, which wait for one another's divisions and loads. With several lanes for each element there are "
        "as many times more warps to switch between; neighbouring lanes read neighbouring elements instead of all the "
        "same one, and a few shuffles add up their parts."
    ),
    needs=(
        "a one-dimensional launch of whole warps with one index, and one loop in which the elements read in a turn are "
        "the same for all threads",
        "the loop only adds up, or keeps a largest or smallest value, and reads these nowhere else",
        "fewer threads than hide latency on a large card, and enough turns for each lane",
    ),
    effect="as many times more warps as lanes share an element; a turn's loads serve several elements of the list",
    risk="a sum of floats is added up in another order, so its last bits change",
    example=EXAMPLE,
)
def pairs_over_lanes(view: View) -> Match | Refusal:
    found = site(view)
    if isinstance(found, str):
        return Refusal(found)
    threads = _threads(found)
    lanes = [one for one in CHOICES if not found.turns or found.turns >= one * FEWEST_TURNS]
    if not lanes:
        return Refusal(f"{found.turns} turns of the loop are too few to be shared")
    if threads * 2 > ENOUGH:
        return Refusal(f"{threads} threads are enough to hide latency as they are")
    return _match(found, threads, tuple(lanes))


def _threads(found: Site) -> int:
    """Threads of the largest launch at the declared sizes; 0 where that is not known."""
    blocks = [evaluate(launch.grid[0], found.view.sizes) for launch in found.view.launches]
    return max((one * found.threads for one in blocks if isinstance(one, int)), default=0)


def _match(found: Site, threads: int, lanes: tuple[int, ...]) -> Match:
    view = found.view
    first = next((one for one in lanes if threads * one >= ENOUGH), lanes[-1])
    stream = source_text(view.document, found.pairs.streams[0].node)
    return Match(
        line=view.document.line(found.pairs.loop.node.start_byte),
        title="let several lanes share the loop over all other elements",
        why=(
            f"{threads} threads walk over all of `{stream}` alone, too few to hide how long each turn takes; {first} "
            "lanes for each would"
        ),
        expects=(
            Expectation("latency", round(1 / first, 3), f"turns one after another to 1/{first}"),
            Expectation("threads", float(first), f"{first} times the threads"),
        ),
        variants=(
            Variant(
                "lanes of a warp",
                "neighbouring lanes take neighbouring elements of the list and add up by shuffles",
                Scope.RELAUNCH,
                lambda lanes: shared_by_lanes(found, lanes),
                (Tunable("lanes", lanes, first, "lanes that share an element"),),
            ),
        ),
    )
