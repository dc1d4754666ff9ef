"""Stage the operands of a product-like nest in shared memory; launch and outputs of each thread stay."""

from math import gcd

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.product.example import EXAMPLE
from agent.ideas.product.launching import places
from agent.ideas.product.names import Tile
from agent.ideas.product.shape import Product, product
from agent.ideas.product.texts import own_definitions
from agent.ideas.product.write import tiled
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import source_text
from agent.ideas.view import View

FEWEST_TURNS = 8
"""A shorter loop does not fill one step."""

SHARED_BYTES = 48 * 1024
STEPS = (16, 8, 32)


@catalogued(
    name="shared-tiles",
    title="Stage the operands of a product in shared memory, a tile at a time",
    rationale=(
        "Threads of a block with the same row read the same elements of one operand, those with the same column the "
        "same of the other. Brought into shared memory by all threads together, in the order in which they lie in "
        "memory, each element crosses from global memory once for the whole block."
    ),
    needs=(
        "a two-dimensional block of fixed size whose rows and columns are the two operands' coordinates",
        "a nest of plain loops whose ranges are the same for all threads, and which fold elements into variables of "
        "the thread; each element depends on one coordinate, and on the loops",
        "no operand is written",
    ),
    effect="global loads of each operand divided by the block's other extent; all of them coalesced",
    risk=(
        "two barriers a step; where a border is padded with zeros, a weight that is infinite or NaN meets one. Where "
        "the launch may change, a thread with several outputs gains more"
    ),
    example=EXAMPLE,
    conflicts=("register-blocking", "index-exchange"),
)
def shared_tiles(view: View) -> Match | Refusal:
    found = product(view)
    if isinstance(found, str):
        return Refusal(found)
    reason = _fits(found)
    return Refusal(reason) if reason is not None else _match(found)


def _fits(found: Product) -> str | None:
    view = found.view
    x, y, z = view.block
    sides = (found.rows, found.cols)
    if x is None or y is None or z != 1:
        return "the block's extents are not two fixed numbers"
    if any(len(side.digits) != 1 or not side.digits[0].whole or not side.digits[0].threads for side in sides):
        return "the operands' coordinates are not the thread's own along two axes"
    if {side.digits[0].axis for side in sides} != {"x", "y"}:
        return "the operands' coordinates do not lie along x and y"
    if min(x, y) < 4 or x * y < 64:
        return f"a block of {x} x {y} threads shares too little"
    if 0 < found.turns < FEWEST_TURNS:
        return f"{found.turns} turns of the loop over {found.step.variable.name} are too few to pay for staging"
    if min(places(found, side) for side in sides) < 4:
        return "too few outputs share an operand"
    mine = {side.digits[0].symbol for side in sides}
    statements = own_definitions(found)
    if any(one.start_byte <= symbol.declarator.start_byte < one.end_byte for one in statements for symbol in mine):
        return "a block's own coordinates are declared together with a thread's"
    return None


def _match(found: Product) -> Match:
    view = found.view
    one, two = (source_text(view.document, side.loads[0].nodes[0]) for side in (found.rows, found.cols))
    down, along = _extents(found)
    return Match(
        line=view.document.line(found.frame.nest.node.start_byte),
        title="stage both operands in shared memory, a tile at a time",
        why=f"{along} threads of a block read the same `{one}`, and {down} the same `{two}`, in each turn",
        expects=(
            Expectation("L1 requests", round(1 / gcd(down, along) + 0.1, 2), "global loads once for each block"),
            Expectation("sectors", 0.3, "sectors to a third or less"),
        ),
        variants=(
            Variant(
                "tiles in shared memory",
                "all threads bring in a step of both operands, wait, and multiply out of shared memory",
                Scope.DROP_IN,
                lambda step: tiled(found, Tile(down, along, 1, 1, step), same_launch=True),
                (Tunable("step", _steps(found, down, along), _steps(found, down, along)[0], "turns staged at a time"),),
            ),
        ),
    )


def _extents(found: Product) -> tuple[int, int]:
    """Threads of a block along rows and along columns."""
    x, y, _ = found.view.block
    assert x is not None and y is not None
    return (x, y) if found.rows.digits[0].axis == "x" else (y, x)


def _steps(found: Product, down: int, along: int) -> tuple[int, ...]:
    loads = len(found.rows.loads) * (down + 1) + len(found.cols.loads) * (along + 1)
    whole = [found.turns] if 3 <= found.turns <= 16 else []
    fitting = [one for one in dict.fromkeys((*whole, *STEPS)) if one * loads * 8 <= SHARED_BYTES]
    return tuple(fitting) or (4,)
