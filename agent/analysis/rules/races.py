"""Pairs of accesses to shared memory by threads of different warps with no barrier between, found by going through the
threads of a block one by one."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly
from agent.analysis.coalescing import WARP
from agent.analysis.dependence import PURE
from agent.analysis.guards import COMPARISONS, decide, decided, stopped
from agent.analysis.loops import Loop, trip_values
from agent.analysis.rules.divergence import barriers
from agent.analysis.rules.finding import Hit, hit
from agent.analysis.rules.view import Lanes, View
from agent.analysis.syntax import ancestors, callee, contains, descendants, text
from agent.analysis.values import difference, is_uniform
from agent.analysis.vectors import Column, Names, vector

MOST_ACCESSES = 24
"""Of one array: with more, pairs are too many for a keystroke."""

NOWHERE = np.iinfo(np.int64).min // 4
HARMLESS = ("atomic", "__fm", "__fadd", "__fsub", "__fdiv", "__int", "__float", "printf")
"""How the names of functions begin that are known to wait for nobody, besides the pure ones."""


@frozen(eq=False)
class Race:
    """``first`` comes before ``second`` in the text, or a turn of a loop earlier (``carried``: that loop). ``threads``
    are two that meet: the one of ``first``, the one of ``second``."""

    name: str
    first: Access
    second: Access
    carried: Loop | None
    threads: tuple[int, int]


def races(view: View) -> Iterator[Race]:
    if view.everyone is None or np.size(view.everyone["threadIdx.x"]) <= WARP:
        return
    arrays: dict[str, list[Access]] = {}
    for access in view.facts.accesses:
        if access.space == "shared" and access.root is not None and not access.atomic:
            arrays.setdefault(access.root.key, []).append(access)
    for found in arrays.values():
        if len(found) <= MOST_ACCESSES and all(access.index is not None for access in found):
            yield from _Pairs(view, view.everyone).races(found)


def _apart(first: Access, second: Access) -> bool:
    """Whether one of two accesses writes and one reads."""
    return (first.writes and second.reads) or (second.writes and first.reads)


def _follows(first: Access, second: Access, view: View) -> bool:
    """Whether ``second`` is reached from ``first`` by going on in the text, with nothing between that may wait."""
    if contains(first.node, second.node) or contains(second.node, first.node):
        return False
    around = _common(first.node, second.node)
    if around.type in ("if_statement", "conditional_expression", "switch_statement", "else_clause"):
        return False
    return not _waits(view, first.node.end_byte, second.node.start_byte)


def _common(one: Node, other: Node) -> Node:
    return next((above for above in ancestors(one) if contains(above, other)), one)


def _carrying(first: Access, second: Access, view: View) -> Loop | None:
    """The innermost loop around both, where its next turn leads from ``first`` to ``second`` with nothing that may
    wait. ``first`` may stand in a loop of its own inside."""
    within = view.facts.loops_around(first.node)
    common = [loop for loop in within if contains(loop.body, second.node)]
    if not common:
        return None
    body, inner = common[-1].body, within[len(common) :]
    # a loop around the first that is not in canonical form may do anything
    start = inner[0].node.start_byte if inner else first.node.end_byte
    if _waits(view, start, body.end_byte) or _waits(view, body.start_byte, second.node.start_byte):
        return None
    return common[-1]


def _waits(view: View, start: int, end: int) -> bool:
    """Whether anything between two places may be a barrier, or may leave: a call that is not known, a jump."""
    for call in view.facts.calls:
        if start <= call.start_byte < end and not _harmless(callee(call)):
            return True
    jumps = descendants(view.facts.body, "gnu_asm_expression", "goto_statement", "continue_statement")
    return any(start <= jump.start_byte < end for jump in jumps)


def _harmless(name: str) -> bool:
    return name in PURE or name.startswith(
        ("atomic", "__fm", "__fadd", "__fsub", "__fdiv", "__int", "__float", "printf")
    )


class _Pairs:
    """Looks for two threads that meet; remembers which slots an access touches."""

    def __init__(self, view: View, threads: Lanes) -> None:
        self._view = view
        self._threads = threads
        self._warps = np.arange(np.size(threads["threadIdx.x"])) // WARP
        self._slots: dict[tuple[Access, bool], Column | None] = {}

    def races(self, found: list[Access]) -> Iterator[Race]:
        for at, first in enumerate(found):
            for second in found[at + 1 :]:
                if _apart(first, second) and _follows(first, second, self._view):
                    yield from self._race(first, second, None)
            for second in found:
                loop = _carrying(first, second, self._view) if _apart(first, second) else None
                if loop is not None:
                    yield from self._race(first, second, loop)

    def _race(self, first: Access, second: Access, loop: Loop | None) -> Iterator[Race]:
        offset = _uniform(first, second)
        if offset is None or self._exclusive(first, second, loop):
            return
        one, two = self._touched(first, None), self._touched(second, loop)
        meeting = None if one is None or two is None else self._meeting(one, two - offset * (two != NOWHERE))
        if meeting is not None:
            yield Race(first.name, first, second, loop, meeting)

    def _meeting(self, one: Column, two: Column) -> tuple[int, int] | None:
        """Two threads of different warps with the same slot."""
        owners: dict[int, list[int]] = {}
        for thread, slot in enumerate(one.tolist()):
            if slot != NOWHERE:
                owners.setdefault(slot, []).append(thread)
        warps = self._warps.tolist()
        for thread, slot in enumerate(two.tolist()):
            for owner in owners.get(slot, ()) if slot != NOWHERE else ():
                if warps[owner] != warps[thread]:
                    return owner, thread
        return None

    def _touched(self, access: Access, loop: Loop | None) -> Column | None:
        """For each thread the varying part of the index that it touches, NOWHERE where it does not come; with the loops
        around in their first turn, and ``loop`` in its second."""
        key = (access, loop is not None)
        if key not in self._slots:
            self._slots[key] = self._look(access, loop)
        return self._slots[key]

    def _look(self, access: Access, carried: Loop | None) -> Column | None:
        names = self._names(access, carried)
        slots = None if names is None else vector(_split(access.index or Poly())[0], names)
        if slots is None or names is None:
            return None
        away = stopped(self._view.guards(access), self._view.facts.scope, names)
        return np.where(away, NOWHERE, np.broadcast_to(slots, self._warps.shape))

    def _names(self, access: Access, carried: Loop | None) -> Names | None:
        """What names mean at an access; None where ``carried`` has no second turn."""
        names = dict(self._threads)
        for loop in self._view.facts.loops_around(access.node):
            start: int | Column | None = vector(loop.start, names)
            if loop is carried:
                values = trip_values(loop, 2)
                if values is not None and len(values) < 2:
                    return None
                start = values[1] if values is not None else None
            if start is not None:
                names[loop.atom.name] = start
        return names

    def _exclusive(self, first: Access, second: Access, loop: Loop | None) -> bool:
        """Whether a condition that is not known may keep the two apart: one that only one of them stands under, or one
        that picks threads of a block. A bound on the thread's number in the grid is met by whole blocks, all but
        one."""
        scope = self._view.facts.scope
        both = [self._view.guards(first), self._view.guards(second)]
        shared = {guard.condition.start_byte for guard in both[0]} & {guard.condition.start_byte for guard in both[1]}
        for found, names in zip(both, (self._names(first, None), self._names(second, loop)), strict=True):
            for guard in found:
                if guard.kind == "loop" or names is None or decided(decide(guard.condition, scope, names)):
                    continue
                if guard.kind == "switch":
                    return True
                if is_uniform(guard.condition, scope):
                    if guard.condition.start_byte not in shared:
                        return True
                elif not _grid_bound(guard.condition, self._view):
                    return True
        return False


def _split(index: Poly) -> tuple[Poly, Poly]:
    """(the part that depends on the thread or on a loop, the part that is the same for all)."""
    varying = tuple(term for term in index.terms if any(_varies(atom.name, atom.same_for_all) for atom in term[0]))
    return Poly(varying), Poly(tuple(term for term in index.terms if term not in varying))


def _varies(name: str, same: bool) -> bool:
    return not same or "@loop" in name


def _uniform(first: Access, second: Access) -> int | None:
    """How far apart the two uniform parts are; None where that is no number."""
    return (_split(second.index or Poly())[1] - _split(first.index or Poly())[1]).constant


def _grid_bound(condition: Node, view: View) -> bool:
    tests = [
        test
        for test in descendants(condition, "binary_expression")
        if text(test.child_by_field_name("operator")) in COMPARISONS
    ]
    return bool(tests) and all(
        text(test.child_by_field_name("operator")) not in ("==", "!=")
        and "unknown" not in difference(test, view.facts.scope).depends
        and any(source.startswith("blockIdx") for source in difference(test, view.facts.scope).depends)
        for test in tests
    )


def has_barrier(race: Race, view: View) -> bool:
    """Whether the loop that carries a race has a barrier, only not where it is needed."""
    return race.carried is not None and any(contains(race.carried.body, barrier) for barrier in barriers(view.facts))


def said(race: Race) -> Hit:
    """The words for a race, at its read."""
    read = race.second if race.second.reads and not race.second.writes else race.first
    if read.writes and race.second.reads:
        read = race.second
    other = race.second if read is race.first else race.first
    when = " in another turn of the loop" if race.carried is not None else ""
    return hit(
        read.node,
        f"no barrier between `{text(read.node)}` and `{text(other.node)}`: thread {race.threads[1]} touches the slot "
        f"that thread {race.threads[0]} touches{when}",
        related=((other.node, "the same slot, from another thread"),),
    )
