"""Give each row to several lanes of a warp, or to a block, where one thread walks over it alone."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.rowwalk.site import RowWalk, along_row, row_walk
from agent.ideas.rowwalk.write import Team, best_lanes, lanes_of_choice, shared_rows
from agent.ideas.view import View

LONG = 1024
"""Elements in a row from which a whole block has enough to do with it."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 16384, cols = 4096
//   buffer   a: f32[rows * cols] in normal
//   buffer   x: f32[cols] in normal
//   buffer   y: f32[rows] out
//   launch   matvec<<<(rows + 127) / 128, 128>>>(a, x, y, rows, cols)
__global__ void matvec(const float* a, const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) sum += a[row * cols + i] * x[i];
    y[row] = sum;
}
"""


@catalogued(
    name="team-for-each-row",
    title="Several lanes or a block for each row, where one thread walks over it",
    rationale=(
        "Where each thread walks over a row of its own, the 32 threads of a warp read 32 rows at once: each request "
        "touches 32 sectors and uses 4 bytes of each, and hopes that the rest is still in cache when the loop comes "
        "back for it. Lanes that share a row read neighbouring elements, wait for one row and not for the longest of "
        "32, and there are as many times more threads to hide latency with. A few shuffles put their results together."
    ),
    needs=(
        "one-dimensional launches with a block of whole warps; the thread's index in the grid is used as a row only",
        "loops that run up by one along neighbouring elements of the row, also with loaded bounds; each turn only "
        "folds into scalars (sum, product, maximum, minimum, bitwise) or writes an element of its own",
        "no access in these loops that neighbouring threads share sectors of now",
        "nothing but mathematical functions is called, and no memory is shared between threads",
    ),
    effect="sectors per request to a quarter or an eighth; as many times more threads as share a row",
    risk="a sum of floats is added up in another order; short rows leave lanes idle",
    example=EXAMPLE,
)
def team_for_each_row(view: View) -> Match | Refusal:
    found = row_walk(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: RowWalk) -> Match:
    threads = view.block[0]
    assert threads is not None
    stream = along_row(view, found)
    spelled = source_text(view.document, stream.node)
    length = "" if found.length is None else f" of about {found.length:.0f} elements"
    return Match(
        line=view.document.line(found.walks[0].node.start_byte),
        title="let several lanes share a row that one thread walks over now",
        why=(
            f"each thread walks over a row{length} alone, so `{spelled}` touches another row in every lane of a warp; "
            "lanes that share a row read neighbouring elements"
        ),
        expects=(
            Expectation("sectors", 0.25, "sectors per request to a quarter or less"),
            Expectation("threads", 32.0, "up to 32 times the threads"),
        ),
        variants=_variants(view, found, threads),
    )


def _variants(view: View, found: RowWalk, threads: int) -> tuple[Variant, ...]:
    lanes = Tunable(
        "lanes", lanes_of_choice(found.length, threads), best_lanes(found.length, threads), "lanes that share a row"
    )
    some = Variant(
        "lanes of a warp",
        "as many lanes as a row can keep busy share it, and put their results together by shuffles",
        Scope.RELAUNCH,
        lambda lanes: shared_rows(view, found, Team(lanes, block=False)),
        (lanes,),
    )
    if found.length is None or found.length < LONG or threads == 32:
        return (some,)
    block = Variant(
        "a block",
        "a whole block shares a row: enough threads even where there are few rows",
        Scope.RELAUNCH,
        lambda: shared_rows(view, found, Team(threads, block=True)),
    )
    return some, block
