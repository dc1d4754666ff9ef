"""Give each thread a small matrix of outputs, so that an operand in a register serves a whole row of them."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.product.choice import blocked, tunables
from agent.ideas.product.example import EXAMPLE
from agent.ideas.product.launching import GRID_LIMIT, layers, places
from agent.ideas.product.shape import Product, product
from agent.ideas.product.write import tiled
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, source_text
from agent.ideas.view import View

SMALLEST = 48
"""A side of fewer places leaves most of a tile empty."""

FEWEST = 4
"""So few turns read little more than they store."""


@catalogued(
    name="register-blocking",
    title="Let each thread compute several outputs from operands in registers",
    rationale=(
        "Where one operand depends on an output's row and the other on its column, a thread with one output reads two "
        "elements for each multiplication. A thread with 8 x 8 outputs reads 16 for 64, and the block reads each "
        "element from global memory once, into shared memory. Loads then no longer limit the kernel; arithmetic does."
    ),
    needs=(
        "every use of threadIdx and blockIdx stands in the definition of a coordinate (a row, a column, an image)",
        "a nest of plain loops whose ranges are the same for all threads, and which fold elements into variables of "
        "the thread; each element depends on coordinates of one side only, and on the loops",
        "what counts only under a condition (a padded border) is a product, which a zero leaves out",
        "the launch hands out each coordinate once, at other sizes too; no operand is written",
    ),
    effect="loads for each multiplication from 2 to 1/4; global traffic by the width of the tile",
    risk=(
        "fewer and larger blocks: small outputs no longer fill the card; where a border is padded with zeros, a weight "
        "that is infinite or NaN meets one"
    ),
    example=EXAMPLE,
    conflicts=("shared-tiles", "index-exchange"),
)
def register_blocking(view: View) -> Match | Refusal:
    found = product(view)
    if isinstance(found, str):
        return Refusal(found)
    reason = _worth(found)
    return Refusal(reason) if reason is not None else _match(found)


def _worth(found: Product) -> str | None:
    rows, cols = places(found, found.rows), places(found, found.cols)
    if min(rows, cols) < SMALLEST // 4 or rows * cols < SMALLEST * SMALLEST:
        return f"{rows} x {cols} outputs are too few for tiles"
    if 0 < found.turns < FEWEST:
        return f"{found.turns} turns of the loop over {found.step.variable.name} are too few to pay for staging"
    if found.view.kernel.launch_bounds:
        return "its launch bounds were chosen for the block that it has"
    if -(-rows // 32) > GRID_LIMIT or layers(found) > GRID_LIMIT:
        return "the grid would be larger than a card can launch"
    return None


def _match(found: Product) -> Match:
    view = found.view
    one, two = (source_text(view.document, side.loads[0].nodes[0]) for side in (found.rows, found.cols))
    names = [" and ".join(digit.name for digit in side.digits) for side in (found.rows, found.cols)]
    return Match(
        line=view.document.line(found.frame.nest.node.start_byte),
        title="compute a small matrix of outputs in each thread, from tiles in shared memory",
        why=(
            f"threads with the same {names[0]} all read `{one}`, those with the same {names[1]} `{two}`; each is used "
            "once where it is read"
        ),
        expects=(
            Expectation("L1 requests", 0.15, "loads for each multiplication from 2 to about 1/4"),
            Expectation("instructions", 0.4, "instructions for each multiplication to less than half"),
        ),
        variants=(
            Variant(
                "tiles in shared memory",
                "each block stages a step of both operands in shared memory, each thread multiplies out of registers",
                Scope.RELAUNCH,
                lambda own_rows, own_cols, step: _written(found, own_rows, own_cols, step),
                tunables(found),
            ),
        ),
    )


def _written(found: Product, own_rows: int, own_cols: int, step: int) -> Rewrite:
    return tiled(found, blocked(own_rows, own_cols, step), same_launch=False)
