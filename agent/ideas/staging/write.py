"""What the hand-over through a tile writes: two passes over the block's elements with a barrier between them."""

from collections.abc import Sequence

from attrs import evolve
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.coalescing import BANKS, WORD, block_lanes
from agent.analysis.patterns.straight import Piece
from agent.analysis.syntax import contains, descendants, text
from agent.ideas.elements.pieces import Lines, Replaced, at, lines_for, memory_free, needed, remaining, rewritten
from agent.ideas.elements.places import Place, bound, end_of, place, reached
from agent.ideas.elements.reach import blocks_for
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite, fresh_local, indent_of, replace_between, source_text
from agent.ideas.staging.rows import Rows, at_row_zero
from agent.ideas.staging.site import Site
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.workload.expression import number as literal
from agent.workload.plan import Launch, Plan

MOST_SHARED = 48 * 1024
"""Bytes of shared memory that a block may declare (CUDA C++ Programming Guide, technical specifications)."""


def in_place(view: View, site: Site) -> Rewrite:
    """The same launch: a square block exchanges its two thread indices, any other splits its linear index."""
    wide, high = site.block
    lines = lines_for(view)
    if site.rows is not None:
        return _row_by_row(view, site, site.rows)
    if wide == high:
        names, setup = ("threadIdx.y", "threadIdx.x"), []
    else:
        thread, x, y = (fresh_local(name, view.document, view.kernel) for name in ("thread", "tile_x", "tile_y"))
        names = (x, y)
        setup = [
            f"const int {thread} = threadIdx.y * {wide} + threadIdx.x;",
            f"const int {x} = {thread} / {high}, {y} = {thread} % {high};  // lanes run down the tile's columns",
        ]
    padding = _padding(wide, high, _widest(view, site))
    tiles = _tiles(view, site)
    straight, turned = ("threadIdx.x", "threadIdx.y"), names
    text_lines = [*_declared(site, tiles, high, wide + padding), *setup]
    text_lines += _both_passes(view, site, lines, tiles, straight, turned, {}, looped=None)
    return Rewrite((_body(view, text_lines),))


