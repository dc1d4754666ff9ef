"""A kernel of a public file, run in the emulator as far as it can be: counts of each line and faults, as plain data."""

import contextlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from agent.analysis.launches import launches_of
from agent.analysis.rules.counted import Counted, Executed
from agent.evaluation import runs
from agent.evaluation.estimates.counting import Counts, count
from agent.evaluation.lines.counts import bare, recipes
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bases, bound_at
from agent.execution.compiler import Options, build
from agent.execution.compiler.kernels import compile_kernels
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.device import Fault, LaunchCounters, LineCounters
from agent.execution.emulator import Emulator
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.kernel import Kernel as Code
from agent.execution.emulator.program import load
from agent.execution.emulator.ptx.decode import PtxError
from agent.execution.emulator.watch import class_of
from agent.execution.targets import find_target
from agent.execution.toolkit import include_folders
from agent.inference.making import at_other_numbers, make_up
from agent.inference.probing import Limits, Stopped
from agent.inference.probing.known import known
from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.slicing import kernel_instances
from agent.workload.binding import BoundLaunch, BoundStep
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import Workload

SECONDS = 6.0
"""For each run of a kernel."""
WARP = 32
MAKING = 8.0
"""For making up a launch."""
ARCHITECTURES = ("sm_90", "sm_100a")
_BARRIER = re.compile(rb"__syncthreads\s*\(\s*\)")
_NEWER = re.compile(r"not supported on \.target|requires \.target")
STAND_INS = ("float", "__half", "1")
Row = dict[str, Any]


def counted_kernel(
    document: Document,
    kernel: Kernel,
    checks: bool,
    folders: Sequence[Path] = (),
    whole: bool = True,
    promises: bool = True,
) -> Row:
    """What running it shows. ``ended``: ``counted``; ``compiled``, where it cannot be run and its instructions say
    all; or why not. ``made up``: its launch is. ``checks``: also run it at small sizes with every check of the
    emulator. ``promises``: also run it with all pointers ``__restrict__``. ``folders`` are for includes. Not ``whole``:
    its counts at one launch are all that is wanted."""
    flags = tuple(f"-I{folder}" for folder in folders)
    found: Row = {}
    for arch in ARCHITECTURES:
        found = _counted_for(document, kernel, checks, whole, promises, Options(arch=arch, flags=flags))
        if found["ended"] in ("counted", "compiled") or not _NEWER.search(found.get("problem", "")):
            break
    return found


def counted_elsewhere(document: Document, kernel: Kernel, folders: Sequence[Path] = ()) -> list[Row]:
    """What the lines of a kernel cost on launches that are made up with other numbers than the first such."""
    options = Options(arch=ARCHITECTURES[0], flags=tuple(f"-I{folder}" for folder in folders))
    try:
        first = make_up(document, kernel, options, Limits(MAKING)).workload
        others = list(at_other_numbers(document, kernel, first, options, Limits(MAKING)))
    except (Stopped, WorkloadError, SourceError):
        return []
    counted = (_counted(document, kernel, one, False, options) for one in others)
    return [one for one in counted if one["ended"] == "counted"]


def _counted_for(
    document: Document, kernel: Kernel, checks: bool, whole: bool, promises: bool, options: Options
) -> Row:
    ended = ""
    stated: Row = {}
    for workload, made in _workloads(document, kernel, options):
        if isinstance(workload, str):
            ended = ended or workload
            continue
        found = _counted(document, kernel, workload, checks, options)
        launch: Row = {name: found.pop(name) for name in ("threads", "shared") if name in found}
        if not made and len(launches_of(document, kernel)) == 1:  # else a finding may be about another
            stated = launch
        if found["ended"] == "counted":
            more = {"promised": _promised(document, kernel, workload, options)} if promises and whole else {}
            return found | (stated or _told(document, kernel)) | {"made up": made} | more
        ended = found["ended"]
        if found.get("problem"):
            break
    return (
        {"ended": ended}
        | (stated or _told(document, kernel))
        | (_instructions(document, kernel, options) if whole else {})
    )


