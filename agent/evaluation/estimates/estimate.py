"""Estimated speed, always labelled so: counted work of sampled blocks on the published figures of a named card."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from agent.evaluation.estimates.counting import Counts, Recipe, count
from agent.evaluation.estimates.traffic import ARITHMETIC, LAUNCH_SECONDS, MODEL_ERROR, Load, load
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Speed
from agent.execution.compiler.result import Build, Resources
from agent.execution.device import Device
from agent.execution.targets import Target
from agent.workload.binding import BoundCopy, BoundFill, BoundLaunch, BoundStep
from agent.workload.program import Program
from agent.workload.workload import Access, Workload

if TYPE_CHECKING:
    from agent.evaluation.prepare import Prepared


@frozen
class Estimate:
    """Of one program on one card. ``seconds`` sum over the launches (and clears and copies) of the whole plan, as do
    ``terms``, what each resource alone takes. ``arithmetic_seconds``: what the ``arithmetic`` (the busiest kind) takes
    that was counted, on all of the card."""

    seconds: float
    limit: str
    dram_bytes: float
    needed_bytes: float
    counts: Mapping[str, float]
    recipe: Recipe
    terms: Mapping[str, float] = field(factory=dict, repr=False)
    arithmetic: str = ""
    arithmetic_seconds: float = 0.0

    @property
    def note(self) -> str:
        return self.recipe.note

    @property
    def at(self) -> str:
        """The sizes that all of this is for, where they are not the declared ones."""
        return self.recipe.at


MEMORY_FLOOR, ARITHMETIC_FLOOR = "memory floor", "arithmetic floor"

ENOUGH = 1.05
"""Headroom below which no search is worth its time: the original is within five per cent of the floor."""


@frozen
class Headroom:
    """``ratio``: estimated time over that of the nearer ``floor`` (None where nothing could be counted): MEMORY_FLOOR,
    the least traffic, or ARITHMETIC_FLOOR, what the original computes, which is no less than is needed. ``counted`` and
    ``needed`` are DRAM bytes. ``doubts``: what speaks against a figure that is near the floor. ``measured``: time and
    floor are a card's own. ``at``: the sizes that all of this is for, where they are not the declared ones."""

    ratio: float | None
    counted: int
    needed: int
    note: str
    floor: str = MEMORY_FLOOR
    doubts: tuple[str, ...] = ()
    measured: bool = False
    at: str = ""

    @property
    def how(self) -> str:
        """``measured`` or ``estimated``."""
        return "measured" if self.measured else "estimated"

    @property
    def exhausted(self) -> bool:
        """Nothing to gain: next to what memory needs at least, with no reason to doubt it."""
        return self.ratio is not None and self.ratio < ENOUGH and self.floor == MEMORY_FLOOR and not self.doubts


def estimate(
    program: Program, build: Build, workload: Workload, setting: Setting, choices: Sequence[Recipe]
) -> Estimate | str:
    """Count by the first recipe that works out and put the counts on the target; or say why there is no estimate."""
    counter = setting.device if setting.device.emulated else _emulator()
    counts = count(program, build, workload, evolve(setting, device=counter), choices)
    return counts if isinstance(counts, str) else _total(counts, build, setting)


def _emulator() -> Device:
    from agent.execution.emulator import Emulator

    return Emulator()


def _total(counts: Counts, build: Build, setting: Setting) -> Estimate:
    bound = counts.bound
    sizes = {buffer.name: buffer.nbytes for buffer in bound.buffers}
    loads: list[tuple[Load, int]] = []
    for counted, kind in zip(counts.counters, counts.kinds, strict=True):
        blocks = kind.launch.grid[0] * kind.launch.grid[1] * kind.launch.grid[2]
        used = build.resources.get(kind.launch.kernel, _LEAST)
        loads.append((load(counted, blocks, sizes, used, kind.launch.shared, setting.target), kind.times))
    moved = sum(_moved(step, sizes) for step in bound.steps)
    extra = sum(1 for step in bound.steps if not isinstance(step, BoundLaunch)) * LAUNCH_SECONDS
    seconds = sum(item.seconds * times for item, times in loads) + moved / setting.target.dram_bytes_per_s + extra
    longest = max(loads, key=lambda pair: pair[0].seconds * pair[1], default=None)
    totals: Counter[str] = Counter()
    terms: Counter[str] = Counter()
    for item, times in loads:
        totals.update({name: value * times for name, value in item.counts.items()})
        terms.update({name: value * times for name, value in item.terms.items()})
    needed = {name: sum(item.arithmetic[name] * times for item, times in loads) for name in ARITHMETIC}
    arithmetic = max(needed, key=lambda name: needed[name])
    return Estimate(
        seconds=seconds,
        limit=longest[0].limit if longest else "nothing is launched",
        dram_bytes=sum(item.dram_bytes * times for item, times in loads) + moved,
        needed_bytes=_needed(counts),
        counts=dict(totals),
        recipe=counts.recipe,
        terms=dict(terms),
        arithmetic=arithmetic,
        arithmetic_seconds=needed[arithmetic],
    )


_LEAST = Resources(32, 0, 0, 0, 0, 0)
"""For a kernel whose resources are not known: a usual number of registers."""


def _moved(step: BoundStep, sizes: Mapping[str, int]) -> int:
    """Bytes that a clear or a copy moves."""
    if isinstance(step, BoundFill):
        return sizes[step.buffer]
    return 2 * sizes[step.target] if isinstance(step, BoundCopy) else 0


