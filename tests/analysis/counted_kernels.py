"""A kernel of a public file, run in the emulator as far as it can be: counts of each line and faults, as plain data."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from agent.analysis.launches import launches_of, shape
from agent.analysis.rules.counted import Counted, Executed
from agent.evaluation import runs
from agent.evaluation.counting import Counts, count
from agent.evaluation.line_counts import bare, recipes
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bases, bound_at
from agent.execution.compiler import Options, build
from agent.execution.compiler.kernels import compile_kernels
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.device import Fault, LaunchCounters, LineCounters
from agent.execution.emulator import Emulator
from agent.execution.emulator.decode import PtxError
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.program import load
from agent.execution.emulator.watch import class_of
from agent.execution.targets import find_target
from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.slicing import kernel_instances
from agent.workload.binding import BoundLaunch, BoundStep
from agent.workload.dtypes import from_c_type
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.settings import Settings
from agent.workload.workload import Workload

SECONDS = 6.0
"""For each run of a kernel."""
WARP = 32
STAND_INS = ("float", "__half", "1")
Row = dict[str, Any]


def counted_kernel(
    document: Document, kernel: Kernel, checks: bool, folders: Sequence[Path] = (), whole: bool = True
) -> Row:
    """What running it shows. ``ended``: ``counted``; ``compiled``, where it cannot be run and its instructions say
    all; or why not. ``made up``: its launch is. ``checks``: also run it at small sizes with every check of the
    emulator. ``folders`` are for includes. Not ``whole``: its counts at one launch are all that is wanted."""
    flags = tuple(f"-I{folder}" for folder in folders)
    ended = "no workload, and none can be made up"
    stated: Row = {}
    for workload, made in _workloads(document, kernel):
        found = _counted(document, kernel, workload, checks, flags)
        stated = stated or ({} if made else {name: found[name] for name in ("threads", "shared") if name in found})
        if found["ended"] == "counted":
            more = {"promised": _promised(document, kernel, flags)} if whole and not checks else {}
            return found | {"made up": made} | more
        ended = found["ended"]
        if "problem" in found:
            break
    return {"ended": ended} | stated | (_instructions(document, kernel, flags) if whole else {})


def _promised(document: Document, kernel: Kernel, flags: tuple[str, ...]) -> int | None:
    """How often warps load where all pointers are declared ``__restrict__``; None where none can be."""
    text, places = document.text, [one for one in kernel.parameters if one.pointer_depth == 1 and not one.restrict]
    for one in sorted(places, key=lambda one: -one.span.start):
        start, end = one.span.start, one.span.end
        written = re.sub(rb"(\*|&)\s*(\w+)\s*$", rb"\1 __restrict__ \2", text[start:end])
        text = text[:start] + written + text[end:]
    if text == document.text:
        return None
    changed = parse(text, document.path)
    for workload, _ in _workloads(changed, changed.kernel(kernel.qualified_name)):
        found = _counted(changed, changed.kernel(kernel.qualified_name), workload, False, flags)
        if found["ended"] == "counted":
            loads = [one["warps"] for line in found["lines"].values() for one in line if one.get("kind") == "load"]
            return int(sum(loads))
    return None


def _instructions(document: Document, kernel: Kernel, flags: tuple[str, ...]) -> Row:
    """Those of a kernel that is compiled and not run, or why it does not compile."""
    try:
        names = _named_instance(document, kernel)
        _, built = compile_kernels(document, names, Options(arch="sm_90", flags=flags), (), 12.0, stand_ins=STAND_INS)
        if isinstance(built, CompileFailure):
            return {"problem": _said(built)}
        lines: dict[str, list[Row]] = {}
        for entry in built.entries.values():
            for part in load(built).kernel(entry).blocks:
                for site, added in zip(part.sites, part.added, strict=True):
                    if not added and (not site.file or site.file == document.path):
                        one = site.instruction
                        made = _executed(class_of(one), one.text, 0, LineCounters())
                        lines.setdefault(str(site.line), []).append(_row(made))
    except (SourceError, Refused, PtxError) as error:
        return {"problem": "" if isinstance(error, Refused) else str(error)[:300]}
    return {"ended": "compiled", "lines": lines}


def _named_instance(document: Document, kernel: Kernel) -> tuple[str, ...]:
    with contextlib.suppress(SourceError):
        return kernel_instances(document, kernel.qualified_name)[:1]
    return (kernel.qualified_name,)


def _workloads(document: Document, kernel: Kernel) -> Iterator[tuple[Workload, bool]]:
    """What the file says, and some that are made up."""
    with contextlib.suppress(WorkloadError, SourceError):
        yield find_workload(document, kernel), False
    for entry in _made_up(document, kernel):
        with contextlib.suppress(WorkloadError, SourceError):
            yield find_workload(document, kernel, Settings(workloads={kernel.qualified_name: entry})), True


def _made_up(document: Document, kernel: Kernel) -> Iterator[dict[str, object]]:
    """Launches over buffers that are longer than any index with such numbers is likely to be: with the block that the
    file's launches have, else of three shapes. A template is run as a launch names it, or with float."""
    types = {one.name: "float" for one in kernel.template if one.kind == "type"}
    kinds = {one.name: from_c_type(types.get(one.element, one.element)) or "" for one in kernel.parameters}
    pointers = [one.name for one in kernel.parameters if one.pointer_depth]
    instance = _instance(document, kernel)
    if (
        not pointers
        or "" in kinds.values()
        or instance is None
        or any(one.pointer_depth > 1 for one in kernel.parameters)
    ):
        return
    whole = {name for name, kind in kinds.items() if kind[0] in "iu"}
    arguments = ", ".join(one.name for one in kernel.parameters)
    blocks = {shape(document, site).block for site in launches_of(document, kernel)}
    known = next(iter(blocks)) if len(blocks) == 1 else (None,)
    shared = ", 16384" if b"extern" in document.text[kernel.span.start : kernel.span.end] else ""
    for number, grid, block in ((100, "2", "64"), (40, "(3, 3)", "(16, 16)"), (300, "2", "256")):
        block = block if None in known else str(known)
        yield {
            "constants": {name: number if name in whole else 0.5 for name in kinds if name not in pointers},
            "buffers": {
                name: f"{kinds[name]}[16384] inout {'integers(0, 40)' if name in whole else ''}" for name in pointers
            },
            "plan": f"launch {instance}<<<{grid}, {block}{shared}>>>({arguments})",
        }


