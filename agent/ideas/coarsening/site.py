"""Where threads that are neighbours along y or z load what the other one loads too."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.loops import Loop, trip_values
from agent.analysis.patterns.straight import Piece, pieces
from agent.analysis.syntax import LOOPS, ancestors, contains
from agent.ideas.coarsening.bounds import Bounds, bounds
from agent.ideas.elements.front import split
from agent.ideas.elements.pieces import given, used
from agent.ideas.elements.places import Place, place, reached
from agent.ideas.elements.restrict import all_apart
from agent.ideas.exchange.cost import lanes
from agent.ideas.exchange.plane import obstacles
from agent.ideas.view import AXES, View

OUTPUTS = 4
"""How many outputs a thread the reuse is counted for, and the first to try."""

WORTH = 0.75
"""Loads an output must fall to this fraction or below."""

MOST_TURNS = 1024
"""Turns of all loops around a load together, up to which they are followed."""


@frozen(eq=False)
class Site:
    """``head`` is asked once for all of a thread's outputs, ``work`` done for each. ``unrolled`` are the loops of fixed
    length around loads that neighbours share. ``alone`` loads an output takes by itself, ``together``
    each of several."""

    place: Place
    asked: Bounds
    head: tuple[Piece, ...]
    work: tuple[Piece, ...]
    unrolled: tuple[Loop, ...]
    alone: int
    together: float
    shared: Access


def site(view: View) -> Site | str:
    if (obstacle := obstacles(view)) is not None:
        return obstacle
    parts = pieces(view.facts)
    if isinstance(parts, str):
        return parts
    reasons = [_along(view, parts, axis) for axis in (1, 2)]
    for found in reasons:
        if isinstance(found, Site):
            return found
    return next(reason for reason in reasons if isinstance(reason, str))


def _along(view: View, parts: Sequence[Piece], axis: int) -> Site | str:
    name = AXES[axis]
    found = place(view, axis)
    if found is None:
        return f"threadIdx.{name} is not used for one coordinate alone, so its neighbours cannot be given to one thread"
    asked = bounds(view, parts, found.symbol)
    if isinstance(asked, str):
        return asked
    if not asked.upper or not reached(view, axis, asked.upper[0]) or view.block[axis] is None:
        return f"no test keeps {found.symbol.name} below a bound that the launch reaches at every size"
    reason = all_apart(view)
    if reason is not None:
        return f"{reason}, so loads cannot be kept across stores"
    tests = [piece for piece, _ in asked.kept]
    head, work = split(view, [piece for piece in parts if piece not in tests], found.symbol)
    if any(piece.node.start_byte < test.node.start_byte and _writes(view, piece) for piece in work for test in tests):
        return "something is written before the last test"
    made = {symbol for piece in work for symbol in given(view, piece.node)}
    if any(used(view, test.node) & made for test in tests):
        return "a test hangs on what is worked out before it"
    counted = _counted(view, found, work, axis)
    if counted is None:
        return "where its loads point cannot be told from the thread indices, fixed loops and the launch's numbers"
    alone, together, shared, loops = counted
    if shared is None or together > WORTH * alone:
        return f"outputs that are neighbours along {name} load next to nothing in common"
    return Site(found, asked, tuple(head), tuple(work), loops, alone, together, shared)


def _writes(view: View, piece: Piece) -> bool:
    return any(access.writes for access in view.facts.accesses_in(piece.node))


def _counted(
    view: View, at_place: Place, work: Sequence[Piece], axis: int
) -> tuple[int, float, Access | None, tuple[Loop, ...]] | None:
    """(loads an output alone, loads an output among several, the access that shares most, loops to unroll)."""
    alone, together = 0, 0
    best: tuple[int, Access | None] = (0, None)
    loops: list[Loop] = []
    seen: dict[str, set[int]] = {}
    for place_of, piece in enumerate(work):
        behind = any(earlier.kind == "test" for earlier in work[:place_of])
        for access in view.facts.accesses_in(piece.node):
            if access.space != "global" or not access.reads or access.writes:
                if access.space == "unknown":
                    return None
                continue
            around = [loop for loop in view.facts.loops_around(access.node) if contains(piece.node, loop.node)]
            own = _touched(view, access, around, axis, 1)
            several = _touched(view, access, around, axis, OUTPUTS)
            every = sum(1 for above in ancestors(access.node) if above.type in LOOPS and contains(piece.node, above))
            if own is None or several is None or every != len(around):
                # a loop of unknown length: nothing is kept from one output to the next
                alone, together = alone + 1, together + OUTPUTS
                continue
            mine = seen.setdefault(access.name, set())
            fresh = len(several - mine)
            if behind or _branch(access.node, piece):
                fresh = OUTPUTS * len(own)
            else:
                mine |= several
            alone, together = alone + len(own), together + fresh
            saved = OUTPUTS * len(own) - fresh
            if saved > 0:
                loops += [loop for loop in around if loop not in loops]
            if saved > best[0]:
                best = (saved, access)
    return alone, together / OUTPUTS, best[1], tuple(loops)


def _branch(node: Node, piece: Piece) -> bool:
    """Whether a load is made in a branch: the compiler does not keep it for the next output then."""
    for above in ancestors(node):
        if above.type in ("if_statement", "conditional_expression", "switch_statement"):
            return True
        if above == piece.node:
            return False
    return False


def _touched(view: View, access: Access, loops: Sequence[Loop], axis: int, outputs: int) -> set[int] | None:
    """The elements that one thread's load touches, for so many outputs along the axis, all loops followed."""
    if access.index is None:
        return None
    found: set[int] = set()
    for output in range(outputs):
        thread = [0, 0, 0]
        thread[axis] = output
        (lane,) = lanes(view, [(thread[0], thread[1], thread[2])])
        turns = _turns(loops)
        if turns is None:
            return None
        for names in turns:
            element = access.index.relative({**lane, **names})
            if element is None:
                return None
            found.add(element)
    return found


def _turns(loops: Sequence[Loop]) -> Iterator[Mapping[str, int]] | None:
    """The values of the loops' variables in every turn; None where the loops' lengths are not fixed numbers."""
    values = []
    total = 1
    for loop in loops:
        steps = trip_values(loop, MOST_TURNS + 1)
        if steps is None or loop.bound.constant is None or loop.leaves_early or not steps:
            return None
        total *= len(steps)
        values.append([(loop.atom.name, step) for step in steps])
    return None if total > MOST_TURNS else (dict(turn) for turn in product(*values))
