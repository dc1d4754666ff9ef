"""Is my own change right? The text in the editor against the saved file, or against a git revision."""

from attrs import evolve

from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.deadline import timely
from agent.evaluation.gates import gates
from agent.evaluation.judge import Judged, examine
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import GateResult
from agent.source.document import Document, parse
from agent.source.errors import SourceError, UnknownKernel
from agent.workload.errors import WorkloadError
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened, open_document
from cuda_lsp.terminal.render import evidence_lines, told_text
from cuda_lsp.terminal.revision import at_revision
from cuda_lsp.terminal.without_truth import without_truth
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.records import keep_record
from cuda_lsp.worker.referring import referring
from cuda_lsp.worker.tasks import Tell

SAVED = "saved"
MENDED = "mended"
_BROKEN = "broken original"


def run(task: Task, tell: Tell) -> Ended:
    """The full verdict on the change; ``reason`` is ``right``, ``wrong``, ``undecided`` or ``less precise``. Where the
    original breaks its own contract it is ``broken original``, and the message says whether the change keeps its."""
    if not task.path:
        raise CommandError(Exit.INPUT, "this document was never saved: there is nothing to compare it with. Save it")
    changed = parse(task.text, task.path)
    original = _original(task)
    name = _there(original, task)
    if original.text == changed.text:
        return Ended("unchanged", f"{name}: the text in the editor is {_words(task)}: there is no change to verify")
    opened = open_task(task, original)
    with referring(task, opened) as (reference, words):
        setting = timely(evolve(setting_of(task, opened, full=True), reference=reference))
        candidate = _candidate(opened, changed)
        prepared = _prepared(opened, setting, tell)
        ended = verified(task, candidate, prepared, setting, _words(task), tell)
    return evolve(ended, lines=(*ended.lines, *words), reason=_BROKEN if ended.reason == MENDED else ended.reason)


def verified(task: Task, candidate: Program, prepared: Prepared, setting: Setting, old: str, tell: Tell) -> Ended:
    """The verdict on a change; ``old`` is what the user calls the original. Of a broken original the reason is
    ``mended`` where the change keeps its own contract, else ``broken original``."""
    name, mine = prepared.workload.kernel, candidate.label
    if prepared.contract.broken:
        kept, why = without_truth(prepared, candidate, setting, old, lambda stage: tell(Staged(f"{mine}: {stage}")))
        return Ended(MENDED if kept else _BROKEN, f"{name}: {why}")
    judged, record = _judged(prepared, candidate, task, tell)
    verdict = judged.verdict
    lossless = verdict.shown or verdict.precision.state == "unchecked"
    allowed = task.options.lossy or prepared.workload.lossy
    right = verdict.correctness.state == "right"
    reason = ("right" if lossless or allowed else "less precise") if right else verdict.correctness.state
    return Ended(
        reason,
        f"{name} against {old}: {told_text(verdict)}",
        verdict=verdict,
        lines=(*evidence_lines(verdict), record),
    )


def _original(task: Task) -> Document:
    if task.options.against == SAVED:
        return open_document(task.path)
    return parse(at_revision(task.path, task.options.against), task.path)


def _there(original: Document, task: Task) -> str:
    try:
        return original.kernel(task.kernel).qualified_name
    except UnknownKernel as error:
        raise CommandError(Exit.INPUT, f"{task.kernel} is not in {_words(task)}: {error}") from error


def _words(task: Task) -> str:
    return "the saved file" if task.options.against == SAVED else f"the file at {task.options.against}"


def _candidate(opened: Opened, changed: Document) -> Program:
    try:
        plan = plan_of(changed, opened.workload, opened.document)
    except (WorkloadError, SourceError) as error:
        raise CommandError(Exit.INPUT, f"the change cannot be run: {error}") from error
    return Program(changed, plan, "your change")


def _judged(prepared: Prepared, candidate: Program, task: Task, tell: Tell) -> tuple[Judged, str]:
    """The verdict, and where its proof record is."""
    done: list[GateResult] = []
    total = len(gates())

    def progress(result: GateResult) -> None:
        done.append(result)
        tell(Staged(f"{result.gate}: {result.outcome}", len(done), total))

    try:
        judged = examine(prepared, candidate, task.options.lossy, progress)
    except ShortExtent as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    return judged, keep_record(prepared, candidate, judged, task.options.lossy)


def _prepared(opened: Opened, setting: Setting, tell: Tell) -> Prepared:
    prepared = prepare(opened.program, opened.workload, setting, lambda stage: tell(Staged(stage)))
    if isinstance(prepared, Failure):
        said = "no verdict: " if prepared.kind == "cancelled" else ""
        raise CommandError(Exit.MACHINE if prepared.kind == "unavailable" else Exit.INPUT, f"{said}{prepared.message}")
    return prepared


def prepared_or_error(opened: Opened, setting: Setting, tell: Tell) -> Prepared:
    """What the original is judged by. Raises CommandError where it cannot be run, or breaks its own contract."""
    prepared = _prepared(opened, setting, tell)
    if prepared.contract.broken:
        raise CommandError(Exit.BROKEN, f"the original breaks its own contract: {prepared.contract.summary}")
    return prepared
