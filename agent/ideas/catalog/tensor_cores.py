"""Products of halves, or of floats where less precision is allowed, on the tensor cores."""

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.product.launching import SMS, layers, places
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.tensor.site import Site, site
from agent.ideas.tensor.write import on_tensor_cores
from agent.ideas.view import View

SIDES = (64, 128)
STEPS = (32, 64, 16)
FLOAT_STEPS = (16, 32)
"""Floats take twice the registers on their way: with longer steps of large tiles an SM holds one block."""
FULL = 2
"""Blocks an SM with which large tiles still hide their loads."""

EXAMPLE = """\
#include <cuda_fp16.h>

// cuda-lsp: workload
//   size     m = 1024, n = 1024, k = 1024
//   buffer   a: f16[m * k] in normal
//   buffer   b: f16[k * n] in normal
//   buffer   c: f32[m * n] out
//   launch   multiply<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)
__global__ void multiply(const half* a, const half* b, float* c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        sum += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);
    }
    c[row * n + col] = sum;
}
"""


@catalogued(
    name="tensor-cores",
    title="Multiply on the tensor cores",
    rationale=(
        "A tensor core multiplies a piece of 16 x 16 of each operand in one instruction of a warp, where other pipes "
        "take one for each 32 products. Its factors have few bits, and it adds up in float: the products of halves "
        "are exact in float, so nothing is lost there; floats are cut to tf32, which keeps 10 bits of their 23."
    ),
    needs=(
        "every use of threadIdx and blockIdx stands in the definition of a coordinate (a row, a column, an image)",
        "a nest of plain loops whose ranges are the same for all threads, and which adds up in a float, from zero on, "
        "the product of two elements: one depends on an output's row, the other on its column",
        "both are half or bfloat16 and made floats before they are multiplied; or both are float, and the user allows "
        "less precision (`lossy`)",
        "cards with tensor cores for that type: sm_70 for half, sm_80 for the others",
        "the launch hands out each coordinate once, at other sizes too; no operand is written",
    ),
    effect="instructions for each multiplication to a few hundredths; loads by the width of the tile",
    risk=(
        "fewer and larger blocks: small outputs no longer fill the card; sums in another order; float operands lose "
        "13 bits"
    ),
    example=EXAMPLE,
    conflicts=("shared-tiles", "register-blocking", "index-exchange"),
)
def tensor_cores(view: View) -> Match | Refusal:
    found = site(view)
    return Refusal(found) if isinstance(found, str) else _match(found)


def _match(found: Site) -> Match:
    view = found.product.view
    one, two = (source_text(view.document, load.nodes[0]) for load in (found.rows, found.cols))
    less = ", with 10 bits of a float's 23: less precise" if found.kind.dtype == "f32" else ""
    return Match(
        line=view.document.line(found.product.frame.nest.node.start_byte),
        title=f"multiply on the tensor cores, in {found.kind.words}{less}",
        why=(
            f"{found.total.name} adds up products of `{one}` and `{two}`, one at a time; a tensor core makes "
            f"{16 * 16 * found.kind.turns} of them in one instruction of a warp"
        ),
        expects=(
            Expectation("instructions", 0.05, "instructions for each multiplication to a few hundredths"),
            Expectation("L1 requests", 0.1, "loads from global memory once for each block"),
        ),
        variants=(
            Variant(
                "tiles in shared memory",
                "each block stages a step of both operands in shared memory, each warp multiplies pieces of them",
                Scope.RELAUNCH,
                lambda rows, cols, step: on_tensor_cores(found, rows, cols, step),
                _tunables(found),
            ),
        ),
    )


def _tunables(found: Site) -> tuple[Tunable, ...]:
    rows, cols = _first(found)
    steps = FLOAT_STEPS if found.kind.dtype == "f32" else STEPS
    return (
        Tunable("rows", SIDES, rows, "outputs of a block along the rows"),
        Tunable("cols", SIDES, cols, "outputs of a block along the columns"),
        Tunable("step", steps, steps[0], "turns that are staged at a time"),
    )


def _first(found: Site) -> tuple[int, int]:
    """The largest tile that leaves enough blocks for a large card."""
    product = found.product
    rows, cols, depth = places(product, product.rows), places(product, product.cols), max(1, layers(product))
    for tall, wide in ((128, 128), (64, 128), (128, 64)):
        blocks = -(-rows // tall) * -(-cols // wide) * depth
        if blocks >= FULL * SMS and rows >= tall and cols >= wide:
            return tall, wide
    return SIDES[0], SIDES[0]
