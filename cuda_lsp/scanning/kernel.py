"""One kernel: its workload, its findings, and what it costs by a short run in the emulator. Slow; done in a worker."""

import re
from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from agent.analysis.headers import learn
from agent.analysis.rules import Finding, check
from agent.analysis.rules.from_counts import Counts, from_counts
from agent.analysis.rules.registry import by_id
from agent.evaluation.estimates.kernel_cost import extrapolated
from agent.evaluation.estimates.kernel_floor import kernel_floor
from agent.evaluation.lines.profile import Profile, ProfiledLaunch, longest, profile, terms
from agent.evaluation.setting import Setting
from agent.execution.architectures import UnknownArchitecture
from agent.execution.compiler.result import CompileFailure
from agent.execution.emulator import Emulator
from agent.execution.targets import Target
from agent.source.document import Document
from agent.source.errors import SourceError
from agent.source.indirect import launched_at
from agent.source.kernel import Kernel
from agent.workload.describe import arguments, origin
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.settings import Settings, SettingsError
from agent.workload.static import compiled_twin
from agent.workload.workload import Workload
from cuda_lsp.ruling import selection, severity
from cuda_lsp.scanning.values import Cause, Cost, Hint, Hot, Scanned
from cuda_lsp.settings import Settings as HintSettings
from cuda_lsp.terminal.opening import compiler_options
from cuda_lsp.terminal.profile import flagged
from cuda_lsp.terminal.profile_totals import provenance

ATTEMPTS = 6
"""Runs that :func:`agent.evaluation.lines.profile.profile` may try, each with its part of the time."""

AGAIN = "--kernel-seconds gives it more, and --fresh tries again"
_TOO_LONG = re.compile(r"more than \S+ (?:seconds|thread-instructions)")
_SIGNATURE = 400


@frozen
class Asked:
    """How kernels are looked at. ``seconds`` is for one of them; ``flags`` are the command line's."""

    target: Target
    seconds: float
    flags: tuple[str, ...]
    settings: Settings
    hints: HintSettings
    cancelled: Callable[[], bool] = lambda: False


def listed(document: Document) -> tuple[Scanned, ...]:
    """The kernels of a file as far as reading it tells."""
    chosen: dict[str, Kernel] = {}
    found = []
    for kernel in document.kernels:
        one = Scanned(
            path=document.path,
            kernel=kernel.qualified_name,
            line=kernel.line,
            signature=" ".join(document.slice_text(kernel.signature).split())[:_SIGNATURE],
            launches=launched_at(document, kernel.name),
            cause=Cause.LEFT,
            message="the scan ended before it",
        )
        if kernel.damage:
            one = evolve(one, cause=Cause.DAMAGED, message=kernel.damage)
        elif (looked := _looked_at(document, kernel, chosen)) is not kernel:
            twin = f"the kernel of this name at line {looked.line} is the one that is looked at"
            one = evolve(one, cause=Cause.TWIN, message=twin)
        found.append(one)
    return tuple(found)


def _looked_at(document: Document, kernel: Kernel, chosen: dict[str, Kernel]) -> Kernel:
    """Of several kernels of one name the one that is compiled, or the first."""
    if kernel.qualified_name not in chosen:
        chosen[kernel.qualified_name] = compiled_twin(document, kernel)
    return chosen[kernel.qualified_name]


def scanned(one: Scanned, document: Document, kernel: Kernel, asked: Asked) -> Scanned:
    """``one`` (as :func:`listed` has it) with its findings, its workload and its cost, or with what is in the way."""
    one = evolve(one, hints=_hints(document, kernel, asked.hints), cause=None, message="")
    try:
        workload = find_workload(document, kernel, asked.settings, asked.flags)
    except NoWorkload as error:
        return evolve(one, cause=Cause.ASKED, message=error.message, asks=error.questions)
    except SettingsError as error:
        return evolve(one, cause=Cause.STATED, message=str(error))
    except WorkloadError as error:
        return evolve(one, cause=Cause.STATED, message=str(error))
    one = evolve(one, workload=arguments(workload), origin=origin(workload))
    try:
        return _costed(one, document, kernel, workload, asked)
    except (WorkloadError, UnknownArchitecture) as error:
        return evolve(one, cause=Cause.COUNT, message=str(error))


