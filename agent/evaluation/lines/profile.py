"""A kernel's lines, instructions and launches as counted in the emulator, and what a target card would make of them.

Counts of the blocks that ran are scaled to all blocks of all launches of the kernel; where every block ran they are
exact. Nothing is measured here.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import prod

from attrs import evolve, field, frozen

from agent.analysis.rules.counted import Executed
from agent.evaluation.estimates.caches import Moved
from agent.evaluation.estimates.counting import PATIENT, Counts, Kind, Recipe, count
from agent.evaluation.estimates.traffic import load
from agent.evaluation.lines.counts import bare, executed_on, recipes
from agent.evaluation.lines.facts import (
    Atomics,
    Branches,
    Facts,
    Local,
    ProfiledLine,
    PtxLine,
    SharedAccesses,
    Traffic,
    in_order,
    total,
)  # fmt: skip
from agent.evaluation.lines.precision import PrecisionLoss, precision_loss
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Sizes, describe
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, CompileFailure, Resources
from agent.execution.device import InstructionCounters, LaunchCounters
from agent.execution.occupancy import Occupancy, occupancy
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.program import Program
from agent.workload.workload import Workload

FAMILY = {
    "multiply": "int", "load": "memory", "store": "memory", "shared": "memory", "atomic": "memory",
    "barrier": "control", "branch": "control", "convert": "special",
}  # fmt: skip
"""Classes of ``LaunchCounters.mix`` by the family that they are shown as; those that are not here keep their name."""

_FAMILY_OF_OPCODE = {
    "cp": "memory", "ldmatrix": "memory", "stmatrix": "memory", "mbarrier": "control", "mma": "tensor",
    "wmma": "tensor", "wgmma": "tensor",
}  # fmt: skip
_OPCODE = re.compile(r"(?:@!?\S+\s+)?(\w+)")


@frozen
class ProfiledLaunch:
    """Launches of the kernel that do the same: ``times`` of them, of which ``blocks_run`` blocks of one ran.

    ``seconds`` is estimated for one of them, as the longest of the ``terms`` (what each resource alone takes) and a
    fixed cost; ``limit`` names it. ``moved`` are sectors of one launch. ``shared`` is dynamic shared memory in bytes.
    ``queues``: for each buffer with atomics, operations that wait for one another in all, and in the most wanted sector
    of those that every block goes to."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    times: int
    blocks_run: int
    occupancy: Occupancy
    seconds: float
    limit: str
    terms: Mapping[str, float]
    moved: Moved
    queues: Mapping[str, tuple[int, int]] = field(factory=dict)
    arithmetic: Mapping[str, float] = field(factory=dict)
    """Seconds that what one launch computes takes by kind, without addresses, on all of the card."""

    @property
    def blocks(self) -> int:
        return prod(self.grid)


def longest(launches: Sequence[ProfiledLaunch]) -> ProfiledLaunch:
    """Those that take most of all: what limits them limits the kernel."""
    return max(launches, key=lambda one: one.seconds * one.times)


def terms(launches: Sequence[ProfiledLaunch]) -> dict[str, float]:
    """Estimated seconds that each resource alone takes for all of them."""
    found: dict[str, float] = {}
    for one in launches:
        for name, seconds in one.terms.items():
            found[name] = found.get(name, 0.0) + seconds * one.times
    return found


@frozen
class Profile:
    """``sizes`` (in words) are those that were counted; ``declared`` says whether they are the workload's own.
    ``elsewhere`` is what belongs to no line of the file. ``resources`` are those of the kernel that is launched first.
    ``precision`` says where precision is lost (None: nobody asked, or no float is computed with). ``executed`` are the
    single instructions of the blocks that ran, by line.
    """

    kernel: str
    sizes: str
    declared: bool
    compiler: str
    arch: str
    target: str
    resources: Resources | None
    launches: tuple[ProfiledLaunch, ...]
    total: Facts
    lines: tuple[ProfiledLine, ...]
    elsewhere: Facts
    precision: PrecisionLoss | None = None
    executed: Mapping[int, tuple[Executed, ...]] = field(factory=dict, repr=False)

    @property
    def seconds(self) -> float:
        """Estimated, of all launches of the kernel."""
        return sum(one.seconds * one.times for one in self.launches)

    @property
    def complete(self) -> bool:
        """Whether every block ran, so that counts are exact."""
        return all(one.blocks_run == one.blocks for one in self.launches)