def tiled(view: View, site: Site, edge: int, rows: int) -> Rewrite:
    """A square tile, ``edge`` elements wide, by ``edge`` x ``rows`` threads that take several of its rows each."""
    lines = lines_for(view)
    step = fresh_local("i", view.document, view.kernel)
    replaced = {at(one.init): f"blockIdx.{axis} * {edge} + {{{axis}}}" for axis, one in _starts(view).items()}
    tiles = _tiles(view, site)
    padding = max(1, WORD // _widest(view, site))
    text_lines = list(_declared(site, tiles, edge, edge + padding))
    head = f"for (int {step} = threadIdx.y; {step} < {edge}; {step} += {rows})"
    text_lines += _both_passes(
        view, site, lines, tiles, ("threadIdx.x", step), (step, "threadIdx.x"), replaced, looped=head
    )
    return Rewrite((_body(view, text_lines),), plan=_plan(view, site, edge, rows))


def _row_by_row(view: View, site: Site, walk: Rows) -> Rewrite:
    """The kernel's own walk over a tile, twice: the second time each thread's place along x and along y exchanged."""
    lines, (wide, _) = lines_for(view), site.block
    row = walk.loop.variable.name
    tiles = _tiles(view, site)
    along = f"threadIdx.y + {row}"
    nodes = [access.node for access in site.moved]
    rest = remaining(view, site.parts, nodes)
    turned = _placed(view, (along, "threadIdx.x"), {})
    side = _side(view, site)
    asked = [piece.node for piece in side] + nodes
    turned = at_row_zero(view, asked, walk.loop.variable, turned)
    here = {key: f"{name}[{along}][threadIdx.x]" for key, name in tiles.items()}
    across = {key: f"{name}[threadIdx.x][{along}]" for key, name in tiles.items()}
    header = (
        view.document.text[walk.loop.node.start_byte : walk.loop.body.start_byte].decode("utf-8", "replace").strip()
    )

    def kept(changes: Replaced) -> list[str]:
        inside = [piece for piece in rest if contains(walk.loop.node, piece.node)]
        loop = lines.block(header, lines.body(inside, changes, "continue"))
        return lines.body([piece for piece in rest if piece not in inside], changes, None, loop)

    def other(tail: Sequence[str]) -> list[str]:
        return lines.block(header, lines.body(side, turned, "continue", tail))

    between = ["__syncthreads();", "// Each thread goes on with another one's element, along the other side."]
    if site.loads:
        fill = [f"{across[at(access.node)]} = {_changed(view, access, turned)};" for access in _once(view, site)]
        passes = [*other(fill), *between, *kept(here)]
    else:
        stores = {**here, **_plain_stores(site)}
        passes = [*kept(stores), *between, *other([_drained(view, one, turned, across) for one in site.moved])]
    padding = max(1, WORD // _widest(view, site))
    return Rewrite((_body(view, [*_declared(site, tiles, wide, wide + padding), *passes]),))


def _side(view: View, site: Site) -> tuple[Piece, ...]:
    """What the other pass needs: the tests, and the declarations that these and the addresses are made of."""
    quiet = [piece for piece in site.parts if piece.kind == "test" or memory_free(view, piece.node)]
    indices = [listing for access in site.moved if (listing := access.node.child_by_field_name("indices"))]
    return needed(view, quiet, indices)


def _plain_stores(site: Site) -> dict[tuple[int, int], str]:
    """A tile takes the value itself, whatever is done with it at its place."""
    return {at(operator): "=" for access in site.moved if (operator := _operator(access.node)) is not None}


def can_tile(view: View, site: Site) -> bool:
    """Whether the launch may change: nothing is promised about the block, and each thread index is used for one
    coordinate alone, which a test keeps below a bound that the launch reaches."""
    return site.rows is None and not view.kernel.launch_bounds and _bounds(view, site) is not None


def fits(view: View, site: Site, edge: int) -> bool:
    return len(_tiles(view, site)) * edge * (edge + 4) * max(4, _widest(view, site)) <= MOST_SHARED


def _starts(view: View) -> dict[str, Place]:
    return {axis: found for at_axis, axis in enumerate("xy") if (found := place(view, at_axis)) is not None}


def _bounds(view: View, site: Site) -> dict[str, Node] | None:
    """For each axis, the bound that a test keeps its coordinate below, if every launch reaches it."""
    found = {axis: bound(view, site.parts, one.start) for axis, one in _starts(view).items()}
    limits = {axis: limit for axis, limit in found.items() if limit is not None}
    whole = len(limits) == 2 and all(reached(view, "xy".index(axis), limit) for axis, limit in limits.items())
    return limits if whole else None


def _plan(view: View, site: Site, edge: int, rows: int) -> Plan:
    bounds = _bounds(view, site)
    assert bounds is not None

    def changed(launch: Launch) -> Launch:
        grid = [blocks_for(end_of(view, launch, bounds[axis]), edge) for axis in "xy"]
        block = (literal(edge), literal(rows), literal(1))
        return evolve(launch, grid=(grid[0], grid[1], launch.grid[2]), block=block)

    return each_launch(view.request.plan, view.kernel, changed)


def _tiles(view: View, site: Site) -> dict[tuple[int, int], str]:
    """A name for each access's tile; equal loads share one."""
    found: dict[tuple[int, int], str] = {}
    spelled: dict[str, str] = {}
    for access in site.moved:
        key = source_text(view.document, access.node)
        if key not in spelled or not site.loads:
            wanted = "tile" if len(site.moved) == 1 else f"{access.name}_tile"
            spelled[key] = fresh_local(wanted, view.document, view.kernel, *spelled.values())
        found[at(access.node)] = spelled[key]
    return found


def _declared(site: Site, tiles: dict[tuple[int, int], str], high: int, wide: int) -> list[str]:
    lines = {}
    for access in site.moved:
        name = tiles[at(access.node)]
        lines[name] = f"__shared__ {access.element} {name}[{high}][{wide}];  // padded against bank conflicts"
    return list(lines.values())


def _both_passes(
    view: View,
    site: Site,
    lines: Lines,
    tiles: dict[tuple[int, int], str],
    straight: tuple[str, str],
    turned: tuple[str, str],
    replaced: Replaced,
    looped: str | None,
) -> list[str]:
    """``straight`` and ``turned`` are the thread's place in the tile, x first, in the pass that keeps the kernel's
    order and in the other one."""
    here = {key: f"{name}[{straight[1]}][{straight[0]}]" for key, name in tiles.items()}
    across = {key: f"{name}[{turned[1]}][{turned[0]}]" for key, name in tiles.items()}
    keep, turn = _placed(view, straight, replaced), _placed(view, turned, replaced)
    leave = "continue" if looped else None

    def one_pass(parts: Sequence[Piece], changes: Replaced, tail: Sequence[str] = ()) -> list[str]:
        inside = lines.body(parts, changes, leave, tail)
        return inside if looped is None else lines.block(looped, inside)

    def second_pass(parts: Sequence[Piece], changes: Replaced, tail: Sequence[str] = ()) -> list[str]:
        between = ["__syncthreads();", "// Each thread goes on with another one's element, along the other side."]
        inside = one_pass(parts, changes, tail)
        return [*between, *(inside if looped else ["{", *lines.deeper(inside), "}"])]

    nodes = [access.node for access in site.moved]
    rest = remaining(view, site.parts, nodes)
    side = _side(view, site)
    if site.loads:
        fill = [f"{across[at(access.node)]} = {_changed(view, access, turn)};" for access in _once(view, site)]
        return [*one_pass(side, turn, fill), *second_pass(rest, {**keep, **here})]
    stores = {at(access.node): here[at(access.node)] for access in site.moved}
    operators = _plain_stores(site)
    drain = [_drained(view, access, turn, across) for access in site.moved]
    return [*one_pass(rest, {**keep, **stores, **operators}), *second_pass(side, turn, drain)]


def _once(view: View, site: Site) -> list[Access]:
    seen: dict[str, Access] = {}
    for access in site.moved:
        seen.setdefault(source_text(view.document, access.node), access)
    return list(seen.values())


def _placed(view: View, place: tuple[str, str], starts: Replaced) -> Replaced:
    """The kernel's thread indices, read as a place in the tile. ``starts`` are declarations' values, written with
    ``{x}`` and ``{y}`` for that place."""
    found = {key: new.format(x=place[0], y=place[1]) for key, new in starts.items()}
    for node in descendants(view.facts.body, "field_expression"):
        inside = any(start <= node.start_byte and node.end_byte <= end for start, end in starts)
        if text(node) in ("threadIdx.x", "threadIdx.y") and not inside:
            name = place["xy".index(text(node)[-1])]
            found[at(node)] = f"({name})" if "+" in name and not _in_sum(node) else name
    return found


def _in_sum(node: Node) -> bool:
    """Whether a sum may stand in a node's place without parentheses."""
    above = node.parent
    if above is not None and above.type == "binary_expression":
        return text(above.child_by_field_name("operator")) == "+"
    return above is not None and above.type in (
        "init_declarator",
        "subscript_argument_list",
        "parenthesized_expression",
    )


def _changed(view: View, access: Access, changes: Replaced) -> str:
    return rewritten(view, access.node, {key: new for key, new in changes.items() if key != at(access.node)})


def _operator(store: Node) -> Node | None:
    above = store.parent
    while above is not None and above.type == "parenthesized_expression":
        above = above.parent
    return None if above is None else above.child_by_field_name("operator")


def _drained(view: View, access: Access, turn: Replaced, across: Replaced) -> str:
    return f"{_changed(view, access, turn)} {text(_operator(access.node))} {across[at(access.node)]};"


def _widest(view: View, site: Site) -> int:
    return max(view.element_bytes(access) or WORD for access in site.moved)


def _padding(wide: int, high: int, size: int) -> int:
    """Elements to add to a row such that both the row-wise and the column-wise pass meet the fewest bank conflicts."""

    def passes(pitch: int, exchanged: bool) -> int:
        banks: dict[int, set[int]] = {}
        for x, y, _ in block_lanes((wide, high, 1), exchanged):
            word = (y * pitch + x) * size // WORD
            banks.setdefault(word % BANKS, set()).add(word)
        return max(len(words) for words in banks.values())

    return min(range(BANKS), key=lambda pad: (passes(wide + pad, False) + passes(wide + pad, True), pad))


def _body(view: View, text_lines: Sequence[str]) -> Edit:
    inside = view.facts.body.named_children
    indent = indent_of(view.document, inside[0])
    first, *rest = text_lines
    return replace_between(inside[0], inside[-1], "\n".join([first, *(indent + line if line else "" for line in rest)]))
