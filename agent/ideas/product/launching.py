"""How a tiled kernel is launched: a block for each tile, and one layer of them for each outer value."""

from attrs import evolve

from agent.ideas.plans import each_launch
from agent.ideas.product.names import Tile
from agent.ideas.product.shape import Product, Side
from agent.ideas.product.spelling import tiles
from agent.ideas.view import evaluate
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan

GRID_LIMIT = 65535
"""The most blocks along y and z (CUDA C++ Programming Guide, technical specifications per compute capability)."""

SMS = 132
"""Of an H200; that many blocks at least should be there to fill a large card."""


def relaunched(product: Product, tile: Tile) -> Plan:
    order = {id(launch): at for at, launch in enumerate(product.view.launches)}

    def changed(launch: Launch) -> Launch:
        at = order[id(launch)]
        grid = (
            tiles(count(product, product.cols, at), tile.cols),
            tiles(count(product, product.rows, at), tile.rows),
            outer_count(product, at),
        )
        return evolve(launch, grid=grid, block=(number(tile.threads), number(1), number(1)))

    return each_launch(product.view.request.plan, product.view.kernel, changed)


def count(product: Product, side: Side, launch: int) -> Expression:
    """How many places a side has at a launch."""
    total = number(1)
    for digit in side.digits:
        total = build("*", [total, product.extents[digit].launched[launch]])
    return total


def outer_count(product: Product, launch: int) -> Expression:
    total = number(1)
    for digit in product.outer:
        total = build("*", [total, product.extents[digit].launched[launch]])
    return total


def places(product: Product, side: Side) -> int:
    """How many places a side has at the declared sizes: the most of all launches; 0 where that is not known."""
    found = [evaluate(count(product, side, at), product.view.sizes) for at, _ in enumerate(product.view.launches)]
    return max((one for one in found if isinstance(one, int)), default=0)


def layers(product: Product) -> int:
    found = [evaluate(outer_count(product, at), product.view.sizes) for at, _ in enumerate(product.view.launches)]
    return max((one for one in found if isinstance(one, int)), default=0)
