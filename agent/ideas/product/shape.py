"""A product-like kernel: which coordinates its operands share, how far each runs, and how it is launched."""

from collections.abc import Mapping

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, number
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.coordinates import Coordinate, coordinates
from agent.analysis.patterns.product_nest import Load
from agent.analysis.syntax import contains, descendants
from agent.ideas.exchange.plane import obstacles
from agent.ideas.product.conditions import Conjunct, conjuncts
from agent.ideas.product.extents import Extent, extents, parameter_trips
from agent.ideas.product.frame import Frame, frame
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type

TYPES = {"float": 4, "double": 8, "int": 4, "unsigned": 4, "unsigned int": 4}
"""Element types that are staged, with their bytes."""

FEW_TURNS = 8
"""A loop of fewer turns makes no step of a tile if another loop is longer."""


@frozen(eq=False)
class Side:
    """One operand's coordinates, slowest first, and the loads that depend on them. ``tests`` must hold for a place
    along this side (a thread has no work where they do not), ``counts`` for a turn to count."""

    digits: tuple[Coordinate, ...]
    loads: tuple[Load, ...]
    tests: tuple[Conjunct, ...]
    counts: tuple[Conjunct, ...]


@frozen(eq=False)
class Product:
    """Outputs at ``rows`` x ``cols`` for each value of ``outer``. ``step`` is the loop that is cut into steps.
    ``always`` are tests that no side's coordinates decide."""

    view: View
    frame: Frame
    rows: Side
    cols: Side
    outer: tuple[Coordinate, ...]
    always: tuple[Conjunct, ...]
    extents: Mapping[Coordinate, Extent]
    step: Loop
    turns: int

    @property
    def facts(self) -> Facts:
        return self.view.facts


def product(view: View, widths: tuple[int, ...] = (4, 8)) -> Product | str:
    """The product that a kernel computes, or why it is none. ``widths``: bytes that an element may have."""
    facts = view.facts
    obstacle = obstacles(view) or _synchronises(facts)
    if obstacle is not None:
        return obstacle
    places = coordinates(facts)
    if isinstance(places, str):
        return places
    framed = frame(places, facts)
    if isinstance(framed, str):
        return framed
    split = _sides(framed)
    if isinstance(split, str):
        return split
    left, right, outer = split
    reason = _types(framed, view, widths) or _aliases(framed, view) or _loose_coordinates(framed, left, right, facts)
    if reason is not None:
        return reason
    return _bounded(view, framed, left, right, outer)


def _synchronises(facts: Facts) -> str | None:
    if facts.barriers:
        return "its threads wait for each other already"
    if any(access.atomic or access.space == "shared" for access in facts.accesses):
        return "it uses shared memory or atomic operations already"
    return None


def _sides(framed: Frame) -> tuple[Side, Side, tuple[Coordinate, ...]] | str:
    """The two groups of coordinates that operands depend on, and those that belong to neither."""
    moving = [load for load in framed.nest.loads if load.over and load.turns]
    if any(load.over and not load.turns for load in framed.nest.loads):
        return "an element that stays the same in each turn is read inside the loop"
    if not moving:
        return "no operand depends on both the thread and the loop"
    common = frozenset.intersection(*(load.over for load in moving))
    groups: list[tuple[frozenset[Coordinate], list[Load]]] = []
    for load in moving:
        own = load.over - common
        touching = [group for group in groups if group[0] & own]
        merged = own.union(*(group[0] for group in touching))
        loads = [*(one for group in touching for one in group[1]), load]
        groups = [*(group for group in groups if group not in touching), (merged, loads)]
    groups = [group for group in groups if group[0]]
    if len(groups) != 2:
        return (
            "its operands do not fall into two that depend on different coordinates of the thread, so that neighbours "
            "would share them"
        )
    outer = [one for one in framed.places.digits if one not in groups[0][0] | groups[1][0]]
    sides = []
    for over, loads in groups:
        kept = [one for one in framed.places.digits if one in over and one.threads]
        kept = kept or [one for one in framed.places.digits if one in over][:1]
        outer += [one for one in framed.places.digits if one in over and one not in kept]
        sides.append(Side(tuple(reversed(kept)), tuple(loads), (), ()))
    first, second = sides
    return first, second, tuple(one for one in framed.places.digits if one in outer)


def _loose_coordinates(framed: Frame, left: Side, right: Side, facts: Facts) -> str | None:
    """A turn may use coordinates through the elements that it reads, and in no other way."""
    nest = framed.nest
    variables = frozenset(loop.variable for loop in nest.loops)
    staged = [node for load in nest.loads if load.over for node in load.nodes]
    staged += [one.node for one in facts.accesses for cell in nest.cells if one.root is cell.root]
    blocked = {*left.digits, *right.digits}
    waiting: list[Node] = list(nest.updates)
    done: set[int] = set()
    while waiting:
        for name in descendants(waiting.pop(), "identifier"):
            symbol = facts.symbols.resolve(name)
            if symbol is None or any(contains(node, name) for node in staged):
                continue
            if blocked & set(framed.places.of(symbol)):
                return f"{symbol.name} is used in the loop for more than to find an operand"
            if symbol.fixed and symbol.init is not None and symbol.declarator.start_byte not in done:
                done.add(symbol.declarator.start_byte)
                waiting.append(symbol.init)
            elif not symbol.fixed and symbol not in (*nest.accumulators, *variables):
                return f"{symbol.name} changes in the loop"
    return None