def _told(document: Document, kernel: Kernel) -> Row:
    """The threads of a block, where walking through the host's code comes to the kernel's only launch and tells."""
    block = known(document, kernel).block if len(launches_of(document, kernel)) == 1 else None
    return {"threads": block[0] * block[1] * block[2]} if block is not None else {}


def _promised(document: Document, kernel: Kernel, workload: Workload, options: Options) -> int | None:
    """How often warps load where all pointers are declared ``__restrict__``; None where none can be."""
    text, places = document.text, [one for one in kernel.parameters if one.pointer_depth == 1 and not one.restrict]
    for one in sorted(places, key=lambda one: -one.span.start):
        start, end = one.span.start, one.span.end
        written = re.sub(rb"(\*|&)\s*(\w+)\s*$", rb"\1 __restrict__ \2", text[start:end])
        text = text[:start] + written + text[end:]
    if text == document.text:
        return None
    changed = parse(text, document.path)
    found = _counted(changed, changed.kernel(kernel.qualified_name), workload, False, options)
    if found["ended"] != "counted":
        return None
    return int(
        sum(one.get("warps", 0) for line in found["lines"].values() for one in line if one.get("kind") == "load")
    )


def _instructions(document: Document, kernel: Kernel, options: Options) -> Row:
    """Those of a kernel that is compiled and not run, or why it does not compile."""
    try:
        names = _named_instance(document, kernel)
        _, built = compile_kernels(document, names, options, (), 12.0, stand_ins=STAND_INS, lenient=True)
        if isinstance(built, CompileFailure):
            return {"problem": _said(built)}
        code = [load(built).kernel(entry) for entry in built.entries.values()]
        lines = _written(code, document.path)
    except (SourceError, Refused, PtxError) as error:
        return {"problem": "" if isinstance(error, Refused) else str(error)[:300]}
    return {"ended": "compiled", "lines": lines, "dynamic": any(one.code.dynamic_names for one in code)}


def _written(code: Iterable[Code], path: str) -> dict[str, list[Row]]:
    """The instructions of kernels by line, as if none had been executed."""
    lines: dict[str, list[Row]] = {}
    for part in (part for one in code for part in one.blocks):
        for site, added in zip(part.sites, part.added, strict=True):
            if not added and (not site.file or site.file == path):
                made = _executed(class_of(site.instruction), site.instruction.text, 0, LineCounters())
                lines.setdefault(str(site.line), []).append(_row(made))
    return lines


def _named_instance(document: Document, kernel: Kernel) -> tuple[str, ...]:
    with contextlib.suppress(SourceError):
        return kernel_instances(document, kernel.qualified_name)[:1]
    return (kernel.qualified_name,)


def _workloads(document: Document, kernel: Kernel, options: Options) -> Iterator[tuple[Workload | str, bool]]:
    """What the file says, and one that is made up; or why there is none."""
    with contextlib.suppress(WorkloadError, SourceError):
        yield find_workload(document, kernel), False
    try:
        yield make_up(document, kernel, options, Limits(MAKING)).workload, True
    except (Stopped, WorkloadError, SourceError) as error:
        yield f"no workload can be made up: {error}"[:200], True


def _counted(document: Document, kernel: Kernel, workload: Workload, checks: bool, options: Options) -> Row:
    program = Program(document, workload.plan, kernel.name)
    options = evolve(options, flags=(*workload.flags, *options.flags))
    setting = Setting(device=Emulator(), target=find_target("H200"), options=options)
    faults: list[tuple[str, int, int]] = []
    launch: Row = {}
    try:
        launch = _launch(bound_at(workload, program).steps, kernel)
        built = build(program, options, lenient=True)
        if isinstance(built, CompileFailure):
            return launch | {"ended": "does not compile", "problem": _said(built)}
        faults = _checked(kernel, program, built, workload, setting) if checks else []
        found = count(program, built, workload, setting, list(recipes(workload, program)), seconds=SECONDS)
    except (WorkloadError, SourceError) as error:
        return launch | {"ended": f"cannot be launched: {error}"[:120], "problem": ""}
    if not isinstance(found, Counts):
        return launch | {"ended": f"cannot be counted: {found[:80]}", "faults": faults}
    mine = [one for one in found.counters if bare(one.kernel) == kernel.name and one.blocks_run]
    launches = [kind.launch for kind in found.kinds if bare(kind.launch.kernel) == kernel.name]
    if not mine:
        return launch | {"ended": "no launch of it ran", "faults": faults}
    code = [load(built).kernel(entry) for name, entry in built.entries.items() if bare(name) == kernel.name]
    figures = _figures(mine, launches, document.path)
    # what no warp came to was compiled all the same
    counted, written = figures["lines"], _written(code, document.path)
    lines = {
        line: [*counted.get(line, ()), *_others(written.get(line, []), counted.get(line, []))]
        for line in counted.keys() | written.keys()
    }
    dynamic = any(one.code.dynamic_names for one in code)
    return launch | {"ended": "counted", "faults": faults} | figures | {"lines": lines, "dynamic": dynamic}