def profile(
    document: Document,
    kernel: Kernel,
    workload: Workload,
    setting: Setting,
    sizes: Sizes | None = None,
    seconds: float | None = None,
    precision: bool = False,
) -> tuple[Profile, Build] | CompileFailure | str:
    """Count the kernel at its workload's sizes, or at ``sizes``: some blocks; where that takes too long, one; where
    that does as well, at the first smaller sizes that can be counted. Or say why there is no profile. ``seconds`` caps
    each attempt. ``precision`` asks where precision is lost, too."""
    program = Program(document, workload.plan, kernel.name)
    built = build(program, setting.options, cancelled=setting.cancelled, lenient=True)
    if isinstance(built, CompileFailure):
        return built
    choices = list(recipes(workload, program)) if sizes is None else [Recipe(sizes, ((1.0, sizes),))]
    found = count(program, built, workload, setting, choices[:1], seconds)
    if isinstance(found, str):
        found = count(program, built, workload, setting, choices[:1], seconds, most=1)
    if isinstance(found, str) and len(choices) > 1:
        found = count(program, built, workload, setting, choices[1:], seconds)
    if isinstance(found, str):
        return found
    mine = mine_of(found, kernel)
    if not mine:
        return f"no launch of {kernel.name} ran"
    result = _profile(found, mine, built, kernel, setting, choices[0], document.path)
    if precision:
        sizes = found.recipe.points[-1][1]
        loss = precision_loss(program, built, workload, setting, kernel, sizes, seconds or PATIENT)
        result = evolve(result, precision=loss)
    return result, built


def _profile(
    found: Counts,
    mine: Sequence[tuple[LaunchCounters, Kind]],
    built: Build,
    kernel: Kernel,
    setting: Setting,
    first: Recipe,
    path: str,
) -> Profile:
    launches = launches_of(found, mine, built, setting)
    here, elsewhere = _by_line(mine, path)
    return Profile(
        kernel=kernel.qualified_name,
        sizes=describe(found.recipe.target),
        declared=found.recipe.target == first.target,
        compiler=built.compiler,
        arch=built.arch,
        target=setting.target.name,
        resources=built.resources.get(mine[0][1].launch.kernel),
        launches=launches,
        total=total([*(line.facts for line in here), elsewhere]),
        lines=here,
        elsewhere=elsewhere,
        executed=executed_on((one for one, _ in mine), path),
    )


def launches_of(
    found: Counts, mine: Sequence[tuple[LaunchCounters, Kind]], built: Build, setting: Setting
) -> tuple[ProfiledLaunch, ...]:
    """Those ``mine`` of what was counted, on the card."""
    buffers = {buffer.name: buffer.nbytes for buffer in found.bound.buffers}
    return tuple(_launch(counters, kind, built, buffers, setting) for counters, kind in mine)


def mine_of(found: Counts, kernel: Kernel) -> list[tuple[LaunchCounters, Kind]]:
    """The launches of one kernel among all that were counted; empty where none of them ran."""
    mine = [pair for pair in zip(found.counters, found.kinds, strict=True) if bare(pair[0].kernel) == kernel.name]
    return mine if any(counters.blocks_run for counters, _ in mine) else []


