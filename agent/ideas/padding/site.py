"""Which shared array of a kernel loses most to bank conflicts, and what would spread it."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access, subscripts_of
from agent.analysis.coalescing import BANKS, WORD
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import callee, descendants, text
from agent.analysis.values import value
from agent.ideas.exchange.cost import LOOP_WEIGHT
from agent.ideas.padding.cost import Layout, passes
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type, size_of

WORTH = 0.75
MOST_STATIC = 48 * 1024
PADS = (1, 2, 4, 8, 16)


@frozen(eq=False)
class Site:
    """``pad``: elements to add to each innermost row (None: the array has one dimension, or none helps); ``every``:
    one element is left out after so many; ``swizzled``: exclusive-or helps as well. ``nodes`` are its subscripted
    uses. ``before`` and ``after`` are passes of all accesses, weighted by loops; ``worst`` loses most by itself."""

    array: Symbol
    nodes: tuple[Node, ...]
    accesses: tuple[Access, ...]
    bytes: int
    before: float
    after: float
    pad: int | None
    every: int | None
    swizzled: bool
    worst: tuple[Access, float, float]


def site(view: View) -> Site | str:
    if view.threads is None:
        return "the block's extents are not fixed numbers, so a warp's shape is not known"
    arrays = [one for one in view.facts.symbols.all() if one.space == "shared" and one.dims]
    if not arrays:
        return "it has no array in shared memory"
    found = [_site(view, array, arrays) for array in arrays]
    sites = [one for one in found if isinstance(one, Site)]
    if sites:
        return max(sites, key=lambda one: one.before - one.after)
    return next(reason for reason in found if isinstance(reason, str))


def _site(view: View, array: Symbol, arrays: Sequence[Symbol]) -> Site | str:
    dtype = from_c_type(array.type)
    size = None if dtype is None else size_of(dtype)
    if size not in (4, 8):
        return f"the elements of {array.name} are not 4 or 8 bytes wide"
    nodes = _uses(view, array)
    if nodes is None:
        return f"{array.name} is used by more than subscripts, so its elements must lie side by side"
    accesses = tuple(one for one in view.facts.accesses if one.root is array)
    if not accesses:
        return f"{array.name} is never touched"
    if len(array.dims) == 1:
        return _flat(view, array, nodes, accesses, size, len([one for one in arrays if one.extern]))
    return _rows(view, array, nodes, accesses, size, arrays)


def _uses(view: View, array: Symbol) -> tuple[Node, ...] | None:
    """The subscript expressions that all uses of an array's name are; None where there are others."""
    found: list[Node] = []
    for name in descendants(view.facts.body, "identifier"):
        if view.facts.symbols.resolve(name) is not array or name == array.declarator:
            continue
        node: Node = name
        for _ in array.dims:
            parent = node.parent
            if (
                parent is None
                or parent.type != "subscript_expression"
                or parent.child_by_field_name("argument") != node
            ):
                return None
            node = parent
        parent = node.parent
        if parent is not None and parent.type == "pointer_expression" and not _atomic(parent):
            return None
        indices = subscripts_of(node)
        effects = [one for index in indices for one in descendants(index, "assignment_expression", "update_expression")]
        nested = [one for index in indices for one in descendants(index, "identifier") if text(one) == array.name]
        if len(indices) != len(array.dims) or effects or nested:
            return None
        found.append(node)
    return tuple(found)


def _atomic(pointer: Node) -> bool:
    """``&s[i]`` as an atomic operation's place."""
    listing = pointer.parent
    call = None if listing is None else listing.parent
    return call is not None and callee(call).startswith("atomic")


def _extents(view: View, array: Symbol) -> list[int] | None:
    found = [None if dim is None else value(dim, view.facts.scope).constant for dim in array.dims]
    known = [extent for extent in found if extent is not None and extent > 0]
    return known if len(known) == len(found) else None


