"""Write down the workload of a kernel as a directive, for the user to read and correct."""

from agent.source.document import parse
from agent.workload.describe import arguments, origin
from agent.workload.directive import find_directive, format_directive
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import choose_kernel
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
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
        return Ended("questions", f"{kernel.name}: {error}", lines=error.questions, directive=error.draft)
    except WorkloadError as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    found = f"{kernel.name}: {arguments(workload)}, from {origin(workload)}"
    return Ended("done", found, lines=workload.notes, directive=format_directive(workload))