def _instance(document: Document, kernel: Kernel) -> str | None:
    if not kernel.template:
        return kernel.qualified_name
    with contextlib.suppress(SourceError):
        return kernel_instances(document, kernel.qualified_name)[0]
    if any(one.kind != "type" for one in kernel.template):
        return None
    return f"{kernel.qualified_name}<{', '.join('float' for _ in kernel.template)}>"


def _counted(document: Document, kernel: Kernel, workload: Workload, checks: bool, flags: tuple[str, ...]) -> Row:
    program = Program(document, workload.plan, kernel.name)
    options = Options(arch="sm_90", flags=(*workload.flags, *flags))
    setting = Setting(device=Emulator(), target=find_target("H200"), options=options)
    faults: list[tuple[str, int, int]] = []
    known: Row = {}
    try:
        known = _launch(bound_at(workload, program).steps, kernel)
        built = build(program, options)
        if isinstance(built, CompileFailure):
            return known | {"ended": "does not compile", "problem": _said(built)}
        faults = _checked(kernel, program, built, workload, setting) if checks else []
        found = count(program, built, workload, setting, list(recipes(workload, program)), seconds=SECONDS)
    except (WorkloadError, SourceError) as error:
        return known | {"ended": f"cannot be launched: {error}"[:120], "problem": ""}
    if not isinstance(found, Counts):
        return known | {"ended": f"cannot be counted: {found[:80]}", "faults": faults}
    mine = [one for one in found.counters if bare(one.kernel) == kernel.name and one.blocks_run]
    launches = [kind.launch for kind in found.kinds if bare(kind.launch.kernel) == kernel.name]
    if not mine:
        return known | {"ended": "no launch of it ran", "faults": faults}
    return known | {"ended": "counted", "faults": faults} | _figures(mine, launches, document.path)


