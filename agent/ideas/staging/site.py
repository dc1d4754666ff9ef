"""Where one side of a kernel's traffic runs along memory and the other across it."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.coalescing import WARP, block_lanes, sectors
from agent.analysis.patterns.straight import Piece, pieces
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, bare, contains, expression_of, text
from agent.analysis.types import type_of
from agent.ideas.elements.buffers import apart, written_apart
from agent.ideas.elements.pieces import memory_free, used
from agent.ideas.exchange.cost import lanes
from agent.ideas.exchange.plane import obstacles
from agent.ideas.rewriting import source_text
from agent.ideas.staging.rows import Rows, rows, unsteady
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type

BETTER = 2
"""An access is handed over where it takes this many times fewer sectors with the indices exchanged."""


@frozen(eq=False)
class Site:
    """``moved`` are the accesses that are handed over, all loads (``loads``) or all stores; ``before`` and ``after``
    sum up the sectors of a warp's requests, of all accesses. ``rows``: the kernel walks over a tile itself."""

    parts: tuple[Piece, ...]
    moved: tuple[Access, ...]
    loads: bool
    block: tuple[int, int]
    before: int
    after: int
    worst: int
    best: int
    rows: Rows | None = None


def site(view: View) -> Site | str:
    if b"threadIdx.y" not in view.document.text[view.facts.body.start_byte : view.facts.body.end_byte]:
        return "it uses one thread index only, so there is no second one that could run along the other side"
    if (obstacle := obstacles(view)) is not None:
        return obstacle
    x, y, z = view.block
    if x is None or y is None or z is None:
        return "the block's extents are not fixed numbers, so a warp's shape is not known"
    if z != 1 or x * y < WARP or min(x, y) < 2:
        return "the block has no two extents to make a tile of"
    if view.facts.barriers or any(symbol.space == "shared" for symbol in view.facts.symbols.all()):
        return "its threads already work together through shared memory"
    counted = _counted(view, (x, y))
    return counted if isinstance(counted, str) else _chosen(view, (x, y), counted)


@frozen(eq=False)
class Counted:
    """Sectors that a warp's request takes: ``before`` and ``after`` in blocks as they are, lanes along x and along y;
    ``along`` and ``across`` with a whole warp along x and along y, as in a square tile."""

    access: Access
    before: int
    after: int
    along: int
    across: int


def _counted(view: View, block: tuple[int, int]) -> list[Counted] | str:
    """Each access that is not the thread's own."""
    warps = (
        block_lanes((*block, 1)),
        block_lanes((*block, 1), exchanged=True),
        [(lane, 0, 0) for lane in range(WARP)],
        [(0, lane, 0) for lane in range(WARP)],
    )
    settings = [lanes(view, warp) for warp in warps]
    found: list[Counted] = []
    for access in view.facts.accesses:
        if access.space == "local" or access.space == "constant":
            continue
        size, spelled = view.element_bytes(access), source_text(view.document, access.node)
        if access.index is None or size is None or access.root is None:
            return f"where `{spelled}` points cannot be followed"
        numbers = [sectors(access.index, lane, size) for lane in settings]
        known = [one for one in numbers if one is not None]
        if len(known) < len(numbers):
            return f"where `{spelled}` points cannot be told from the thread indices and the launch's numbers"
        found.append(Counted(access, *known))
    return found


def _chosen(view: View, block: tuple[int, int], counted: list[Counted]) -> Site | str:
    moved = [one for one in counted if one.along >= BETTER * one.across and one.before > one.after]
    staying = [one for one in counted if one not in moved]
    if not moved:
        return "no access strides from lane to lane that would run along memory with the indices exchanged"
    if not any(one.across >= BETTER * one.along for one in staying):
        return "every access runs along memory once the thread indices are exchanged; no tile is needed for that"
    loads = all(one.access.reads and not one.access.writes for one in moved)
    if not loads and not all(one.access.writes for one in moved):
        return "loads and stores stride alike; exchanging the indices comes first"
    parts = pieces(view.facts)
    if isinstance(parts, str):
        return parts
    accesses = tuple(one.access for one in moved)
    walk = rows(view, parts, block)
    parts = parts if walk is None else (*walk.head, *walk.body)
    reason = _obstacle(view, parts, accesses, loads, None if walk is None else walk.loop.variable)
    if reason is None and walk is not None:
        reason = unsteady(view, walk, accesses)
    if reason is not None:
        return reason
    return Site(
        parts,
        accesses,
        loads,
        block,
        sum(one.before for one in counted),
        sum(one.after for one in moved) + sum(one.before for one in staying),
        max(one.before for one in moved),
        max(one.after for one in moved),
        walk,
    )


