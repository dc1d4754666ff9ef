"""Give each thread several outputs that are neighbours, so that what they load in common is loaded once."""

from agent.ideas.coarsening.site import OUTPUTS, Site, site
from agent.ideas.coarsening.write import coarsened
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import AXES, View

EXAMPLE = """\
// cuda-lsp: workload
//   size     height = 4096, width = 4096
//   buffer   in: f32[height * width] in normal
//   buffer   out: f32[height * width] out
//   launch   box<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(in, out, height, width)
__global__ void box(const float* in, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; ++dy) {
        sum += in[min(max(y + dy, 0), height - 1) * width + x];
    }
    out[y * width + x] = 0.2f * sum;
}
"""


@catalogued(
    name="thread-coarsening",
    title="Compute several neighbouring outputs a thread",
    rationale=(
        "Threads whose outputs lie side by side load mostly the same elements: from L1, at best, one request each. A "
        "thread that computes several outputs keeps what they share in registers, and works out common indices and "
        "weights once. The outputs are taken along y or z, so that the lanes of a warp still run along memory. The "
        "compiler finds the common loads by itself once it knows that no store can change them: that is what "
        "`__restrict__` says."
    ),
    needs=(
        "one coordinate along y or z, used for nothing else, which a test keeps below a bound that every launch "
        "reaches",
        "loads in straight code or in loops of fixed length, a quarter or more of which neighbours share: counted "
        "by their indices",
        "every pointer is handed a buffer of its own; no barrier, no atomic",
    ),
    effect="requests fall by what neighbours share: to 2/5 for five rows and four outputs a thread",
    risk="fewer threads, more registers for each; code grows with the unrolled loops",
    example=EXAMPLE,
)
def thread_coarsening(view: View) -> Match | Refusal:
    found = site(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Site) -> Match:
    name = AXES[found.place.axis]
    factor = round(found.together / found.alone, 2)
    return Match(
        line=view.document.line(found.shared.node.start_byte),
        title=f"compute {OUTPUTS} outputs a thread along {name}, and load once what they share",
        why=(
            f"one output takes {found.alone} loads; {OUTPUTS} that are neighbours along {name} take "
            f"{found.together:.3g} each, as `{source_text(view.document, found.shared.node)}` touches the same elements"
        ),
        expects=(Expectation("requests", factor, f"requests -{round(100 * (1 - factor))} %"),),
        variants=(
            Variant(
                f"outputs along {name}",
                "an unrolled loop around the work, and pointers that are known to be apart",
                Scope.RELAUNCH,
                lambda outputs: coarsened(view, found, outputs),
                (Tunable("outputs", (2, 4, 8), OUTPUTS, f"neighbouring outputs along {name} a thread"),),
            ),
        ),
    )