def _rows(
    view: View,
    array: Symbol,
    nodes: tuple[Node, ...],
    accesses: tuple[Access, ...],
    size: int,
    arrays: Sequence[Symbol],
) -> Site | str:
    extents = _extents(view, array)
    if extents is None:
        return f"the extents of {array.name} are not fixed numbers"
    layouts = [_row_major(extents, pad) for pad in (0, *PADS)]
    swizzle = extents[-1] % BANKS == 0
    layouts += [_exclusive(extents)] if swizzle else []
    counted = passes(view, accesses, layouts, size, 0)
    if counted is None:
        return f"where the lanes touch {array.name} cannot be told from the thread indices and the launch's numbers"
    before, padded = counted[0], counted[1 : 1 + len(PADS)]
    best = min(range(len(PADS)), key=lambda place: (padded[place], place))
    mixed = counted[-1] if swizzle else before
    if min(padded[best], mixed) > WORTH * before:
        return f"the lanes of a warp meet in no bank of {array.name} more often than they must"
    static = sum(_bytes(view, one) for one in arrays)
    more = size * PADS[best]
    for extent in extents[:-1]:
        more *= extent
    room = padded[best] <= WORTH * before and static + more <= MOST_STATIC
    after = padded[best] if room else mixed
    worst = _worst(view, accesses, [layouts[0], layouts[1 + best] if room else layouts[-1]], size, 0)
    if after > WORTH * before:
        return f"{array.name} has no room for padding in {MOST_STATIC // 1024} KB"
    return Site(
        array, nodes, accesses, size, before, after, PADS[best] if room else None, None, mixed <= WORTH * before, worst
    )


def _bytes(view: View, array: Symbol) -> int:
    dtype = from_c_type(array.type)
    total = size_of(dtype) if dtype is not None else WORD
    for extent in _extents(view, array) or []:
        total *= extent
    return 0 if array.extern else total


def _flat(
    view: View, array: Symbol, nodes: tuple[Node, ...], accesses: tuple[Access, ...], size: int, dynamic: int
) -> Site | str:
    extents = _extents(view, array)
    if extents is None and (not array.extern or dynamic != 1):
        return f"the extent of {array.name} is no fixed number"
    every = BANKS * WORD // size
    extent = extents[0] if extents else 1 << 30
    layouts: list[Layout] = [lambda lane: lane[0], lambda lane: lane[0] + lane[0] // every]
    counted = passes(view, accesses, layouts, size, extent)
    if counted is None:
        return f"where the lanes touch {array.name} cannot be told from the thread indices and the launch's numbers"
    before, after = counted
    if after > WORTH * before:
        return f"the lanes of a warp meet in no bank of {array.name} more often than they must"
    return Site(
        array, nodes, accesses, size, before, after, None, every, False, _worst(view, accesses, layouts, size, extent)
    )


def _worst(
    view: View, accesses: Sequence[Access], layouts: Sequence[Layout], size: int, extent: int
) -> tuple[Access, float, float]:
    """The access that loses most, and its passes in the two layouts."""
    counted = [(one, passes(view, [one], layouts, size, extent)) for one in accesses]
    known = [(one, numbers[0], numbers[1]) for one, numbers in counted if numbers is not None]
    access, before, after = max(known, key=lambda one: one[1] - one[2])
    weight = LOOP_WEIGHT ** len(view.facts.loops_around(access.node))
    return access, before / weight, after / weight


def _row_major(extents: Sequence[int], pad: int) -> Layout:
    def layout(lane: tuple[int, ...]) -> int:
        at = 0
        for place, part in enumerate(lane):
            at = at * (extents[place] + (pad if place == len(lane) - 1 else 0)) + part
        return at

    return layout


def _exclusive(extents: Sequence[int]) -> Layout:
    plain = _row_major(extents, 0)
    return lambda lane: plain((*lane[:-1], lane[-1] ^ lane[-2] % BANKS))