def _launch(steps: Sequence[BoundStep], kernel: Kernel) -> Row:
    """What the launches of a kernel say, run or not."""
    mine = [step for step in steps if isinstance(step, BoundLaunch) and bare(step.kernel) == kernel.name]
    threads = {step.block[0] * step.block[1] * step.block[2] for step in mine}
    shared = max((step.shared for step in mine), default=0)
    return {"threads": next(iter(threads)) if len(threads) == 1 else 0, "shared": shared}


def _said(failure: CompileFailure) -> str:
    return " ".join([failure.message, *(one.message for one in failure.diagnostics)])[:500]


def _checked(
    kernel: Kernel, program: Program, built: Build, workload: Workload, setting: Setting
) -> list[tuple[str, int, int]]:
    """(kind, line, the other party's line) of each fault at the two smallest sizes that there are."""
    found: list[tuple[str, int, int]] = []
    for sizes in list(bases(workload, program))[:2]:
        bound = bound_at(workload, program, sizes)
        before = runs.contents(bound, runs.case(sizes, families(workload)[0], 1))
        answer = runs.run(setting, built, before, checks=runs.ALL_CHECKS, seconds=SECONDS)
        found += [_fault(one) for one in answer.faults if bare(one.kernel) == kernel.name]
    return sorted(set(found))


def _fault(one: Fault) -> tuple[str, int, int]:
    return one.kind, one.where.line, one.other.line if one.other else 0


def _figures(mine: list[LaunchCounters], launches: list[BoundLaunch], path: str) -> Row:
    lines: dict[str, list[Row]] = {}
    for launched in mine:
        for one in launched.instructions:
            if one.counts.instructions and (not one.file or one.file == path):
                lines.setdefault(str(one.line), []).append(_row(_executed(one.kind, one.text, one.width, one.counts)))
    each = [-(-launch.block[0] * launch.block[1] * launch.block[2] // WARP) for launch in launches]
    return {
        "warps": sum(one.blocks_run * warps for one, warps in zip(mine, each, strict=False)),
        "lines": lines,
    }


def _executed(kind: str, written: str, width: int, counts: Any) -> Executed:
    opcode = next((word for word in written.split() if not word.startswith("@")), "").rstrip(";")
    return Executed(
        kind,
        opcode,
        counts.instructions,
        counts.thread_instructions,
        counts.requests,
        counts.sectors,
        counts.ideal_sectors,
        counts.shared_requests,
        counts.wavefronts,
        counts.shared_requests * max(1, width // 4),
        counts.local_requests,
        counts.atomics,
        counts.divergent,
    )


def _row(one: Executed) -> Row:
    return {name: value for name, value in asdict(one).items() if value}


def access_bytes(opcode: str) -> int:
    """What an access in PTX moves for each lane: 8 of ``ld.global.v2.f32``."""
    bits = re.search(r"\.[a-z]+(\d+)$", opcode)
    lanes = re.search(r"\.v(\d)\b", opcode)
    return (int(bits[1]) // 8 if bits else 1) * (int(lanes[1]) if lanes else 1)


def on_lines(row: Row, lines: list[int]) -> Counted:
    """What was counted on some lines of a kernel."""
    every: Mapping[str, list[Row]] = row.get("lines", {})
    wanted = [Executed(**one) for line in dict.fromkeys(lines) for one in every.get(str(line), ())]
    faults = frozenset(kind for kind, line, other in row.get("faults", ()) if line in lines or other in lines)
    found = Counted(
        tuple(wanted),
        tuple(Executed(**one) for listed in every.values() for one in listed),
        faults,
        row.get("problem", ""),
        warps=row.get("warps", 0),
        promised=row.get("promised"),
    )
    return found if row.get("made up") else evolve(found, threads=row.get("threads", 0), shared=row.get("shared"))
