"""A kernel whose warps multiply staged pieces on the tensor cores, and do with each sum what the user's threads did."""

from attrs import evolve, frozen

from agent.ideas.product.draft import Draft, Lines, defined, valid
from agent.ideas.product.launching import relaunched
from agent.ideas.product.names import Names, Tile, key, names
from agent.ideas.product.stage import along_turns
from agent.ideas.product.texts import comment_above, coordinates_at, substituted, text_at, uniform
from agent.ideas.product.write import outer_places, rewrite, turns
from agent.ideas.rewriting import Rewrite, fresh_local
from agent.ideas.tensor.packs import staged
from agent.ideas.tensor.site import HEADER, Site
from agent.workload.dtypes import c_name

SIDE = 16
"""Rows and columns of one piece, for every type (PTX ISA, "Matrix Shape")."""

WARPS_DOWN, WARP_COLS = 2, 32
"""A block's warps stand two deep; each has 32 columns."""


@frozen(eq=False)
class _Words:
    """Further locals: the namespace's short name, numbers of warp and lane, the fragments, where a warp lays down one
    piece of its sums, and for elements that come several at a time."""

    wmma: str
    warp: str
    lane: str
    rows: str
    cols: str
    sums: str
    pieces: str
    pack: str
    packs: str
    four: str