def _types(framed: Frame, view: View, widths: tuple[int, ...]) -> str | None:
    """Elements and accumulators are numbers of so many bytes, under whatever name."""
    named: set[str] = set()
    for access in (*(load.access for load in framed.nest.loads if load.over), *framed.nest.cells):
        if not _is_number(access, view, widths):
            return f"elements of type {access.element} are not staged"
        named.add(access.element)
    other = next((one for one in framed.nest.accumulators if one.type not in {*named, *TYPES}), None)
    return None if other is None else f"an accumulator of type {other.type} is not blocked"


def _is_number(access: Access, view: View, widths: tuple[int, ...]) -> bool:
    if access.element in TYPES:
        return True
    dtype = from_c_type(access.element)
    return (dtype is None or "x" not in dtype) and view.element_bytes(access) in widths


def _aliases(framed: Frame, view: View) -> str | None:
    """What the kernel writes must be no operand: then no order of reads and writes between threads matters."""
    facts = view.facts
    written = {access.root.name for access in facts.accesses if access.writes and access.root is not None}
    if any(access.writes and access.space not in ("global", "local") for access in facts.accesses):
        return "where it writes cannot be followed"
    read = {load.access.root.name for load in framed.nest.loads if load.access.root is not None}
    if written & read:
        return f"{sorted(written & read)[0]} is read in the loop and written as well"
    names = [parameter.name for parameter in view.kernel.parameters]
    buffers = {buffer.name for buffer in view.request.workload.buffers} | {
        scratch.name for scratch in view.request.plan.scratch
    }
    for launch in view.launches:
        given = dict(zip(names, launch.arguments, strict=False))
        ins = {name for one in read if one in given for name in given[one].names & buffers}
        outs = {name for one in written if one in given for name in given[one].names & buffers}
        if ins & outs:
            return f"a launch hands {sorted(ins & outs)[0]} to it as an operand and as the result"
    return None


def _bounded(view: View, framed: Frame, left: Side, right: Side, outer: tuple[Coordinate, ...]) -> Product | str:
    facts = view.facts
    variables = frozenset(loop.variable for loop in framed.nest.loops)
    guards = conjuncts(framed.guards, framed.places, variables, facts)
    counts = conjuncts(framed.nest.tests, framed.places, variables, facts)
    if any(one.reach.loose for one in (*guards, *counts)):
        return "a condition depends on something that changes or that is not known"
    found = extents(view, framed, guards, (*left.digits, *right.digits))
    if isinstance(found, str):
        return found
    known, rest = found
    if counts and not framed.nest.product:
        return "what counts only under a condition is no product that a zero would leave out"
    always: list[Conjunct] = []
    sides = [left, right]
    for one in rest:
        owners = [at for at, side in enumerate(sides) if one.reach.over & set(side.digits)]
        if len(owners) > 1:
            return f"`{one.spelled}` depends on both operands' coordinates"
        if not owners:
            always.append(one)
        else:
            sides[owners[0]] = evolve(sides[owners[0]], tests=(*sides[owners[0]].tests, one))
    for one in counts:
        owners = [at for at, side in enumerate(sides) if one.reach.over & set(side.digits)]
        if len(owners) > 1:
            return f"`{one.spelled}` depends on both operands' coordinates"
        for at in owners or [0, 1]:
            sides[at] = evolve(sides[at], counts=(*sides[at].counts, one))
    unknown = [one for one in outer if known[one].text is None]
    if len(unknown) > 1:
        return f"the kernel does not know how far {unknown[0].name} and {unknown[1].name} run"
    outer = (*(one for one in outer if one not in unknown), *unknown)
    step, turns = _step(view, framed)
    rows, cols = _oriented(sides, framed)
    return Product(view, framed, rows, cols, outer, tuple(always), known, step, turns)


def _step(view: View, framed: Frame) -> tuple[Loop, int]:
    """The loop to cut into steps, with its turns at the declared sizes: the innermost unless that is short."""
    turns = [parameter_trips(loop, view) for loop in framed.nest.loops]
    best = len(turns) - 1
    if framed.nest.product and turns[best] < FEW_TURNS:
        best = max(range(len(turns)), key=lambda at: (turns[at], at))
    return framed.nest.loops[best], turns[best]


def _oriented(sides: list[Side], framed: Frame) -> tuple[Side, Side]:
    """(rows, columns): neighbouring columns are neighbouring elements of what is stored. Of a side's coordinates the
    one that stores run along becomes the fastest."""
    fast = [_fastest(side, framed) for side in sides]
    ordered = [
        evolve(side, digits=(*(one for one in side.digits if one is not digit), digit)) if digit else side
        for side, digit in zip(sides, fast, strict=True)
    ]
    return (ordered[1], ordered[0]) if fast[0] is not None and fast[1] is None else (ordered[0], ordered[1])


def _fastest(side: Side, framed: Frame) -> Coordinate | None:
    for digit in side.digits:
        if any(access.index is not None and _unit(access.index, digit) for access in framed.stores):
            return digit
    return None


def _unit(index: Poly, digit: Coordinate) -> bool:
    coefficient = index.coefficient(digit.atom)
    return coefficient is not None and coefficient == number(1)
