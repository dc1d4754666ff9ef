"""The edited host code read back: does it launch what was verified?"""

from collections.abc import Callable

from attrs import evolve

from agent.source.document import Document
from agent.source.errors import SourceError
from agent.workload.bind import bind
from agent.workload.binding import (
    Argument,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    RecordArgument,
    TextureArgument,
)
from agent.workload.errors import WorkloadError
from agent.workload.plan import Plan
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from agent.workload.workload import Workload


def contradiction(original: Program, rewrite: Program, edited: Document, workload: Workload) -> str:
    """Where the edited file, read like any user's file, launches something else at the declared sizes than the plan
    that was verified: what. Empty where it agrees, and where the original's own host code cannot be read either."""
    if _steps(original.document, workload, original.document) != _bound(original.document, workload, original.plan):
        return ""
    wanted = _bound(edited, workload, rewrite.plan)
    try:
        found = _bound(edited, workload, plan_of(edited, workload, original.document))
    except (WorkloadError, SourceError) as error:
        return f"the edited host code cannot be read back ({error})"
    if found != wanted:
        return "the edited host code, read back, does not launch what was verified"
    return ""


def _steps(document: Document, workload: Workload, original: Document) -> tuple[object, ...] | None:
    try:
        return _bound(document, workload, plan_of(document, workload, original))
    except (WorkloadError, SourceError):
        return None


def _bound(document: Document, workload: Workload, plan: Plan) -> tuple[object, ...]:
    """The steps at the declared sizes; scratch is numbered in the order of its use, since its name says nothing."""
    bound = bind(workload, plan, None, document)
    scratch = {buffer.name: buffer for buffer in bound.buffers if buffer.scratch}
    numbers: dict[str, str] = {}

    def known(name: str) -> str:
        if name not in scratch:
            return name
        return numbers.setdefault(name, f"scratch {len(numbers)}: {scratch[name].nbytes} bytes")

    return tuple(_plain(step, known) for step in bound.steps)


def _argument(one: Argument, known: Callable[[str], str]) -> object:
    if isinstance(one, TextureArgument):
        return evolve(one.view, buffer=known(one.view.buffer))
    if isinstance(one, RecordArgument):
        return tuple((member.offset, _argument(member.held, known)) for member in one.members)
    return (known(one.buffer), one.offset) if isinstance(one, PointerArgument) else (one.dtype, one.value)


def _plain(step: BoundStep, known: Callable[[str], str]) -> object:
    if isinstance(step, BoundFill):
        return "fill", known(step.buffer), step.byte
    if isinstance(step, BoundCopy):
        return "copy", known(step.target), known(step.source)
    assert isinstance(step, BoundLaunch)
    arguments = tuple(_argument(one, known) for one in step.arguments)
    return step.kernel, step.grid, step.block, step.shared, arguments
