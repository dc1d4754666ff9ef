"""What a warp's access to memory costs, counted lane by lane, as the rules need it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly
from agent.analysis.coalescing import BANKS, SECTOR, WARP, WORD, unrolled
from agent.analysis.guards import Guard, decide, decided, stopped
from agent.analysis.loops import trip_values
from agent.analysis.rules.view import Lanes, Part, View
from agent.analysis.syntax import bare, text
from agent.analysis.values import Scope, is_uniform
from agent.analysis.vectors import Column, vector

PITCH = 1024
"""Stands for the length of a row that is not known: long, and each row begins on a sector's edge."""
FEWEST_LANES = 8


@frozen(eq=False)
class Request:
    """One access to global memory as a warp makes it. ``slope`` is what ``threadIdx.x`` is multiplied with (None where
    the index is not linear in it). ``sectors`` were counted, ``ideal`` would do for as many elements side by side;
    ``exchanged`` were counted with x and y in each other's place. ``pitches`` are the names whose value was not known
    and that were taken to be large. ``least``: the block is not known, and there may be more."""

    access: Access
    index: Poly
    slope: Poly | None
    sectors: int
    ideal: int
    exchanged: int | None
    pitches: frozenset[str]
    part: Part
    least: bool

    @property
    def element_bytes(self) -> int:
        """From one element to the next."""
        return self.part.stride

    @property
    def words(self) -> str:
        """``32 sectors per request``, or at least so many."""
        return f"{'at least ' if self.least else ''}{self.sectors} sectors per request"

    @property
    def bad(self) -> bool:
        """Twice the sectors that as many lanes side by side would touch, or more."""
        return self.sectors >= 2 * self.ideal

    @property
    def step(self) -> int | None:
        """Bytes from what a thread takes to what its neighbour along x does, where that is a number."""
        constant = None if self.slope is None else self.slope.constant
        return None if constant is None else abs(constant) * self.part.stride

    @property
    def by_number(self) -> bool:
        """Whether the distance between lanes is bad by numbers alone, and not by the length of a row."""
        if self.slope is not None and self.slope.constant is None:
            return False
        return not self.pitches or (self.step or 0) > self.part.bytes


def fills(found: Request, view: View) -> bool:
    """Whether the thread itself takes all that lies between it and its neighbour, and that is a sector or less: a loop
    walks over it, or other accesses take the rest."""
    step = found.step or 0
    if not 0 < step <= SECTOR:
        return False
    for loop in view.facts.loops_around(found.access.node):
        along = found.access.index.coefficient(loop.atom.name) if found.access.index is not None else None
        if along is not None and loop.step.constant is not None and along.constant in (1, -1):
            return True
    taken: set[int] = set()
    for other in requests(view):
        apart = (other.index - found.index).constant
        if other.access.name == found.access.name and apart is not None:
            start = apart * other.part.stride + (other.part.offset if other.access.member else 0)
            most = other.part.bytes if other.access.member else max(other.part.stride, other.part.bytes)
            taken.update(byte % step for byte in range(start, start + most))
    return len(taken) == step


@lru_cache(maxsize=2)
def requests(view: View) -> tuple[Request, ...]:
    """Every access to global memory whose lanes can be followed, in text order."""
    return tuple(found for access in moved(view) if not access.atomic and (found := request(access, view)) is not None)


def moved(view: View) -> list[Access]:
    """Every access to global memory, in text order. Binding a reference moves nothing."""
    every = (*view.facts.accesses, *view.facts.hinted)
    found = (one for one in every if one.space == "global" and not _is_bound(one.node))
    return sorted(found, key=lambda one: one.node.start_byte)


def _is_bound(node: Node) -> bool:
    parent = node.parent
    declarator = parent.child_by_field_name("declarator") if parent is not None else None
    return declarator is not None and declarator.type == "reference_declarator"


def request(access: Access, view: View) -> Request | None:
    part = view.part(access)
    index = followed(access, view)
    if part is None or index is None or not view.warps:
        return None
    conditions = view.guards(access)
    if rare(conditions, view):
        return None
    pitches = stand_ins(index, view)
    best: tuple[int, int] | None = None
    for warp in view.warps:
        counted = _count(access, index, warp, pitches, part, view)
        if counted is None:
            return None
        # of several blocks that it may run with, the kindest
        if best is None or counted[0] * best[1] < best[0] * counted[1]:
            best = counted
    if best is None:
        return None
    exchanged = _exchanged(access, index, pitches, part, view)
    return Request(
        access,
        index,
        index.coefficient("threadIdx.x"),
        best[0],
        best[1],
        exchanged,
        frozenset(pitches),
        part,
        len(view.blocks) > 1,
    )


def followed(access: Access, view: View) -> Poly | None:
    """The index with its loops' variables written out, where nothing in it is unknown. What is loaded from one address
    by all threads of a block is the same for them."""
    exact = access.index is not None and not access.cast and "unknown" not in access.index.depends
    known = access.index if exact else access.spread
    if known is None:
        return None
    index = unrolled(known, view.facts.loops_around(access.node))
    return None if "unknown" in index.depends else index