def _launch(
    counters: LaunchCounters, kind: Kind, built: Build, buffers: Mapping[str, int], setting: Setting
) -> ProfiledLaunch:
    launch = kind.launch
    resources = built.resources.get(launch.kernel) or Resources(32, 0, 0, 0, 0, 0)
    blocks = prod(launch.grid)
    found = load(counters, blocks, buffers, resources, launch.shared, setting.target)
    scale = blocks / max(1, counters.blocks_run)
    return ProfiledLaunch(
        kernel=launch.kernel,
        grid=launch.grid,
        block=launch.block,
        shared=launch.shared,
        times=kind.times,
        blocks_run=counters.blocks_run,
        occupancy=occupancy(setting.target.arch, resources, prod(launch.block), launch.shared),
        seconds=found.seconds,
        limit=found.limit,
        terms=found.terms,
        moved=found.moved,
        queues={
            name: (round(queued * scale), round(counters.queued_at_one.get(name, 0) * scale))
            for name, queued in counters.queued.items()
        },
        arithmetic=found.arithmetic,
    )


def _by_line(mine: Sequence[tuple[LaunchCounters, Kind]], path: str) -> tuple[tuple[ProfiledLine, ...], Facts]:
    """By line of the user's file, in order; and what is in other files, or nowhere."""
    found = _instructions(mine)
    files = {one.file for one, _ in found if one.line > 0}
    own = next(iter(files)) if len(files) == 1 else path
    there = sorted((pair for pair in found if _in(pair[0], own)), key=lambda pair: pair[0].line)
    lines = tuple(_line(number, list(pairs)) for number, pairs in groupby(there, key=lambda pair: pair[0].line))
    return lines, total(facts for one, facts in found if not _in(one, own))


def _in(one: InstructionCounters, file: str) -> bool:
    return one.line > 0 and one.file == file


def _instructions(mine: Sequence[tuple[LaunchCounters, Kind]]) -> list[tuple[InstructionCounters, Facts]]:
    """Each instruction of each kernel (instances of a template are several) with its counts over all launches."""
    by_kernel: dict[str, list[tuple[LaunchCounters, Kind]]] = {}
    for counters, kind in mine:
        by_kernel.setdefault(counters.kernel, []).append((counters, kind))
    found = []
    for pairs in by_kernel.values():
        scales = [prod(kind.launch.grid) * kind.times / max(1, counters.blocks_run) for counters, kind in pairs]
        for same in zip(*(counters.instructions for counters, _ in pairs), strict=True):
            parts = (_facts(one, scale) for one, scale in zip(same, scales, strict=True))
            found.append((same[0], total(parts)))
    return found


def _line(number: int, pairs: Sequence[tuple[InstructionCounters, Facts]]) -> ProfiledLine:
    ptx = tuple(PtxLine(" ".join(one.text.split()), facts) for one, facts in pairs)
    return ProfiledLine(number, total(line.facts for line in ptx), ptx)


def _facts(one: InstructionCounters, scale: float) -> Facts:
    counts = one.counts

    def scaled(value: int) -> int:
        return round(value * scale)

    traffic = Traffic(scaled(counts.requests), scaled(counts.sectors), scaled(counts.ideal_sectors))
    atomic, writes = counts.atomics > 0, counts.store_sectors > 0
    passes = counts.shared_requests * max(1, one.width // 4)
    return Facts(
        instructions=scaled(counts.instructions),
        lanes=scaled(counts.thread_instructions),
        mix=in_order({family(one): scaled(counts.instructions)}),
        loads=Traffic() if atomic or writes else traffic,
        stores=traffic if writes and not atomic else Traffic(),
        updates=traffic if atomic else Traffic(),
        shared=SharedAccesses(
            scaled(counts.shared_requests), scaled(counts.wavefronts), scaled(min(passes, counts.wavefronts))
        ),
        branches=Branches(scaled(counts.branches), scaled(counts.divergent), scaled(counts.branch_lanes)),
        atomics=Atomics(scaled(counts.atomics), scaled(counts.atomic_rounds)),
        local=Local(scaled(counts.local_requests), scaled(counts.local_sectors)),
        barriers=scaled(counts.barriers),
    )


def family(one: InstructionCounters) -> str:
    """The class of facts.FAMILIES that an instruction is shown under."""
    opcode = _OPCODE.match(one.text)
    named = _FAMILY_OF_OPCODE.get(opcode[1]) if opcode else None
    return named or FAMILY.get(one.kind, one.kind)