def _needed(counts: Counts) -> float:
    """The least DRAM traffic of any program with these inputs and outputs: what the original touches of the workload's
    own buffers, once each, however many launches it takes. What it reads of a pure output it wrote itself."""
    sizes = {buffer.name: buffer.nbytes for buffer in counts.bound.buffers if not buffer.scratch}
    own = {buffer.name for buffer in counts.bound.buffers if buffer.access is Access.OUT}
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for counted in counts.counters:
        blocks = counted.grid[0] * counted.grid[1] * counted.grid[2]
        scale = blocks / max(1, counted.blocks_run)
        for total, touched in ((read, counted.touched_read), (written, counted.touched_written)):
            for name, sectors in touched.items():
                if name in sizes and not (total is read and name in own):
                    total[name] = max(total[name], min(int(sectors * scale) * 32, sizes[name]))
    return float(sum(read.values()) + sum(written.values()))


def headroom(prepared: "Prepared") -> Headroom:
    """How far the original is from its floor on the target."""
    found = prepared.original_estimate
    return Headroom(None, 0, 0, found) if isinstance(found, str) else headroom_of(found, prepared.setting.target)


def headroom_of(found: Estimate, target: Target) -> Headroom:
    """How far an estimate is from the nearer of the floors that inputs, outputs and arithmetic set."""
    memory = found.needed_bytes / target.dram_bytes_per_s
    notes = [f"limited by {found.limit}", *_how_counted(found)]
    floor, seconds = MEMORY_FLOOR, max(memory, LAUNCH_SECONDS)
    if found.arithmetic_seconds > seconds:
        floor, seconds = ARITHMETIC_FLOOR, found.arithmetic_seconds
        notes.append(f"what was counted of {found.arithmetic} is no less than is needed")
    elif memory <= LAUNCH_SECONDS:
        notes.append(f"{f'{found.at} is ' if found.at else ''}so small that a launch takes longer than the work")
    ratio = found.seconds / seconds
    doubts = tuple(_doubts(found)) if floor == MEMORY_FLOOR and ratio < ENOUGH else ()
    if doubts:
        notes.append(f"near the floor by estimate, but {' and '.join(doubts)}")
    counted, needed = int(found.dram_bytes), int(found.needed_bytes)
    return Headroom(ratio, counted, needed, "; ".join(notes), floor, doubts, at=found.at)


def _how_counted(found: Estimate) -> Iterator[str]:
    if found.at:
        yield f"the declared size could not be counted here, so all of this is for {found.at}"
    if found.note and found.note != f"counted at {found.at}":
        yield found.note


WASTED = 1.5
"""From what multiple of the ideal on sectors or passes are too many to trust a bandwidth that was never measured."""


def _doubts(found: Estimate) -> Iterator[str]:
    """Resources that may well be what limits a kernel whose estimate says that memory does."""
    counts = found.counts
    for what, ideal, words in (
        ("sectors", "ideal sectors", "sectors asked for where {:.3g} would do"),
        ("shared passes", "shared requests", "passes through shared memory for {:.3g} requests"),
    ):
        if counts.get(what, 0.0) >= WASTED * counts.get(ideal, 0.0) > 0:
            yield f"{counts[what]:.3g} {words.format(counts[ideal])}"
    for name, seconds in found.terms.items():
        if name != found.limit and seconds >= (1 - MODEL_ERROR) * found.seconds:
            yield f"{name} takes nearly as long"


COUNTED_BELOW = 0.9
"""Counted traffic below this part of the necessary traffic is no estimate."""


def speed(original: Estimate | str, candidate: Estimate | str, setting: Setting) -> Speed:
    """Old time over new time, estimated. On a GPU, where a measurement is expected, the state says there is none."""
    if isinstance(original, str) or isinstance(candidate, str):
        reason = original if isinstance(original, str) else candidate
        return Speed("none", target=setting.target.name, note=f"no estimate: {reason}")
    if original.recipe != candidate.recipe:
        return Speed("none", target=setting.target.name, note="no estimate: the two could not be counted at one size")
    if candidate.dram_bytes < COUNTED_BELOW * original.needed_bytes:
        # Less traffic than inputs and outputs take is no saving: what was counted does not carry over to this size.
        return Speed("none", target=setting.target.name, note="no estimate: its counts fall below what must be moved")
    ratio = original.seconds / candidate.seconds
    notes = [note for note in (original.note,) if note]
    if abs(ratio - 1) < MODEL_ERROR:
        notes.append(f"the difference is within the model's own error of {MODEL_ERROR:.0%}")
    return Speed(
        "estimated" if setting.device.emulated else "timing not verified",
        ratio=ratio,
        target=setting.target.name,
        original_seconds=original.seconds,
        candidate_seconds=candidate.seconds,
        original_limit=original.limit,
        candidate_limit=candidate.limit,
        note="; ".join(notes),
        at=original.at,
    )


def moved_counters(original: Estimate | str, candidate: Estimate | str) -> dict[str, tuple[float, float]]:
    """The counters of both sides, for the evidence."""
    if isinstance(original, str) or isinstance(candidate, str):
        return {}
    found = {name: (value, candidate.counts.get(name, 0.0)) for name, value in original.counts.items()}
    return {"DRAM bytes": (original.dram_bytes, candidate.dram_bytes), **found}
