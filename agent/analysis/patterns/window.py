"""Loops over a thread's neighbourhood: an element of an array for each pair of offsets from the thread's own place."""

from collections.abc import Mapping

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, number, unknown
from agent.analysis.dependence import conditions
from agent.analysis.facts import Facts
from agent.analysis.guards import COMPARISONS, guards
from agent.analysis.loops import Loop, trip_values
from agent.analysis.patterns.places import Place, places
from agent.analysis.syntax import bare, text
from agent.analysis.values import difference, leaves, replaced

WIDEST = 64


@frozen(eq=False)
class Axis:
    """``loop`` takes the offsets ``first .. last`` from ``place``, where the parameters in ``given`` are what they were
    said to be."""

    place: Place
    loop: Loop
    first: int
    last: int
    given: frozenset[str] = frozenset()

    @property
    def width(self) -> int:
        """How many places the windows of one block reach over."""
        return self.place.extent + self.last - self.first


@frozen(eq=False)
class Window:
    """``reads`` are of one element; where it lies, and whether it is read (``tests``: conditions inside the loops, each
    with whether it must hold), are functions of place plus offset along ``rows`` and along ``cols``. Lanes of a warp
    differ along ``cols``. ``nest`` is the outer of the two loops."""

    reads: tuple[Access, ...]
    index: Poly
    rows: Axis
    cols: Axis
    tests: tuple[tuple[Node, bool], ...]
    nest: Node

    @property
    def taps(self) -> int:
        return (self.rows.last - self.rows.first + 1) * (self.cols.last - self.cols.first + 1)

    @property
    def given(self) -> frozenset[str]:
        """Parameters whose values the offsets hang on."""
        return self.rows.given | self.cols.given


def windows(facts: Facts, given: Mapping[str, int] | None = None) -> tuple[Window, ...]:
    """Every window of two dimensions, the largest first. Needs the block's extents. ``given``: parameters with the
    value that every launch hands them."""
    known = places(facts)
    found: list[Window] = []
    for access in facts.accesses:
        if access.space != "global" or access.writes or access.index is None:
            continue
        if any(access.node in [read.node for read in one.reads] for one in found):
            continue
        window = _window(access, known, facts, given or {})
        if window is not None:
            found.append(window)
    return tuple(sorted(found, key=lambda one: -one.taps))


def _window(access: Access, known: tuple[Place, ...], facts: Facts, given: Mapping[str, int]) -> Window | None:
    index = access.index
    assert index is not None
    loops = facts.loops_around(access.node)
    axes = [axis for loop in loops if (axis := _axis(loop, index, known, given)) is not None]
    if len(axes) != 2 or axes[0].place is axes[1].place or axes[0].place.thread == axes[1].place.thread:
        return None
    cols = next((axis for axis in axes if axis.place.thread == "x"), None)
    if cols is None or not _nothing_else(index, axes, facts):
        return None
    rows = axes[0] if cols is axes[1] else axes[1]
    nest = axes[0].loop.node
    tests = tuple((g.condition, g.taken) for g in guards(access.node, nest) if g.kind != "loop")
    if not all(_moves_along(poly, axes) for test, _ in tests for poly in _comparisons(test, facts)):
        if not keeps_inside(index, {axis.place.lane for axis in axes}):
            return None
        tests = ()  # such as a mask's elements: what is not wanted may be fetched all the same
    reads = tuple(
        other
        for other in facts.accesses_in(nest)
        if other.root is access.root and other.index == index and not other.writes and _same_tests(other, access, nest)
    )
    return Window(reads, index, rows, cols, tests, nest)


def _axis(loop: Loop, index: Poly, known: tuple[Place, ...], given: Mapping[str, int]) -> Axis | None:
    used = frozenset(atom.name for end in (loop.start, loop.bound) for atom in leaves(end)) & set(given)
    start, bound = loop.start.evaluate(given), loop.bound.evaluate(given)
    if start is None or bound is None:
        return None
    loop = evolve(loop, start=number(start), bound=number(bound))
    turns = trip_values(loop, WIDEST + 1)
    if turns is None or not 1 < len(turns) <= WIDEST or loop.leaves_early:
        return None
    if loop.step != number(1) or loop.step_kind != "+" or loop.atom not in leaves(index):
        return None
    place = next((one for one in known if shifts(index, one, loop)), None)
    return None if place is None else Axis(place, loop, turns[0], turns[-1], used)


def shifts(poly: Poly, place: Place, loop: Loop) -> bool:
    """Whether a value hangs on place plus offset only."""
    moved = {loop.atom.name: number(0), place.lane: _lane(place, poly) + unknown(loop.atom)}
    return replaced(poly, moved) == poly


def _lane(place: Place, poly: Poly) -> Poly:
    atom = next((one for one in leaves(poly) if one.name == place.lane), None)
    return number(0) if atom is None else unknown(atom)


def _nothing_else(index: Poly, axes: list[Axis], facts: Facts) -> bool:
    """Whether the index holds no other thread index, no other loop's variable, and nothing that is not followed."""
    lanes = {axis.place.lane for axis in axes}
    loops = {axis.loop.atom for axis in axes}
    for atom in leaves(index):
        if atom in loops or atom.name in lanes or atom.name.startswith("blockIdx."):
            continue
        alone = atom.name.startswith("threadIdx.") and facts.scope.known.get(f"blockDim.{atom.name[-1]}") == 1
        if atom.depends and not alone:
            return False
    return True


def keeps_inside(index: Poly, lanes: set[str]) -> bool:
    """Whether the threads' indices come into an element's index through a minimum and a maximum, or a remainder, so
    that it lies inside the array wherever the place is."""
    return all(
        atom.formula is not None and _bounded(unknown(atom))
        for atom in index.atoms
        if any(leaf.name in lanes for leaf in leaves(unknown(atom)))
    )


def _bounded(poly: Poly) -> bool:
    """``min(max(...))`` either way round, or a remainder."""
    (atom,) = poly.atoms
    assert atom.formula is not None
    operation, operands = atom.formula
    if operation == "%":
        return True
    other = {"min": "max", "max": "min"}.get(operation)
    inner = [one for operand in operands for one in operand.atoms if one.formula is not None]
    return any(one.formula is not None and one.formula[0] == other for one in inner)


def _comparisons(test: Node | None, facts: Facts) -> list[Poly | None]:
    """Left minus right of every comparison that a condition is made of; None for what is none."""
    test = bare(test)
    if test is None:
        return [None]
    operator = text(test.child_by_field_name("operator"))
    if test.type == "binary_expression" and operator in ("&&", "||"):
        sides = (test.child_by_field_name("left"), test.child_by_field_name("right"))
        return [poly for side in sides for poly in _comparisons(side, facts)]
    if test.type == "unary_expression" and operator == "!":
        return _comparisons(test.child_by_field_name("argument"), facts)
    return [difference(test, facts.scope) if test.type == "binary_expression" and operator in COMPARISONS else None]


def _moves_along(poly: Poly | None, axes: list[Axis]) -> bool:
    if poly is None or "unknown" in poly.depends or "memory" in poly.depends:
        return False
    return all(shifts(poly, axis.place, axis.loop) for axis in axes)


def _same_tests(other: Access, access: Access, nest: Node) -> bool:
    return conditions(other.node, nest) == conditions(access.node, nest)
