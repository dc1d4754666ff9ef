"""Write down the workload of a kernel as a directive, for the user to read and correct."""

from agent.execution.compiler.result import Options
from agent.source.document import Document, parse
from agent.source.kernel import Kernel
from agent.workload.describe import arguments, origin
from agent.workload.directive import find_directive, format_directive
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.flags import merged
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import choose_kernel
from cuda_lsp.terminal.probing import SECONDS, look
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import settings_of
from cuda_lsp.worker.tasks import Tell


def run(task: Task, tell: Tell) -> Ended:
    """The directive to put above the kernel; a draft with blanks where only the user knows the answers."""
    document = parse(task.text, task.path)
    kernel, _ = choose_kernel(document, task.kernel)
    stated = find_directive(document, kernel)
    if stated is not None:
        raise CommandError(Exit.INPUT, f"{kernel.name} has a workload directive already, at line {stated.line}")
    try:
        workload = find_workload(document, kernel, settings_of(task))
    except NoWorkload as error:
        if not error.draft:
            raise CommandError(Exit.INPUT, str(error)) from error
        return _probed(task, document, kernel, error, tell)
    except WorkloadError as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    found = f"{kernel.name}: {arguments(workload)}, from {origin(workload)}"
    return Ended("done", found, lines=workload.notes, directive=format_directive(workload))


def _probed(task: Task, document: Document, kernel: Kernel, error: NoWorkload, tell: Tell) -> Ended:
    """What running the kernel tells, where reading leaves questions; these, where it tells no more."""
    tell(Staged(f"running {kernel.name} to see what it touches"))
    options = Options(flags=merged(settings_of(task).flags, task.options.flags))
    try:
        told = look(document, kernel, options, min(SECONDS, task.options.seconds))
    except CommandError as stopped:
        message = f"{kernel.name}: {error}; and {stopped}"
        return Ended("questions", message, lines=error.questions, directive=error.draft)
    if told.workload is None:
        lines = tuple(stop.text for stop in told.stops)
        message = f"{kernel.name} was probed: {told.summary}; open: {told.reason}"
        return Ended("questions", message, lines=lines, directive=told.draft)
    seen = f"{arguments(told.workload)}, from {told.runs} runs in the emulator; nothing is known of bounds"
    return Ended("done", f"{kernel.name}: {seen}", lines=told.notes, directive=told.draft)
