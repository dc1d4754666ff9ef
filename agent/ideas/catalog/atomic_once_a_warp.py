"""Add up within a warp before the atomic, where all lanes send theirs to one float in shared memory."""

from agent.ideas.atomics.warps import Sent, once_a_warp, sent
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 4096, cols = 1024
//   buffer   x: f32[rows * cols] in normal
//   buffer   sums: f32[rows] out
//   launch   row_sums<<<rows, 256>>>(x, sums, cols)
__global__ void row_sums(const float* x, float* sums, int cols) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    float own = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) own += x[blockIdx.x * cols + c];
    atomicAdd(&total, own);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
"""


@catalogued(
    name="atomic-once-a-warp",
    title="Add up within a warp, and send one atomic where every lane sends one to shared memory",
    rationale=(
        "Shared memory has no atomic addition of floats in hardware: each is a loop that reads, adds and tries to "
        "swap, and where all lanes of a warp meet at one address all but one try again, 32 times over. Five shuffles "
        "give the warp's sum, and one lane sends it."
    ),
    needs=(
        "an `atomicAdd` of floats or doubles to one address in shared memory, whose result is not used",
        "a place that all lanes of a warp come to together: what decides on the way is the same for the whole block, "
        "but for an `if` around the atomic alone",
        "one-dimensional blocks of whole warps",
    ),
    effect="shared atomics to a thirty-second",
    risk="a sum of floats is added up in another order, as it was at random before",
    example=EXAMPLE,
)
def atomic_once_a_warp(view: View) -> Match | Refusal:
    found = sent(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: tuple[Sent, ...]) -> Match:
    spelled = source_text(view.document, found[0].call)
    return Match(
        line=view.document.line(found[0].call.start_byte),
        title="send one `atomicAdd` a warp to shared memory instead of one a thread",
        why=f"all lanes send `{spelled}` to one address, where each tries again until the others are through",
        expects=(Expectation("shared passes", 0.2, "shared atomics from one a thread to one a warp"),),
        variants=(
            Variant(
                "one atomic a warp",
                "shuffles add up the lanes' values, lane 0 sends the sum",
                Scope.DROP_IN,
                lambda: once_a_warp(view, found),
            ),
        ),
    )