def stand_ins(index: Poly, view: View) -> Mapping[str, int]:
    """Values for the names without one that multiply a thread index, or that it is clamped to or divided by:
    parameters and template arguments."""
    found: set[str] = set()
    for product, _ in index.terms:
        if any(not atom.same_for_all for atom in product):
            found.update(free(product))
    return {name: PITCH for name in found if name not in view.sizes}


def free(atoms: Iterable[Atom]) -> Iterator[str]:
    """The names of parameters and template arguments in them, in operands of formulas too."""
    for atom in atoms:
        if atom.formula is not None:
            for operand in atom.formula[1]:
                yield from free(operand.atoms)
        elif not atom.depends and not atom.name.startswith(("blockDim", "turn@")) and "@loop" not in atom.name:
            yield atom.name


def rare(conditions: tuple[Guard, ...], view: View) -> bool:
    """Whether a guard lets through only threads whose index equals something that is not known: how many lanes come
    there is not known either."""
    scope, warps = view.facts.scope, view.warps
    return any(
        guard.kind == "switch" or (bool(warps) and _equality(guard.condition, guard.taken, scope, warps[0]))
        for guard in conditions
    )


def _equality(condition: Node | None, taken: bool, scope: Scope, lanes: Lanes) -> bool:
    condition = bare(condition)
    if condition is None:
        return False
    operator = text(condition.child_by_field_name("operator"))
    if condition.type == "unary_expression" and operator == "!":
        return _equality(condition.child_by_field_name("argument"), not taken, scope, lanes)
    if condition.type != "binary_expression":
        return False
    sides = (condition.child_by_field_name("left"), condition.child_by_field_name("right"))
    if operator in ("&&", "||"):
        found = [_equality(side, taken, scope, lanes) for side in sides]
        return any(found) if (operator == "&&") == taken else all(found)
    wanted = (operator == "==") == taken if operator in ("==", "!=") else operator in ("&", "%")
    if not wanted or is_uniform(condition, scope):
        return False
    return not decided(decide(condition, scope, lanes))


def _count(
    access: Access, index: Poly, warp: Lanes, pitches: Mapping[str, int], part: Part, view: View
) -> tuple[int, int] | None:
    """(sectors that a warp touches, sectors that would do for as many lanes side by side)."""
    elements = vector(index, {**pitches, **warp}, offsets=True)
    if elements is None:
        return None
    away = view.away(access, warp)
    elements = np.broadcast_to(elements, away.shape)[~away]
    if len(elements) < FEWEST_LANES:
        return None
    starts = {element * part.stride + part.offset for element in elements.tolist()}
    touched = {byte // SECTOR for start in starts for byte in range(start, start + part.bytes, 4)}
    touched |= {(start + part.bytes - 1) // SECTOR for start in starts}
    return len(touched), max(1, -(-len(elements) * part.bytes // SECTOR))


def _exchanged(access: Access, index: Poly, pitches: Mapping[str, int], part: Part, view: View) -> int | None:
    counts = [_count(access, index, warp, pitches, part, view) for warp in view.exchanged]
    known = [counted[0] for counted in counts if counted is not None]
    return max(known) if known and len(known) == len(counts) else None


def passes(access: Access, view: View) -> tuple[int, int] | None:
    """(passes over shared memory, passes without conflict) of one access; the kindest block where several are
    possible. None where it cannot be followed. Elements of 8 and 16 bytes are served half and a quarter of a warp at
    a time."""
    part = view.part(access)
    index = followed(access, view)
    conditions = view.guards(access)
    if part is None or part.bytes not in (1, 2, 4, 8, 16) or index is None or rare(conditions, view):
        return None
    best: tuple[int, int] | None = None
    for warp in view.warps:
        counted = [
            _passes(_elements(access, index, {**warp, **names}, view), part) for names in _turns(index, access, view)
        ]
        known = [one for one in counted if one is not None]
        if not known:
            return None
        worst = max(known)
        best = worst if best is None else min(best, worst)
    return best


def _turns(index: Poly, access: Access, view: View) -> Iterator[Mapping[str, int]]:
    """The value of a loop's variable in the first turns of a loop that doubles or halves, where those are numbers."""
    for loop in view.facts.loops_around(access.node):
        if loop.step_kind != "+" and loop.atom in index.atoms and (values := trip_values(loop, 8)):
            yield from ({loop.atom.name: value} for value in values)
            return
    yield {}


def _elements(access: Access, index: Poly, lanes: Lanes, view: View) -> Column | None:
    """What each lane touches that is not known to be stopped; up to a summand that is the same for all."""
    found = vector(index, lanes, offsets=True)
    if found is None:
        return None
    away = stopped(view.guards(access), view.facts.scope, lanes)
    count = np.size(lanes["threadIdx.x"])
    return np.broadcast_to(found, count)[~np.broadcast_to(away, count)]


def _passes(elements: Column | None, part: Part) -> tuple[int, int] | None:
    if elements is None or len(elements) < FEWEST_LANES:
        return None
    lanes = WARP * WORD // max(part.bytes, WORD)
    groups = [elements[start : start + lanes] for start in range(0, WARP, lanes)]
    total = 0
    for group in groups:
        starts = [(element * part.stride + part.offset) // WORD for element in group.tolist()]
        words = {start + more for start in starts for more in range(max(1, part.bytes // WORD))}
        total += max(Counter(word % BANKS for word in words).values(), default=0)
    return total, sum(1 for group in groups if len(group))
