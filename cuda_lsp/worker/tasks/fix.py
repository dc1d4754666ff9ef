"""Is a mechanical fix right? Compiled, and through the gates beside the text as it is, before anybody writes it."""

from attrs import evolve

from agent.evaluation.deadline import timely
from agent.evaluation.prepare import Failure, prepare
from agent.evaluation.setting import Setting
from agent.execution.compiler.result import Options
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.kernel import Kernel
from agent.source.span import Span
from agent.workload.program import Program
from agent.workload.settings import Settings
from agent.workload.workload import Workload
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.terminal.probing import found
from cuda_lsp.terminal.without_truth import alone
from cuda_lsp.worker.asked import Change, Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell
from cuda_lsp.worker.tasks.verify import MENDED, verified

_OLD = "the text as it is"


def run(task: Task, tell: Tell) -> Ended:
    """``reason`` is a verdict's (``right``, ``wrong``, ``undecided``, ``less precise``); ``mended`` where the text as
    it is breaks its own contract or does not compile, and the changed one keeps its own; ``unproved`` where it could
    not be run. The message says why. No GPU is touched: nothing is timed."""
    task = evolve(task, options=evolve(task.options, device="emulator"))
    original, change = parse(task.text, task.path), task.options.change
    assert change is not None
    changed = parse(apply_edits(task.text, edits_of(change)), task.path)
    notes: list[str] = []
    try:
        opened = _opened(task, original, changed, notes)
        setting = timely(setting_of(task, opened))
        ended = _judged(task, opened, changed, setting, tell)
    except CommandError as error:
        ended = Ended("unproved", str(error))
    return evolve(ended, lines=(*ended.lines, *notes))


def edits_of(change: Change) -> tuple[Edit, ...]:
    return tuple(Edit(Span(one.start, one.end), one.text.encode()) for one in change.edits)


def _opened(task: Task, original: Document, changed: Document, notes: list[str]) -> Opened:
    def probed(document: Document, kernel: Kernel, settings: Settings) -> Workload:
        options = Options(flags=settings.flags)
        try:
            return found(document, kernel, options, notes.append)
        except CommandError:  # what does not compile as it is may do so once it is mended
            return found(changed, changed.kernel(kernel.qualified_name), options, notes.append)

    opened = open_task(task, original, otherwise=probed)
    inside = opened.kernel.span
    assert task.options.change is not None
    if any(one.start < inside.start or one.end > inside.end for one in task.options.change.edits):
        other = f"the {opened.kernel.name} that is compiled is another, at line {opened.kernel.line}"
        raise CommandError(Exit.INPUT, f"it cannot be tried: {other}")
    return opened


def _judged(task: Task, opened: Opened, changed: Document, setting: Setting, tell: Tell) -> Ended:
    # what changes a kernel alone leaves its launches as they are
    fixed = Program(changed, opened.workload.plan, "the fix")
    prepared = prepare(opened.program, opened.workload, setting, lambda stage: tell(Staged(stage)))
    if not isinstance(prepared, Failure):
        return verified(task, fixed, prepared, setting, _OLD, tell)
    why = prepared.message.replace("the original", _OLD)
    if prepared.kind != "does not compile":
        raise CommandError(Exit.INPUT, why)
    kept, said = alone(fixed, opened.workload, setting)
    return Ended(MENDED if kept else "unproved", f"{why}. {said}")
