"""What the lines of a kernel cost, counted on a few of its blocks: enough for a hint while somebody types.

Nothing is proved here. A run that faults, takes too long or is refused says so and counts nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from agent.analysis.rules.counted import Executed
from agent.evaluation.estimates.counting import Counts, Recipe, count
from agent.evaluation.lines.costs import CountedLine, LineCounts
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bound_at, declared, describe, loop_sizes
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure
from agent.execution.device import InstructionCounters, LaunchCounters
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.errors import WorkloadError
from agent.workload.program import Program
from agent.workload.workload import MADE_UP, Workload

CUTS = (16, 64)
"""What sizes are divided by where the declared ones take too long."""

SMALLEST = 32


@frozen
class KernelCounts:
    """What the lines of a kernel cost, and what was executed of each instruction, by line of its own file. ``sizes``
    in words, empty where the launch has none."""

    lines: LineCounts
    executed: Mapping[int, tuple[Executed, ...]]
    sizes: str


def count_lines(document: Document, kernel: Kernel, workload: Workload, setting: Setting) -> LineCounts | str:
    """Run some blocks of the kernel in the emulator, or say why there are no counts."""
    counted = count_kernel(document, kernel, workload, setting)
    if isinstance(counted, CompileFailure):
        return counted.message
    return counted if isinstance(counted, str) else counted.lines


def count_kernel(
    document: Document, kernel: Kernel, workload: Workload, setting: Setting
) -> KernelCounts | CompileFailure | str:
    """The same with each instruction."""
    program = Program(document, workload.plan, kernel.name)
    built = build(program, setting.options, cancelled=setting.cancelled, lenient=True)
    if isinstance(built, CompileFailure):
        return built
    try:
        found = count(program, built, workload, setting, list(recipes(workload, program)))
    except WorkloadError as error:
        return str(error)
    lines = found if isinstance(found, str) else _lines(found, kernel)
    if isinstance(found, str) or isinstance(lines, str):
        return str(lines)
    sizes = describe(found.recipe.target) if found.recipe.target else ""
    lines = evolve(lines, made_up=workload.origin.kind == MADE_UP)
    mine = [one for one in found.counters if bare(one.kernel) == kernel.name and one.blocks_run]
    return KernelCounts(lines, executed_on(mine, document.path), sizes)


def recipes(workload: Workload, program: Program) -> Iterator[Recipe]:
    """The declared sizes, then smaller ones: what threads loop over first, which changes the least."""
    top = declared(workload)
    yield Recipe(top, ((1.0, top),))
    loops = loop_sizes(workload, program)
    for only in dict.fromkeys((loops, frozenset(top))):
        for cut in CUTS:
            smaller = {name: _cut(value, cut) if name in only else value for name, value in top.items()}
            if smaller != top and _binds(workload, program, smaller):
                yield Recipe(smaller, ((1.0, smaller),))


def _cut(value: int, by: int) -> int:
    """Only where nothing is left over: sizes may have to be multiples of something."""
    return value // by if value % by == 0 and value // by >= SMALLEST else value


def _binds(workload: Workload, program: Program, sizes: Mapping[str, int]) -> bool:
    try:
        bound_at(workload, program, sizes)
    except WorkloadError:
        return False
    return True


def _lines(found: Counts, kernel: Kernel) -> LineCounts | str:
    mine = [one for one in found.counters if bare(one.kernel) == kernel.name and one.blocks_run]
    if not mine:
        return f"no launch of {kernel.name} ran"
    passes = _ideal_passes(mine)
    numbers = sorted({number for one in mine for number in one.lines if number > 0})
    lines = tuple(_line(mine, number, passes.get(number, 1)) for number in numbers)
    blocks = sum(one.blocks_run for one in mine)
    return LineCounts(kernel.name, lines, blocks, mine[0].block, describe(found.recipe.target))


def _line(launches: Sequence[LaunchCounters], number: int, ideal_passes: int) -> CountedLine:
    there = [one.lines[number] for one in launches if number in one.lines]

    def total(name: str) -> int:
        return sum(int(getattr(line, name)) for line in there)

    return CountedLine(
        number,
        requests=total("requests"),
        sectors=total("sectors"),
        ideal_sectors=total("ideal_sectors"),
        shared_requests=total("shared_requests"),
        passes=total("wavefronts"),
        ideal_passes=ideal_passes,
        local_requests=total("local_requests"),
        atomics=total("atomics"),
        instructions=total("instructions"),
        lanes=total("thread_instructions"),
        stores=_stores(launches, number),
    )


def _stores(launches: Sequence[LaunchCounters], number: int) -> tuple[int, int, int]:
    """Requests, sectors and fewest sectors of a line's stores to global memory."""
    every = (one for launch in launches for one in launch.instructions)
    found = [one.counts for one in every if one.line == number and one.kind == "store" and one.counts.requests]
    return (
        sum(one.requests for one in found),
        sum(one.sectors for one in found),
        sum(one.ideal_sectors for one in found),
    )


def executed_on(launches: Iterable[LaunchCounters], path: str) -> dict[int, tuple[Executed, ...]]:
    """By line of a kernel's own file, the instructions that were executed in its launches."""
    lines: dict[int, list[Executed]] = {}
    for launched in launches:
        for one in launched.instructions:
            if one.counts.instructions and one.line > 0 and (not one.file or one.file == path):
                lines.setdefault(one.line, []).append(executed(one))
    return {line: tuple(listed) for line, listed in lines.items()}


def executed(one: InstructionCounters) -> Executed:
    """One instruction, as the rules' deciders take it."""
    opcode = next((word for word in one.text.split() if not word.startswith("@")), "").rstrip(";")
    counts = one.counts
    return Executed(
        one.kind,
        opcode,
        counts.instructions,
        counts.thread_instructions,
        counts.requests,
        counts.sectors,
        counts.ideal_sectors,
        counts.shared_requests,
        counts.wavefronts,
        counts.shared_requests * max(1, one.width // 4),
        counts.local_requests,
        counts.atomics,
        counts.divergent,
        one.width,
    )


def bare(name: str) -> str:
    """A kernel's name without namespaces and template arguments."""
    return name.split("<")[0].split("::")[-1].strip()


def _ideal_passes(launches: Sequence[LaunchCounters]) -> dict[int, int]:
    """By line, the passes that its widest access to shared memory needs at best: one for each 4 bytes of a lane."""
    widest: dict[int, int] = {}
    for one in (instruction for launch in launches for instruction in launch.instructions):
        if one.kind == "shared":
            widest[one.line] = max(widest.get(one.line, 1), one.width // 4)
    return widest