def tile_of(rows: int, cols: int, step: int) -> Tile:
    """The tile of ``rows`` x ``cols`` outputs, with the threads that :func:`on_tensor_cores` gives it."""
    threads = WARPS_DOWN * (cols // WARP_COLS) * 32
    return Tile(threads // SIDE, SIDE, rows * SIDE // threads, cols // SIDE, step)


def on_tensor_cores(site: Site, rows: int, cols: int, step: int) -> Rewrite:
    product, tile = site.product, tile_of(rows, cols, step)
    chosen = names(product)
    words = _words(site, chosen)
    draft = Draft(product, tile, chosen, False, chosen.cells)
    upright = frozenset(key(load) for load in (site.rows, site.cols) if along_turns(load, draft))
    brought = f"{words.wmma}::__float_to_tf32({{}})" if site.kind.dtype == "f32" else "{}"
    draft = evolve(draft, upright=upright, brought=brought)
    body = [
        *_head(draft, site, words),
        "",
        *turns(draft, staged(draft, site, words.pack, words.packs, words.four), _compute(draft, site, words)),
        *_closing(draft, site, words),
    ]
    return rewrite(product, body, relaunched(product, tile), (HEADER,))


def _words(site: Site, own: Names) -> _Words:
    view = site.product.view
    taken = _taken(own)

    def new(wanted: str) -> str:
        taken.append(fresh_local(wanted, view.document, view.kernel, *taken))
        return taken[-1]

    row, col = own.tiles[key(site.rows)], own.tiles[key(site.cols)]
    return _Words(
        new("wmma"), new("warp"), new("lane"), new(row.replace("_tile", "_piece")),
        new(col.replace("_tile", "_piece")), new(f"{site.total.name}s"), new("laid_down"),
        new("pack"), new("packs"), new("four"),
    )  # fmt: skip


def _taken(own: Names) -> list[str]:
    """Every new local that has a name already."""
    plain = (own.thread, own.step, own.rows, own.cols, own.own_rows, own.own_cols, own.first_row, own.first_col)
    more = (own.own_row, own.own_col, own.first_turn, own.at, own.down, own.along, own.place_row, own.place_col)
    return [*plain, *more, own.part, *own.tiles.values(), *own.owns.values(), *own.cells.values()]


def _head(draft: Draft, site: Site, words: _Words) -> Lines:
    product, tile, own = draft.product, draft.tile, draft.names
    warps_along = tile.cols // WARP_COLS
    deep = tile.rows // WARPS_DOWN // SIDE
    lines = [
        f"// The block brings a step of both operands into shared memory; its warps multiply pieces of {SIDE} x {SIDE} "
        "of",
        "// them on the tensor cores.",
        f"namespace {words.wmma} = nvcuda::wmma;",
        f"constexpr int {own.rows} = {tile.rows}, {own.cols} = {tile.cols}, {own.step} = {tile.step};  // of a block",
        f"constexpr int {own.own_rows} = {deep}, {own.own_cols} = {WARP_COLS // SIDE};  // of a warp, in pieces",
    ]
    pad = site.kind.padding
    for load, extent in ((site.rows, own.rows), (site.cols, own.cols)):
        one, two = (extent, own.step) if key(load) in draft.upright else (own.step, extent)
        name = own.tiles[key(load)]
        lines.append(f"__shared__ __align__(32) {load.access.element} {name}[{one}][{two} + {pad}];")
    lines += [
        f"__shared__ __align__(32) float {words.pieces}[{tile.threads // 32}][{SIDE}][{SIDE} + 4];",
        f"const int {own.thread} = threadIdx.x, {words.warp} = {own.thread} / 32, {words.lane} = {own.thread} % 32;",
        f"const int {own.first_row} = blockIdx.y * {own.rows}, {own.first_col} = blockIdx.x * {own.cols};",
        f"const int {own.own_row} = {words.warp} / {warps_along} * ({own.own_rows} * {SIDE});",
        f"const int {own.own_col} = {words.warp} % {warps_along} * ({own.own_cols} * {SIDE});",
        *outer_places(draft),
        *(text_at(product, one) for one in product.frame.before if uniform(product, one)),
        f"{_fragment(site, words, 'accumulator', '')} {words.sums}[{own.own_rows}][{own.own_cols}];",
        *_each(draft, [f"{words.wmma}::fill_fragment({words.sums}[{own.down}][{own.along}], 0.0f);"]),
    ]
    return lines


def _fragment(site: Site, words: _Words, use: str, layout: str) -> str:
    space = words.wmma
    element = f"{space}::precision::tf32" if site.kind.dtype == "f32" else c_name(site.kind.dtype)
    shape = f"{SIDE}, {SIDE}, {site.kind.turns}"
    last = "float" if not layout else f"{element}, {space}::{layout}"
    return f"{space}::fragment<{space}::{use}, {shape}, {last}>"


def _each(draft: Draft, body: Lines) -> Lines:
    """``body`` for each piece of a warp."""
    own = draft.names
    return [
        *_along(own.down, own.own_rows),
        *_along(own.along, own.own_cols),
        *body,
        "}",
        "}",
    ]


def _along(turn: str, count: str) -> Lines:
    return ["#pragma unroll", f"for (int {turn} = 0; {turn} < {count}; ++{turn}) {{"]


def _compute(draft: Draft, site: Site, words: _Words) -> Lines:
    own = draft.names
    lines = ["#pragma unroll", f"for (int {own.at} = 0; {own.at} < {own.step}; {own.at} += {site.kind.turns}) {{"]
    for load, rows in ((site.rows, True), (site.cols, False)):
        tile, upright = own.tiles[key(load)], key(load) in draft.upright
        name, turn, count = (words.rows, own.down, own.own_rows) if rows else (words.cols, own.along, own.own_cols)
        place = f"{own.own_row if rows else own.own_col} + {turn} * {SIDE}"
        where = f"[{place}][{own.at}]" if upright else f"[{own.at}][{place}]"
        wide = f"{own.step if upright else own.rows if rows else own.cols} + {site.kind.padding}"
        layout = "row_major" if upright is rows else "col_major"
        lines += [
            f"{_fragment(site, words, 'matrix_a' if rows else 'matrix_b', layout)} {name}[{count}];",
            *_along(turn, count),
            f"{words.wmma}::load_matrix_sync({name}[{turn}], &{tile}{where}, {wide});",
            "}",
        ]
    sums = f"{words.sums}[{own.down}][{own.along}]"
    product = f"{words.wmma}::mma_sync({sums}, {words.rows}[{own.down}], {words.cols}[{own.along}], {sums});"
    return [*lines, *_each(draft, [product]), "}"]


def _closing(draft: Draft, site: Site, words: _Words) -> Lines:
    """A warp lays down a piece at a time, and its lanes do with each sum what the user's threads did with theirs."""
    product, own = draft.product, draft.names
    after = product.frame.after
    body = [
        f"if ({valid(draft)}) {{",
        f"float {site.total.name} = {words.pieces}[{words.warp}][{own.at} / {SIDE}][{own.at} % {SIDE}];",
        *defined(draft, list(after), {}),
        substituted(product, comment_above(after[0]), after[-1], {}),
        "}",
    ]
    place = f"{own.own_row} + {own.down} * {SIDE} + {own.at} / {SIDE}"
    rows = coordinates_at(product.rows, product, own.place_row, f"{own.first_row} + {place}", body)
    place = f"{own.own_col} + {own.along} * {SIDE} + {own.at} % {SIDE}"
    cols = coordinates_at(product.cols, product, own.place_col, f"{own.first_col} + {place}", body)
    laid = f"&{words.pieces}[{words.warp}][0][0]"
    sums = f"{words.sums}[{own.down}][{own.along}]"
    return _each(
        draft,
        [
            f"{words.wmma}::store_matrix_sync({laid}, {sums}, {SIDE} + 4, {words.wmma}::mem_row_major);",
            "__syncwarp();",
            f"for (int {own.at} = {words.lane}; {own.at} < {SIDE * SIDE}; {own.at} += 32) {{",
            *rows,
            *cols,
            *body,
            "}",
            "__syncwarp();",
        ],
    )
