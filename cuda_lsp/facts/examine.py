"""From a kernel to its facts. Slow (it compiles), and importing it is slow too: only the background thread does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from agent.execution.architectures import UnknownArchitecture
from agent.execution.compiler import Build, CompileFailure, Diagnostic, Options, build, build_named
from agent.execution.occupancy import occupancy
from agent.execution.targets import UnknownTarget, find_target
from agent.source.document import Document
from agent.source.errors import SliceError, UnknownKernel
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch
from agent.workload.describe import arguments, origin
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.flags import merged
from agent.workload.program import Program
from agent.workload.settings import Settings, SettingsError, settings_of
from agent.workload.workload import Workload
from cuda_lsp.facts.facts import Cost, Facts, Message, line_text

DEFAULT_TARGET = "H200"
_SECONDS = 20.0


@frozen
class _Launch:
    threads: int
    shared: int


def examine(document: Document, kernel: Kernel, target: str, cancelled: Callable[[], bool]) -> Facts:
    """Workload, resources and compiler messages of ``kernel``. ``target`` is the editor's choice of card, or empty."""
    try:
        settings = settings_of(document.path)
        archs = _architectures(target, settings)
    except (SettingsError, UnknownTarget) as error:
        return Facts(problem=kernel.damage or str(error))
    if kernel.damage:
        result = compiled(document, kernel, None, Options(archs[0], settings.flags), cancelled)
        return Facts(messages=tuple(_of_damage(document, kernel.damage, result)), problem=kernel.damage)
    workload, questions, draft = stated(document, kernel, settings)
    flags = merged(settings.flags, workload.flags if workload else ())
    launch = _first_launch(document, kernel, workload) if workload else None
    costs: list[Cost] = []
    first: Build | CompileFailure | None = None
    for arch in archs:
        result = compiled(document, kernel, workload, Options(arch, flags), cancelled)
        first = first or result
        costs += _cost(result, arch, launch)
    return Facts(
        costs=tuple(costs),
        messages=tuple(_messages(document, first)) if first else (),
        workload=arguments(workload) if workload else "",
        origin=origin(workload) if workload else "",
        built=settings.built.told(document.path),
        questions=questions,
        draft=draft,
        problem=first.message if isinstance(first, CompileFailure) else "",
        block=launch.threads if launch else None,
    )


def _architectures(target: str, settings: Settings) -> tuple[str, ...]:
    card = find_target(target or settings.target or DEFAULT_TARGET)
    return tuple(dict.fromkeys((card.arch, *settings.architectures)))


def stated(document: Document, kernel: Kernel, settings: Settings) -> tuple[Workload | None, str, bool]:
    """The workload; or what is missing, and whether a draft could be written."""
    try:
        return find_workload(document, kernel, settings), "", False
    except NoWorkload as error:
        return None, str(error), bool(error.draft)
    except WorkloadError as error:
        return None, str(error), False


def _first_launch(document: Document, kernel: Kernel, workload: Workload) -> _Launch | None:
    """The first launch of ``kernel`` as the workload's sizes have it."""
    try:
        steps = bind(workload, workload.plan, document=document).steps
    except WorkloadError:
        return None
    for step in steps:
        if isinstance(step, BoundLaunch) and step.kernel.split("<")[0].split("::")[-1] == kernel.name:
            return _Launch(math.prod(step.block), step.shared)
    return None


def compiled(
    document: Document, kernel: Kernel, workload: Workload | None, options: Options, cancelled: Callable[[], bool]
) -> Build | CompileFailure:
    """As the workload launches it, else by its name alone."""
    if workload is not None:
        return build(Program(document, workload.plan, kernel.name), options, _SECONDS, cancelled, lenient=True)
    try:
        return build_named(document, (kernel.qualified_name,), options, _SECONDS, cancelled, lenient=True)
    except (SliceError, UnknownKernel) as error:
        return CompileFailure("refused", str(error))


def _cost(result: Build | CompileFailure, arch: str, launch: _Launch | None) -> Iterator[Cost]:
    if isinstance(result, CompileFailure) or not result.resources:
        return
    resources = next(iter(result.resources.values()))
    try:
        load = occupancy(arch, resources, launch.threads, launch.shared) if launch else None
    except (ValueError, UnknownArchitecture):
        load = None
    yield Cost(arch, resources, load, resources.static_shared + (launch.shared if launch else 0))


def _messages(document: Document, result: Build | CompileFailure) -> Iterator[Message]:
    """The compiler's messages; one about another file says which."""
    if isinstance(result, CompileFailure) and result.kind != "source":
        return  # nothing is wrong with the source: what is missing is said where the figures would be
    for found in result.diagnostics:
        if found.severity != "note":
            yield _message(document, found)


def _of_damage(document: Document, damage: str, result: Build | CompileFailure) -> Iterator[Message]:
    """What is wrong with a kernel that was not understood: in the compiler's words, or in the parser's where the
    compiler has none."""
    told = [message for message in _messages(document, result) if message.severity == "error"]
    yield from told
    if not told:
        accepted = isinstance(result, Build)
        numbers = re.findall(r"line (\d+)", damage)
        line = int(numbers[0]) if numbers else 0
        words = f"{damage}; the compiler accepts it, but nothing is said about this kernel" if accepted else damage
        anchor = line_text(document, line) if line else b""
        yield Message("information" if accepted else "error", words, line, anchor)


def _message(document: Document, found: Diagnostic) -> Message:
    here = found.file in ("", document.path, Path(document.path).name)
    if not here:
        where = f"{Path(found.file).name}:{found.line}: " if found.line else f"{Path(found.file).name}: "
        return Message(found.severity, where + found.message, 0, b"")
    if (told := re.match(rf"{re.escape(document.path)}:(\d+): ", found.message)) is not None and not found.line:
        # what is said of an include belongs to its own line, and not to each kernel
        found = evolve(found, line=int(told[1]), message=found.message[told.end() :])
    if not 0 < found.line <= len(document.line_starts):
        return Message(found.severity, found.message, 0, b"")
    return Message(found.severity, found.message, found.line, line_text(document, found.line))
