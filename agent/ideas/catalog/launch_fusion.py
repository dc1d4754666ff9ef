"""Do the work of an elementwise launch where the launch before it stores each element."""

from agent.ideas.fusion.pair import Pair, pair
from agent.ideas.fusion.write import fused
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 8192, cols = 4096
//   buffer   x: f32[rows * cols] in normal
//   buffer   y: f32[rows * cols] out
//   launch   double_row<<<dim3((cols + 255) / 256, rows), 256>>>(x, y, cols)
//   launch   clamp<<<(rows * cols + 255) / 256, 256>>>(y, rows * cols)
__global__ void double_row(const float* x, float* y, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float value = 2.0f * x[blockIdx.y * cols + col];
    y[blockIdx.y * cols + col] = value;
}

__global__ void clamp(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fminf(fmaxf(y[i], 0.0f), 6.0f);
}
"""


@catalogued(
    name="launch-fusion",
    title="Do the next launch's elementwise work where each element is stored",
    rationale=(
        "A kernel that treats each element of an array by itself reads back from DRAM what the kernel before it has "
        "just had in a register. Where each element is written by one thread of the first launch, that thread can do "
        "the second one's work on it as well: the array crosses DRAM once or twice less, and a launch goes."
    ),
    needs=(
        "the second launch follows at once and touches only elements at each thread's own index",
        "the first kernel writes each of these elements exactly once, shown by its index's mixed radix and its bounds",
        "nothing else that the second one reads or writes is under way in the first",
    ),
    effect="one read of the array less, and one write less where the work is in place; one launch less",
    risk="the first kernel needs a few more registers; other users of the second kernel are not affected",
    example=EXAMPLE,
)
def launch_fusion(view: View) -> Match | Refusal:
    found = pair(view)
    return Refusal(found) if isinstance(found, str) else _match(found, view)


def _match(found: Pair, view: View) -> Match:
    root, name = found.store.name, found.consumer.name
    less = 2 if found.in_place else 1
    return Match(
        line=view.document.line(found.store.node.start_byte),
        title=f"do the work of {name} where {view.kernel.name} stores each element",
        why=(
            f"{name} is launched right after {view.kernel.name} and works on each element of {root} by itself, which "
            f"one thread has just written"
        ),
        expects=(Expectation("DRAM bytes", 0.75, f"{less} passes over {root} less, and one launch"),),
        variants=(
            Variant(
                "in the store",
                f"{name} is not launched here any more; its kernel stays for whoever else uses it",
                Scope.PLAN,
                lambda: fused(found, view),
            ),
        ),
    )
