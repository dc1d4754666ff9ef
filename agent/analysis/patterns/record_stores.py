"""Stores by which each thread fills a record of several elements that lie side by side: an array of structures."""

from itertools import product

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.affine import Poly, number
from agent.analysis.facts import Facts
from agent.analysis.guards import guards
from agent.analysis.loops import Loop, trip_values
from agent.analysis.patterns.lane_bounds import lane_stride
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import ancestors, bare, contains, descendants, statements, text
from agent.analysis.values import value

MOST = 64


@frozen(eq=False)
class RecordStore:
    """``access`` writes element ``offset`` of the record (a polynomial over the loops inside). ``start`` is what the
    subscript says besides the offset: where the record begins, counted from what is subscripted (None: there), and
    ``offsets`` are the subscript's summands that make up the offset."""

    access: Access
    start: Node | None
    offsets: tuple[Node, ...]
    offset: Poly


@frozen(eq=False)
class RecordStores:
    """Each thread writes all of elements ``0 .. size - 1`` of a record of ``root``, the next thread the next record.
    ``once``: none of them twice.
    ``first`` and ``last`` are the statements, side by side in one block, between which all of it happens."""

    root: Symbol
    size: int
    once: bool
    stores: tuple[RecordStore, ...]
    first: Node
    last: Node


def record_stores(facts: Facts) -> tuple[RecordStores, ...]:
    """Every such record, in source order."""
    roots = dict.fromkeys(a.root for a in facts.accesses if a.writes and a.space == "global" and a.root is not None)
    return tuple(found for root in roots if (found := _record(root, facts)) is not None)


def _record(root: Symbol, facts: Facts) -> RecordStores | None:
    writes = [access for access in facts.accesses if access.root is root and access.writes]
    if any(access.reads or access.atomic or access.index is None for access in writes):
        return None
    stores = [store for access in writes if (store := _store(access, facts)) is not None]
    if not stores or len(stores) < len(writes):
        return None
    steps = {str(lane_stride(access.index, access.node, facts)) for access in writes if access.index is not None}
    starts = {access.index - store.offset for access, store in zip(writes, stores, strict=True) if access.index}
    size = int(next(iter(steps))) if len(steps) == 1 and next(iter(steps)).isdigit() else 0
    if len(starts) != 1 or not 3 <= size <= MOST:
        return None
    filled = _offsets(stores, facts)
    if set(filled) != set(range(size)):
        return None
    ends = _ends(stores, facts)
    if ends is None or any(_moves(store, ends, facts) for store in stores):
        return None
    return RecordStores(root, size, len(filled) == size, tuple(stores), *ends)


def _store(access: Access, facts: Facts) -> RecordStore | None:
    """The store with its subscript taken apart: what hangs on nothing but loops with fixed turns is the offset."""
    given = subscripts_of(access.node)
    parent = access.node.parent
    if len(given) != 1 or parent is None or parent.type != "assignment_expression":
        return None
    rest = bare(given[0])
    offsets: list[Node] = []
    fixed = {loop.atom for loop in _inner(access.node, facts)}
    while rest is not None:
        total = value(rest, facts.scope)
        if total.atoms <= fixed:
            return RecordStore(access, None, (*offsets, rest), _sum((*offsets, rest), facts))
        if rest.type != "binary_expression" or text(rest.child_by_field_name("operator")) != "+":
            break
        left, right = rest.child_by_field_name("left"), rest.child_by_field_name("right")
        if left is None or right is None:
            return None
        if value(right, facts.scope).atoms <= fixed:
            rest, offsets = bare(left), [right, *offsets]
        elif value(left, facts.scope).atoms <= fixed:
            rest, offsets = bare(right), [left, *offsets]
        else:
            break
    return RecordStore(access, rest, tuple(offsets), _sum(tuple(offsets), facts))


def _sum(nodes: tuple[Node, ...], facts: Facts) -> Poly:
    total = number(0)
    for node in nodes:
        total = total + value(node, facts.scope)
    return total


def _inner(node: Node, facts: Facts) -> tuple[Loop, ...]:
    """The loops around a node whose turns are fixed numbers, up to the first that is something else."""
    found: list[Loop] = []
    for loop in reversed(facts.loops_around(node)):
        turns = None if loop.leaves_early else trip_values(loop, MOST + 1)
        if turns is None or len(turns) > MOST or loop.bound.constant is None or _skips(loop):
            break
        found.append(loop)
    return tuple(found)


def _skips(loop: Loop) -> bool:
    return any(True for _ in descendants(loop.body, "continue_statement"))


def _offsets(stores: list[RecordStore], facts: Facts) -> list[int]:
    found: list[int] = []
    for store in stores:
        loops = [loop for loop in _inner(store.access.node, facts) if loop.atom in store.offset.atoms]
        turns = [trip_values(loop, MOST + 1) or [] for loop in loops]
        for turn in product(*turns):
            names = {loop.atom.name: at for loop, at in zip(loops, turn, strict=True)}
            at = store.offset.evaluate(names)
            found.append(-1 if at is None else at)
    return found


def _ends(stores: list[RecordStore], facts: Facts) -> tuple[Node, Node] | None:
    """The first and last statement of the block that all stores stand in, inside loops with fixed turns at most."""
    places = [_place(store, facts) for store in stores]
    block = None if places[0] is None else places[0].parent
    if block is None or any(place is None or place.parent != block for place in places):
        return None
    found = [statement for statement in statements(block) if statement in places]
    return found[0], found[-1]


def _moves(store: RecordStore, ends: tuple[Node, Node], facts: Facts) -> bool:
    """Whether a name that says where the record begins changes while it is written."""
    names = [] if store.start is None else list(descendants(store.start, "identifier"))
    base = store.access.node.child_by_field_name("argument")
    names += [] if base is None else list(descendants(base, "identifier"))
    written = [
        write for name in names if (symbol := facts.symbols.resolve(name)) is not None for write in symbol.writes
    ]
    return any(ends[0].start_byte <= write.start_byte < ends[1].end_byte for write in written)


def _place(store: RecordStore, facts: Facts) -> Node | None:
    """The statement in a block that holds the store, with the loops that its offset runs over."""
    loops = [loop for loop in _inner(store.access.node, facts) if loop.atom in store.offset.atoms]
    outer = loops[-1].node if loops else store.access.node
    for statement in ancestors(outer) if not loops else (outer, *ancestors(outer)):
        if statement.parent is not None and statement.parent.type == "compound_statement":
            inside = [guard for guard in guards(store.access.node, statement) if contains(statement, guard.node)]
            held = {loop.node for loop in loops}
            return statement if all(guard.kind == "loop" and guard.node in held for guard in inside) else None
    return None