def _hints(document: Document, kernel: Kernel, settings: HintSettings) -> tuple[Hint, ...]:
    try:
        found = check(document, kernel, selection=selection(settings))
    except RecursionError:
        return ()  # nested too deeply: the rules leave it alone
    return _told(document, found, settings)


def _counted_hints(document: Document, kernel: Kernel, counted: Profile, settings: HintSettings) -> tuple[Hint, ...]:
    """What no rule sees, and the counts of the run show."""
    learn(document)
    told = Counts(counted.executed, counted.sizes, block=counted.launches[0].block)
    try:
        found = from_counts(document, kernel, told)
    except (SourceError, RecursionError):
        return ()
    wanted = selection(settings)
    return _told(document, [one for one in found if wanted.admits(by_id()[one.rule])], settings)


def _told(document: Document, found: Sequence[Finding], settings: HintSettings) -> tuple[Hint, ...]:
    return tuple(
        Hint(
            one.rule,
            document.line(one.span.start),
            severity(settings, one.rule, one.severity.value),
            f"{one.message} ({one.cost})" if one.cost else one.message,
        )
        for one in sorted(found, key=lambda one: (one.span.start, one.rule))
    )


def _costed(one: Scanned, document: Document, kernel: Kernel, workload: Workload, asked: Asked) -> Scanned:
    emulator = Emulator()
    options = compiler_options(emulator, asked.target, asked.settings, workload, asked.flags)
    setting = Setting(emulator, asked.target, options, cancelled=asked.cancelled)
    found = profile(document, kernel, workload, setting, seconds=asked.seconds / ATTEMPTS)
    if isinstance(found, CompileFailure):
        cause = Cause.TIME if found.kind == "timeout" else Cause.BUILD
        return evolve(one, cause=cause, message=found.message)
    if isinstance(found, str):
        if _TOO_LONG.match(found):
            return evolve(one, cause=Cause.TIME, message=f"even a part of it runs for {found} in the emulator; {AGAIN}")
        return evolve(one, cause=Cause.COUNT, message=found)
    counted, built = found
    hints = (*one.hints, *_counted_hints(document, kernel, counted, asked.hints))
    one = evolve(one, hints=tuple(sorted(hints, key=lambda hint: hint.line)))
    launches, where = counted.launches, provenance(counted)
    if not counted.declared:
        further = extrapolated(document, kernel, workload, setting, built, asked.seconds / ATTEMPTS)
        if further is not None:
            launches, note = further
            where = f"{where}; {note} to the size that the workload states"
    return evolve(one, cost=_cost(counted, launches, where, asked.target))


def _cost(counted: Profile, launches: Sequence[ProfiledLaunch], where: str, target: Target) -> Cost:
    floor = kernel_floor(launches, target)
    stated = counted.declared or launches is not counted.launches
    return Cost(
        seconds=sum(one.seconds * one.times for one in launches),
        floor_seconds=floor.seconds,
        floor=floor.name,
        memory_seconds=floor.memory,
        arithmetic_seconds=floor.arithmetic,
        arithmetic=floor.kind,
        limit=longest(launches).limit,
        terms=terms(launches),
        sizes="" if stated else counted.sizes,
        launches=sum(one.times for one in launches),
        registers=counted.resources.registers if counted.resources else None,
        occupancy=launches[0].occupancy.ratio,
        counted=where,
        tensor=counted.total.mix.get("tensor", 0) > 0,
        hot=tuple(Hot(bad.line, bad.words, bad.meaning) for bad in flagged(counted)),
    )