def _obstacle(
    view: View, parts: Sequence[Piece], moved: Sequence[Access], loads: bool, row: Symbol | None
) -> str | None:
    for piece in parts:
        if piece.kind == "test" and not (memory_free(view, piece.node) and _indices(view, parts, piece.node, row)):
            return f"`{source_text(view.document, piece.node)}` hangs on more than indices, and would be asked twice"
    for access in moved:
        found = _load_obstacle(view, parts, access) if loads else _store_obstacle(view, parts, access)
        reason = found or _address_obstacle(view, parts, access, row)
        if reason is not None:
            return reason
    return None


def _indices(view: View, parts: Sequence[Piece], node: Node, row: Symbol | None, depth: int = 0) -> bool:
    """Whether a node's names come from parameters, constants, thread indices and the row by declarations alone."""
    if depth > 20:
        return False
    for symbol in used(view, node) - {row}:
        if symbol.space == "parameter" and symbol.fixed and not symbol.pointer:
            continue
        if symbol.is_memory or not symbol.fixed or symbol.init is None or not memory_free(view, symbol.init):
            return False
        declared = any(p.kind == "statement" and contains(p.node, symbol.declarator) for p in parts)
        if not declared or not _indices(view, parts, symbol.init, row, depth + 1):
            return False
    return True


def _address_obstacle(view: View, parts: Sequence[Piece], access: Access, row: Symbol | None) -> str | None:
    listing = access.node.child_by_field_name("indices")
    base = bare(access.node.child_by_field_name("argument"))
    if access.node.type != "subscript_expression" or listing is None or base is None or base.type != "identifier":
        return f"`{source_text(view.document, access.node)}` is no plain subscript of a parameter"
    root = view.facts.symbols.resolve(base)
    if root is None or root.space != "parameter" or root is not access.root:
        return f"`{source_text(view.document, access.node)}` is no plain subscript of a parameter"
    if not _indices(view, parts, listing, row):
        return f"the index of `{source_text(view.document, access.node)}` is not made of indices and sizes alone"
    return None


def _store_obstacle(view: View, parts: Sequence[Piece], access: Access) -> str | None:
    spelled = source_text(view.document, access.node)
    piece = next((p for p in parts if p.kind == "statement" and contains(p.node, access.node)), None)
    assignment = None if piece is None else expression_of(piece.node)
    if assignment is None or assignment.type != "assignment_expression":
        return f"`{spelled}` is written inside a branch or a loop, or by more than an assignment"
    left, right = bare(assignment.child_by_field_name("left")), assignment.child_by_field_name("right")
    if left is None or left != access.node or right is None:
        return f"`{spelled}` is written inside a branch or a loop, or by more than an assignment"
    if text(assignment.child_by_field_name("operator")) != "=" and not _same_type(view, access, right):
        return f"what `{spelled}` takes is of another type, and would be rounded on its way through a tile"
    assert access.root is not None
    for other in view.facts.accesses:
        if other.node == access.node or other.space in ("local", "constant"):
            continue
        if other.root is None or not apart(view, access.root, other.root):
            what = source_text(view.document, other.node)
            return f"`{spelled}` is written after a barrier, and `{what}` may lie in the same buffer"
    return None


def _same_type(view: View, access: Access, right: Node) -> bool:
    found = type_of(right, view.facts.symbols)
    return found is not None and found == from_c_type(access.element)


def _load_obstacle(view: View, parts: Sequence[Piece], access: Access) -> str | None:
    spelled = source_text(view.document, access.node)
    piece = next((p for p in parts if p.kind == "statement" and contains(p.node, access.node)), None)
    if piece is None or _sometimes(access.node, piece.node):
        return f"`{spelled}` is read inside a branch or a loop"
    assert access.root is not None
    if not written_apart(view, access.root) or _written(view, access.root):
        return f"what `{spelled}` reads may be written by another thread of the block in between"
    return None


def _written(view: View, root: Symbol) -> bool:
    return any(access.writes and access.root is root for access in view.facts.accesses)


def _sometimes(node: Node, statement: Node) -> bool:
    """Whether a node inside a statement is reached only at times, or several times."""
    if statement.type in (*LOOPS, "if_statement", "switch_statement", "compound_statement"):
        return True
    for above in ancestors(node):
        if above == statement:
            return False
        short = above.type == "binary_expression" and text(above.child_by_field_name("operator")) in ("&&", "||")
        if short or above.type in ("conditional_expression", "lambda_expression"):
            return True
    return False
