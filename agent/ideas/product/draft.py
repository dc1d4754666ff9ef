"""What all parts of a tiled kernel are written from."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains, descendants
from agent.ideas.product.names import Names, Tile, together
from agent.ideas.product.shape import Product
from agent.ideas.product.texts import Swaps, coordinates_at, inside, needed, substituted, uniform, whole_places

Lines = list[str]


@frozen(eq=False)
class Draft:
    """What all parts of the new kernel are written from. ``cells`` names the accumulator of each element of global
    memory that the nest changes. ``upright`` are the loads (by ``key``) whose tile holds a place's turns side by side
    (``[place][turn]``); ``brought`` is what becomes of an element on its way into a tile, ``{}`` being the element."""

    product: Product
    tile: Tile
    names: Names
    same_launch: bool
    cells: dict[int, str]
    upright: frozenset[int] = frozenset()
    brought: str = "{}"


def own_place(draft: Draft, rows: bool) -> str:
    """Where in the tile the output ``down`` (or ``along``) of a thread is."""
    tile, own = draft.tile, draft.names
    count, threads = (tile.own_rows, tile.down) if rows else (tile.own_cols, tile.along)
    base, turn = (own.own_row, own.down) if rows else (own.own_col, own.along)
    group = together(count)
    if count == 1:
        return base
    if group == 1:
        return f"{base} + {turn} * {threads}"
    if group == count:
        return f"{base} + {turn}"
    return f"{base} + {turn} / {group} * {threads * group} + {turn} % {group}"


def element(draft: Draft) -> str:
    return "" if draft.tile.single else f"[{draft.names.down}][{draft.names.along}]"


def each_output(draft: Draft, body: Lines) -> Lines:
    """``body`` for each of a thread's outputs."""
    if draft.tile.single:
        return body
    own = draft.names
    return [
        "#pragma unroll",
        f"for (int {own.down} = 0; {own.down} < {own.own_rows}; ++{own.down}) {{",
        "#pragma unroll",
        f"for (int {own.along} = 0; {own.along} < {own.own_cols}; ++{own.along}) {{",
        *body,
        "}",
        "}",
    ]


def here(draft: Draft, used: Lines) -> Lines:
    """The coordinates of a thread's output, as far as they are used."""
    product, own = draft.product, draft.names
    return [
        *coordinates_at(product.rows, product, own.place_row, f"{own.first_row} + {own_place(draft, True)}", used),
        *coordinates_at(product.cols, product, own.place_col, f"{own.first_col} + {own_place(draft, False)}", used),
    ]


def valid(draft: Draft) -> str:
    product = draft.product
    tests = [*inside(product.rows, product), *inside(product.cols, product), *(one.spelled for one in product.always)]
    return " && ".join(bracketed(one) for one in tests)


def bracketed(test: str) -> str:
    return f"({test})" if "||" in test or "?" in test else test


def own_values(draft: Draft) -> dict[int, tuple[int, str]]:
    """Accumulators and cells as elements of the thread's own arrays."""
    product = draft.product
    found: dict[int, tuple[int, str]] = {}
    for node in descendants(product.facts.body, "identifier"):
        symbol = product.facts.symbols.resolve(node)
        if symbol is not None and symbol in product.frame.nest.accumulators:
            found[node.start_byte] = node.end_byte, f"{symbol.name}{element(draft)}"
    for cell in product.frame.nest.cells:
        for access in product.facts.accesses:
            if access.root is cell.root and access.index == cell.index:
                name = draft.cells[cell.node.start_byte]
                found[access.node.start_byte] = access.node.end_byte, f"{name}{element(draft)}"
    return found


def defined(draft: Draft, nodes: list[Node], swaps: Swaps) -> Lines:
    """The definitions that some text needs, those of the whole block apart."""
    product = draft.product
    definitions = [one for one in needed(product, nodes) if not uniform(product, one) and not own_sum(draft, one)]
    return [
        *whole_places(product, [*nodes, *definitions]),
        *(substituted(product, one, one, swaps) for one in definitions),
    ]


def own_sum(draft: Draft, statement: Node) -> bool:
    changing: tuple[Symbol, ...] = (
        *draft.product.frame.nest.accumulators,
        *(loop.variable for loop in draft.product.frame.nest.loops),
    )
    return any(contains(statement, symbol.declarator) for symbol in changing)
