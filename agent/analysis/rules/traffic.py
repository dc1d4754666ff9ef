"""What a warp's access to memory costs, counted lane by lane, as the rules need it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly
from agent.analysis.coalescing import BANKS, SECTOR, WORD, unrolled
from agent.analysis.guards import Guard, holds, reaches
from agent.analysis.loops import trip_values
from agent.analysis.rules.view import Lane, View
from agent.analysis.syntax import bare, text
from agent.analysis.values import Scope, is_uniform

PITCH = 1024
"""Stands for the length of a row that is not known: long, and each row begins on a sector's edge."""
FEWEST_LANES = 8


@frozen(eq=False)
class Request:
    """One access to global memory as a warp makes it. ``slope`` is what ``threadIdx.x`` is multiplied with (None where
    the index is not linear in it). ``sectors`` were counted, ``ideal`` would do for as many elements side by side;
    ``exchanged`` were counted with x and y in each other's place. ``pitches`` are the names whose value was not known
    and that were taken to be large."""

    access: Access
    index: Poly
    slope: Poly | None
    sectors: int
    ideal: int
    exchanged: int | None
    pitches: frozenset[str]
    element_bytes: int


@lru_cache(maxsize=2)
def requests(view: View) -> tuple[Request, ...]:
    """Every access to global memory whose lanes can be followed, in text order."""
    return tuple(
        found
        for access in view.facts.accesses
        if access.space == "global" and not access.atomic and (found := request(access, view)) is not None
    )


def request(access: Access, view: View) -> Request | None:
    size = view.element_bytes(access)
    index = followed(access, view)
    if size is None or index is None or not view.warps:
        return None
    conditions = view.guards(access)
    if rare(conditions, view):
        return None
    pitches = stand_ins(index, view)
    best: tuple[int, int] | None = None
    for warp in view.warps:
        counted = _count(index, warp, conditions, pitches, size, view)
        if counted is None:
            return None
        # of several blocks that it may run with, the kindest
        if best is None or counted[0] * best[1] < best[0] * counted[1]:
            best = counted
    if best is None:
        return None
    exchanged = _exchanged(index, conditions, pitches, size, view)
    return Request(
        access, index, index.coefficient("threadIdx.x"), best[0], best[1], exchanged, frozenset(pitches), size
    )


def followed(access: Access, view: View) -> Poly | None:
    """The index with its loops' variables written out, where nothing in it is loaded or unknown."""
    if access.index is None:
        return None
    index = unrolled(access.index, view.facts.loops_around(access.node))
    return None if index.depends & {"memory", "unknown"} else index


def stand_ins(index: Poly, view: View) -> Mapping[str, int]:
    """Values for the names without one that multiply a thread index, or that it is clamped to or divided by:
    parameters and template arguments."""
    found: set[str] = set()
    for product, _ in index.terms:
        if any(not atom.same_for_all for atom in product):
            found.update(_free(product))
    return {name: PITCH for name in found if name not in view.sizes}


def _free(atoms: Iterable[Atom]) -> Iterator[str]:
    for atom in atoms:
        if atom.formula is not None:
            for operand in atom.formula[1]:
                yield from _free(operand.atoms)
        elif not atom.depends and not atom.name.startswith(("blockDim", "turn@")) and "@loop" not in atom.name:
            yield atom.name


def rare(conditions: tuple[Guard, ...], view: View) -> bool:
    """Whether a guard lets through only threads whose index equals something that is not known: how many lanes come
    there is not known either."""
    scope, warps = view.facts.scope, view.warps
    return any(
        guard.kind == "switch" or (bool(warps) and _equality(guard.condition, guard.taken, scope, warps[0][0]))
        for guard in conditions
    )


def _equality(condition: Node | None, taken: bool, scope: Scope, lane: Lane) -> bool:
    condition = bare(condition)
    if condition is None:
        return False
    operator = text(condition.child_by_field_name("operator"))
    if condition.type == "unary_expression" and operator == "!":
        return _equality(condition.child_by_field_name("argument"), not taken, scope, lane)
    if condition.type != "binary_expression":
        return False
    sides = (condition.child_by_field_name("left"), condition.child_by_field_name("right"))
    if operator in ("&&", "||"):
        found = [_equality(side, taken, scope, lane) for side in sides]
        return any(found) if (operator == "&&") == taken else all(found)
    wanted = (operator == "==") == taken if operator in ("==", "!=") else operator in ("&", "%")
    if not wanted or is_uniform(condition, scope):
        return False
    return holds(condition, scope, lane) is None


def active(warp: tuple[Lane, ...], conditions: tuple[Guard, ...], view: View) -> list[Lane]:
    """The lanes that are not known to be stopped."""
    return [lane for lane in warp if reaches(conditions, view.facts.scope, lane) is not False]


def _count(
    index: Poly,
    warp: tuple[Lane, ...],
    conditions: tuple[Guard, ...],
    pitches: Mapping[str, int],
    size: int,
    view: View,
) -> tuple[int, int] | None:
    elements: set[int] = set()
    lanes = active(warp, conditions, view)
    for lane in lanes:
        element = index.relative({**pitches, **lane})
        if element is None:
            return None
        elements.add(element)
    if len(lanes) < FEWEST_LANES:
        return None
    touched = {at // SECTOR for element in elements for at in (element * size, element * size + size - 1)}
    return len(touched), max(1, -(-len(elements) * size // SECTOR))


def _exchanged(
    index: Poly, conditions: tuple[Guard, ...], pitches: Mapping[str, int], size: int, view: View
) -> int | None:
    counts = []
    for block in view.blocks:
        if "y" not in view.axes or block[1] < 2:
            return None
        counted = _count(index, view.lanes(block, True), conditions, pitches, size, view)
        if counted is None:
            return None
        counts.append(counted[0])
    return max(counts, default=None)


def passes(access: Access, view: View) -> tuple[int, int] | None:
    """(passes over shared memory, passes without conflict) of one access; the kindest block where several are
    possible. None where it cannot be followed. Elements of 8 bytes are served half a warp at a time."""
    size = view.element_bytes(access)
    index = followed(access, view)
    conditions = view.guards(access)
    if size is None or size not in (1, 2, 4, 8) or index is None or rare(conditions, view):
        return None
    best: tuple[int, int] | None = None
    for warp in view.warps:
        counted = [
            _passes(index, active(tuple({**lane, **names} for lane in warp), conditions, view), size)
            for names in _turns(index, access, view)
        ]
        known = [one for one in counted if one is not None]
        if not known:
            return None
        worst = max(known)
        best = worst if best is None else min(best, worst)
    return best


def _turns(index: Poly, access: Access, view: View) -> Iterator[Lane]:
    """The value of a loop's variable in the first turns of a loop that doubles or halves, where those are numbers."""
    for loop in view.facts.loops_around(access.node):
        if loop.step_kind != "+" and loop.atom in index.atoms and (values := trip_values(loop, 8)):
            yield from ({loop.atom.name: value} for value in values)
            return
    yield {}


def _passes(index: Poly, lanes: list[Lane], size: int) -> tuple[int, int] | None:
    if len(lanes) < FEWEST_LANES:
        return None
    groups = [lanes] if size <= WORD else [lanes[:16], lanes[16:]]
    total = 0
    for group in groups:
        banks: dict[int, set[int]] = {}
        for lane in group:
            element = index.relative(lane)
            if element is None:
                return None
            first = element * size // WORD
            for word in range(first, first + max(1, size // WORD)):
                banks.setdefault(word % BANKS, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total, sum(1 for group in groups if group)
