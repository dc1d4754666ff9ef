"""Estimated speed, always labelled so: counted work of sampled blocks on the published figures of a named card."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from agent.evaluation.counting import Counts, Recipe, count
from agent.evaluation.setting import Setting
from agent.evaluation.traffic import LAUNCH_SECONDS, MODEL_ERROR, Load, load
from agent.evaluation.verdict import Speed
from agent.execution.compiler.result import Build, Resources
from agent.execution.device import Device
from agent.workload.binding import BoundCopy, BoundFill, BoundLaunch, BoundStep
from agent.workload.program import Program
from agent.workload.workload import Workload

if TYPE_CHECKING:
    from agent.evaluation.prepare import Prepared


@frozen
class Estimate:
    """Of one program on one card. ``seconds`` sum over the launches (and clears and copies) of the whole plan."""

    seconds: float
    limit: str
    dram_bytes: float
    needed_bytes: float
    counts: Mapping[str, float]
    recipe: Recipe

    @property
    def note(self) -> str:
        return self.recipe.note


@frozen
class Headroom:
    """``ratio``: estimated time over the time that the least traffic takes (None where nothing could be counted).
    ``counted`` and ``needed`` are DRAM bytes."""

    ratio: float | None
    counted: int
    needed: int
    note: str


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
    for item, times in loads:
        totals.update({name: value * times for name, value in item.counts.items()})
    return Estimate(
        seconds=seconds,
        limit=longest[0].limit if longest else "nothing is launched",
        dram_bytes=sum(item.dram_bytes * times for item, times in loads) + moved,
        needed_bytes=_needed(counts),
        counts=dict(totals),
        recipe=counts.recipe,
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
    own buffers, once each, however many launches it takes."""
    sizes = {buffer.name: buffer.nbytes for buffer in counts.bound.buffers if not buffer.scratch}
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for counted in counts.counters:
        blocks = counted.grid[0] * counted.grid[1] * counted.grid[2]
        scale = blocks / max(1, counted.blocks_run)
        for total, touched in ((read, counted.touched_read), (written, counted.touched_written)):
            for name, sectors in touched.items():
                if name in sizes:
                    total[name] = max(total[name], min(int(sectors * scale) * 32, sizes[name]))
    return float(sum(read.values()) + sum(written.values()))


def headroom(prepared: "Prepared") -> Headroom:
    """How far the original is from the floor that its inputs and outputs set on the target."""
    found = prepared.original_estimate
    if isinstance(found, str):
        return Headroom(None, 0, 0, found)
    target = prepared.setting.target
    floor = max(found.needed_bytes / target.dram_bytes_per_s, LAUNCH_SECONDS)
    notes = [f"limited by {found.limit}"] + ([found.note] if found.note else [])
    if found.needed_bytes / target.dram_bytes_per_s <= LAUNCH_SECONDS:
        notes.append("so small that a launch takes longer than the work")
    return Headroom(found.seconds / floor, int(found.dram_bytes), int(found.needed_bytes), "; ".join(notes))


def speed(original: Estimate | str, candidate: Estimate | str, setting: Setting) -> Speed:
    """Old time over new time, estimated. On a GPU, where a measurement is expected, the state says there is none."""
    if isinstance(original, str) or isinstance(candidate, str):
        reason = original if isinstance(original, str) else candidate
        return Speed("none", target=setting.target.name, note=f"no estimate: {reason}")
    if original.recipe != candidate.recipe:
        return Speed("none", target=setting.target.name, note="no estimate: the two could not be counted at one size")
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
    )


def moved_counters(original: Estimate | str, candidate: Estimate | str) -> dict[str, tuple[float, float]]:
    """The counters of both sides, for the evidence."""
    if isinstance(original, str) or isinstance(candidate, str):
        return {}
    found = {name: (value, candidate.counts.get(name, 0.0)) for name, value in original.counts.items()}
    return {"DRAM bytes": (original.dram_bytes, candidate.dram_bytes), **found}
