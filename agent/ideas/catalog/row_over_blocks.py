"""Let many blocks share a row that one block walks over, by a launch for each reduction over the row."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rowsplit.site import MULTIPROCESSORS, RowSplit, row_split
from agent.ideas.rowsplit.write import shared_by_blocks
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 8, cols = 4194304
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   center<<<rows, 256>>>(x, y, cols)
__global__ void center(const float* x, float* y, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    const float* in = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int i = t; i < cols; i += blockDim.x) sum += in[i];
    s[t] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    float mean = s[0] / cols;
    for (int i = t; i < cols; i += blockDim.x) y[(size_t)blockIdx.x * cols + i] = in[i] - mean;
}
"""


@catalogued(
    name="row-over-blocks",
    title="Many blocks for a long row, with a launch for each reduction over it",
    rationale=(
        "One block runs on one multiprocessor, which draws a hundredth of the card's bandwidth. With fewer blocks than "
        "multiprocessors the others stand idle, however long the rows are. Blocks cannot wait for each other within a "
        "launch, but launches do: each reduction over the row becomes a launch in which many blocks leave partial "
        "results, and the next launch begins by putting them together."
    ),
    needs=(
        "few blocks, and rows long enough to leave every thread several turns after they are dealt out",
        "loops side by side in which the threads of a block take turns along the row; each turn only folds into "
        "scalars that start neutral, or writes an element of its own",
        "nothing that one of the blocks writes is read by another in the same launch",
        "besides that, memory is only written behind the last reduction",
    ),
    effect="the time of a launch falls towards what the traffic takes on the whole card",
    risk="sums are added up in another order; some scratch memory and a few more launches",
    example=EXAMPLE,
)
def row_over_blocks(view: View) -> Match | Refusal:
    found = row_split(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: RowSplit) -> Match:
    first = found.passes[0].walk.node
    launches = len(found.passes) + 1
    blocks = "1 block" if found.rows == 1 else f"{found.rows} blocks"
    tunable = Tunable("parts", found.parts, found.best, "blocks that share a row")
    return Match(
        line=view.document.line(first.start_byte),
        title=f"deal each row out to many blocks, in {launches} launches",
        why=(
            f"{blocks} walk over {found.length} elements each, and the card has {MULTIPROCESSORS} multiprocessors; "
            "partial results of many blocks and a launch to put them together use all of them"
        ),
        expects=(
            Expectation("time", round(1 / found.best, 3), f"blocks {found.rows} -> {found.rows * found.best}"),
            Expectation("launches", float(launches), f"launches 1 -> {launches}"),
        ),
        variants=(
            Variant(
                "a launch for each reduction",
                "each pass over the row is a launch that leaves partial results, which the next one puts together",
                Scope.PLAN,
                lambda parts: shared_by_blocks(view, found, parts),
                (tunable,),
            ),
        ),
    )
