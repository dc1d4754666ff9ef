"""Which tiles to offer, and which to try first."""

from agent.ideas.idea import Tunable
from agent.ideas.product.launching import SMS, layers, places
from agent.ideas.product.names import Tile
from agent.ideas.product.shape import TYPES, Product

SIDE = 16
"""A block has SIDE x SIDE threads."""

OWN = (2, 4, 6, 8)
"""Outputs of a thread along one side: with more than 8 x 8 the registers of an SM hold too few warps."""

SHARED_BYTES = 48 * 1024
"""Of a block without an opt-in (CUDA C++ Programming Guide, technical specifications)."""

REGISTERS = 72
"""Registers that a thread's accumulators may take."""


def tunables(product: Product) -> tuple[Tunable, ...]:
    """The open constants of a register-blocked kernel, each combination of which fits a block."""
    rows, cols = _first(product)
    steps = _steps(product)
    return (
        Tunable("own_rows", OWN, rows, "outputs of a thread along the rows"),
        Tunable("own_cols", OWN, cols, "outputs of a thread along the columns"),
        Tunable("step", steps, steps[0], "turns that are staged at a time"),
    )


def blocked(own_rows: int, own_cols: int, step: int) -> Tile:
    return Tile(SIDE, SIDE, own_rows, own_cols, step)


def _bytes(product: Product) -> int:
    """Of one element of the widest operand or accumulator."""
    types = [load.access.element for side in (product.rows, product.cols) for load in side.loads]
    return max(TYPES.get(one, 8) for one in (*types, *(symbol.type for symbol in product.frame.nest.accumulators)))


def _steps(product: Product) -> tuple[int, ...]:
    """Turns of one step, the best first: all turns of a short loop at once."""
    loads = len(product.rows.loads) + len(product.cols.loads)
    row = (SIDE * max(OWN) + 4) * _bytes(product) * loads
    wanted = [product.turns] if 3 <= product.turns <= 16 else []
    fitting = [one for one in dict.fromkeys((*wanted, 16, 8)) if one * row <= SHARED_BYTES]
    return tuple(fitting) or (4,)


def _first(product: Product) -> tuple[int, int]:
    """Outputs a thread along rows and columns that waste least: tiles that hang over the edge compute for nothing,
    small ones read each operand more often, and few blocks leave SMs idle."""
    rows, cols, depth = places(product, product.rows), places(product, product.cols), layers(product)
    results = max(1, len(product.frame.nest.accumulators) + len(product.frame.nest.cells))
    words = results * max(1, _bytes(product) // 4)

    def cost(own: tuple[int, int]) -> float:
        tall, wide = own[0] * SIDE, own[1] * SIDE
        down, across = -(-max(1, rows) // tall), -(-max(1, cols) // wide)
        waste = down * tall * across * wide / max(1, rows * cols)
        reads = 1 + 2 * (own[0] + own[1]) / (own[0] * own[1])
        blocks = down * across * max(1, depth)
        return waste * reads * max(1.0, SMS / blocks)

    fitting = [(one, two) for one in OWN for two in OWN if one * two * words <= REGISTERS]
    return min(fitting or [(2, 2)], key=cost)
