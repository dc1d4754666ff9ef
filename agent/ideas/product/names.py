"""Names and numbers of a tiled kernel."""

from collections.abc import Callable
from math import gcd

from attrs import frozen

from agent.analysis.patterns.product_nest import Load
from agent.ideas.product.shape import Product, Side
from agent.ideas.rewriting import fresh_local


@frozen
class Tile:
    """A block's threads are ``down`` x ``along``; each computes ``own_rows`` x ``own_cols`` outputs, and ``step`` turns
    are staged at a time."""

    down: int
    along: int
    own_rows: int
    own_cols: int
    step: int

    @property
    def rows(self) -> int:
        return self.down * self.own_rows

    @property
    def cols(self) -> int:
        return self.along * self.own_cols

    @property
    def threads(self) -> int:
        return self.down * self.along

    @property
    def single(self) -> bool:
        return self.own_rows == self.own_cols == 1


def together(own: int) -> int:
    """How many of a thread's outputs along one side are neighbours: as many as one 16-byte shared access reads."""
    return gcd(own, 4)


@frozen(eq=False)
class Names:
    """New locals of the kernel. ``tiles`` and ``owns`` go by the start of each load's first node,
    ``cells`` (accumulators for elements of global memory) by that of the cell."""

    thread: str
    step: str
    rows: str
    cols: str
    own_rows: str
    own_cols: str
    first_row: str
    first_col: str
    own_row: str
    own_col: str
    first_turn: str
    at: str
    down: str
    along: str
    place_row: str
    place_col: str
    part: str
    tiles: dict[int, str]
    owns: dict[int, str]
    cells: dict[int, str]


def names(product: Product) -> Names:
    document, kernel = product.view.document, product.view.kernel
    taken: list[str] = []

    def new(wanted: str) -> str:
        taken.append(fresh_local(wanted, document, kernel, *taken))
        return taken[-1]

    several = len(product.rows.digits) > 1 and len(product.cols.digits) > 1
    rows = _called(product.rows, "row_place" if several else "place")
    cols = _called(product.cols, "col_place" if several else "place")
    loads = [load for side in (product.rows, product.cols) for load in side.loads]
    return Names(
        thread=new("thread"),
        step=new("STEP"),
        rows=new(f"TILE_{rows.upper()}S"),
        cols=new(f"TILE_{cols.upper()}S"),
        own_rows=new(f"OWN_{rows.upper()}S"),
        own_cols=new(f"OWN_{cols.upper()}S"),
        first_row=new(f"first_{rows}"),
        first_col=new(f"first_{cols}"),
        own_row=new(f"own_{rows}"),
        own_col=new(f"own_{cols}"),
        first_turn=new(f"first_{product.step.variable.name}"),
        at=new("at"),
        down=new("down"),
        along=new("along"),
        place_row=_place(product.rows, rows, new),
        place_col=_place(product.cols, cols, new),
        part=new("part"),
        tiles={load.nodes[0].start_byte: new(f"{load.access.name}_tile") for load in loads},
        owns={load.nodes[0].start_byte: new(f"{load.access.name}_own") for load in loads},
        cells={cell.node.start_byte: new(f"{cell.name}_sum") for cell in product.frame.nest.cells},
    )


def _called(side: Side, several: str) -> str:
    return side.digits[0].name if len(side.digits) == 1 else several


def _place(side: Side, wanted: str, new: Callable[[str], str]) -> str:
    """The name of a place along a side: the coordinate itself where there is one."""
    return side.digits[0].name if len(side.digits) == 1 else new(wanted)


def key(load: Load) -> int:
    return load.nodes[0].start_byte