def _others(written: list[Row], executed: list[Row]) -> Iterator[Row]:
    """Of a line's instructions those that were not executed."""
    known = Counter(one["opcode"] for one in executed)
    for one in written:
        if known[one["opcode"]]:
            known[one["opcode"]] -= 1
        else:
            yield one


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
    """(kind, line, the other party's line) of each fault at the two smallest sizes that there are, and with one more of
    everything, which is seldom a multiple of anything."""
    found: list[tuple[str, int, int]] = []
    smallest = list(bases(workload, program))[:2]
    for sizes in (*smallest, *({name: value + 1 for name, value in one.items()} for one in smallest[-1:])):
        with contextlib.suppress(WorkloadError):
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


# What the source says ------------------------------------------------------------------------------------------------


def races_without_barriers(
    document: Document, kernel: Kernel, only: int | None, folders: Sequence[Path] = ()
) -> list[tuple[str, int, int]] | None:
    """The races of a kernel whose barriers are left out (``only`` those of one line), that it has not with them; None
    where it cannot be run, or there is no barrier."""
    start, end = kernel.span.start, kernel.span.end
    if only is not None:
        start, end = document.line_starts[only - 1], document.text.find(b"\n", document.line_starts[only - 1])
    part, number = _BARRIER.subn(lambda found: b" " * len(found[0]), document.text[start:end])
    if not number:
        return None
    options = Options(arch=ARCHITECTURES[0], flags=tuple(f"-I{folder}" for folder in folders))
    workloads = [one for one, _ in _workloads(document, kernel, options) if isinstance(one, Workload)]
    for workload in workloads:
        runs_ = []
        for text in (document.text, document.text[:start] + part + document.text[end:]):
            there = parse(text, document.path)
            runs_.append(_counted(there, there.kernel(kernel.qualified_name), workload, True, options))
        if all(one["ended"] == "counted" for one in runs_):
            return [one for one in runs_[1]["faults"] if "race" in one[0] and one not in runs_[0]["faults"]]
    return None


@lru_cache
def declared(function: str) -> str:
    """What the headers of the toolkit's runtime say of a function: ``declared``, ``deprecated`` or ``gone``; empty
    where there is no compiler or no header to ask."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    folders = [one for one in include_folders() if (one / "cuda_runtime_api.h").is_file()]
    if compiler is None or not folders or not function.isidentifier():
        return ""
    source = f"#include <cuda_runtime_api.h>\nvoid* there = (void*)&{function};\n"
    command = [compiler, "-fsyntax-only", "-Wdeprecated-declarations", "-I", str(folders[0]), "-x", "c++", "-"]
    told = subprocess.run(command, input=source, text=True, capture_output=True, timeout=60, check=False)
    if told.returncode:
        return "gone" if function in told.stderr else ""
    return "deprecated" if "deprecated" in told.stderr else "declared"


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
    return Counted(
        tuple(wanted),
        tuple(Executed(**one) for listed in every.values() for one in listed),
        faults,
        row.get("problem", ""),
        warps=row.get("warps", 0),
        promised=row.get("promised"),
        threads=row.get("threads", 0),
        shared=row.get("shared"),
        dynamic=row.get("dynamic"),
    )
