"""Each step of a kernel with its shadow beside it: the program's step runs as ever, then the cells of its results."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import define, field

from agent.execution.emulator.semantics import Unsupported, flatten, lower
from agent.execution.emulator.shadows.atomics import atomics
from agent.execution.emulator.shadows.bits import Operands, units_of
from agent.execution.emulator.shadows.cells import Cells, alternate, different, flags_of
from agent.execution.emulator.shadows.memory import After, Follow, copies, loads, stores, surface_loads, surface_stores
from agent.execution.emulator.shadows.pure import guarded, pure
from agent.execution.emulator.shadows.shadow import Twin
from agent.execution.emulator.shadows.textures import fetches
from agent.execution.emulator.shadows.warp import matrices, shuffles, tile_loads, tile_moves, tile_stores, votes
from agent.execution.emulator.values import LOWERERS, Lowering, Step, Values

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch

Place = tuple[str, int]
_HANDS_ON = frozenset(("st", "sust", "atom", "red", "shfl", "stmatrix"))


@define(eq=False)
class Lines:
    """For each entry the source lines that write it, and those that read it; a store reads from no line."""

    writers: dict[int, set[Place]] = field(factory=dict)
    readers: dict[int, set[Place]] = field(factory=dict)

    def note(self, lowering: Lowering, step: Step) -> None:
        site = lowering.site
        place = (site.file, site.line)
        for out in step.writes:
            self.writers.setdefault(out, set()).add(place)
        for entry in step.reads:
            stored = lowering.instruction.base in _HANDS_ON
            self.readers.setdefault(entry, set()).add(("", -1) if stored else place)

    def foreign(self, entry: int, place: Place) -> bool:
        """Whether an operand comes from other lines."""
        return place not in self.writers.get(entry, ())

    def leaves(self, entry: int, place: Place) -> bool:
        """Whether a result is used on other lines, or stored."""
        return bool(self.readers.get(entry, set()) - {place})


_FOLLOWERS: dict[str, Callable[[Lowering, Step], Follow | None]] = {
    "ld": loads,
    "ldu": loads,
    "st": stores,
    "atom": atomics,
    "red": atomics,
    "cp": copies,
    "tex": fetches,
    "suld": surface_loads,
    "sust": surface_stores,
    "shfl": shuffles,
    "vote": votes,
    "match": votes,
    "redux": votes,
    "elect": votes,
    "activemask": votes,
    "mma": matrices,
    "wmma": matrices,
    "ldmatrix": tile_loads,
    "stmatrix": tile_stores,
    "movmatrix": tile_moves,
}


def shadowed(lowering: Lowering, step: Step, lines: Lines) -> Step:
    """The step with its shadow. ``lines`` collects which lines use what."""
    lines.note(lowering, step)
    follow = _follower(lowering, step, lines)

    def run(values: Values, batch: "Batch") -> None:
        assert batch.twin is not None
        after = follow(values, batch, batch.twin)
        step.run(values, batch)
        after()

    return Step(run, step.reads, step.writes)


def _follower(lowering: Lowering, step: Step, lines: Lines) -> Follow:
    base = lowering.instruction.base
    if base == "cvta":
        return _same(step)
    if base not in LOWERERS or base == "mov":
        return _pure(lowering, step, lines)
    make = _FOLLOWERS.get(base)
    found = make(lowering, step) if make is not None else None
    return found or _forgets(step)


def _forgets(step: Step) -> Follow:
    """Results that have no shadow."""

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        def after() -> None:
            for out in step.writes:
                twin.put(batch.lanes, out, None)

        return after

    return follow


def _same(step: Step) -> Follow:
    """An address in another space: it differs where the address does."""

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        cells = twin.get(batch.lanes, step.reads[0])
        other = None if cells is None else alternate(cells, values[step.reads[0]])[0] - values[step.reads[0]]

        def after() -> None:
            (out,) = step.writes
            result = None
            if other is not None:
                result = different(values[out], values[out] + other, flags_of(cells), units_of(values[out]))
            twin.put(batch.lanes, out, result)

        return after

    return follow


def _pure(lowering: Lowering, step: Step, lines: Lines) -> Follow:
    site, item = lowering.site, lowering.item
    sources = len(flatten(lowering.instruction.sources)) if step.reads else 0
    entries, place = step.reads[:sources], (site.file, site.line)
    guard = None
    if item.guard is not None:
        guard = lowering.entries.register(lowering.frame, item.guard.register)
    try:
        operation = lower(lowering.instruction)
    except Unsupported:  # a move that the engine makes itself
        operation = None

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        lanes = batch.lanes
        cells = [twin.get(lanes, entry) for entry in entries]
        given = [values[entry] for entry in entries]
        old: list[Cells | None] = [twin.get(lanes, out) for out in step.writes] if guard is not None else []
        holds = values[guard] if guard is not None else None

        def after() -> None:
            results = [values[out] for out in step.writes]
            foreign = [lines.foreign(entry, place) for entry in entries]
            leaves = any(lines.leaves(out, place) for out in step.writes)
            found = pure(Operands(batch, twin, site, cells, given, results, foreign, leaves, operation))
            if guard is not None and holds is not None:
                assert item.guard is not None
                test = ~holds if item.guard.negated else holds
                units = [units_of(result) for result in results]
                found = guarded(test, twin.get(lanes, guard), old, found, units)
            for out, one in zip(step.writes, found, strict=True):
                twin.put(lanes, out, one)

        return after

    return follow
