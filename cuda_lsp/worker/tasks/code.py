"""The PTX or the machine code of a kernel, under the source lines that it belongs to. Nothing is run."""

from agent.execution.compiler import CompileFailure, Options
from agent.execution.listing import ptx, under_lines
from agent.execution.sass import NoDisassembly, in_order
from agent.source.document import parse
from agent.workload.flags import merged
from cuda_lsp.facts.examine import compiled, stated
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import choose_kernel, open_target
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import settings_of
from cuda_lsp.worker.tasks import Tell

SASS = "sass"


def run(task: Task, tell: Tell) -> Ended:
    """``lines`` are those of the listing. Raises CommandError where the kernel does not compile, or for machine code
    where there is no disassembler."""
    document = parse(task.text, task.path)
    kernel, _ = choose_kernel(document, task.kernel)
    settings = settings_of(task)
    target = open_target(task.options.target or None, settings)
    name = kernel.qualified_name
    tell(Staged("compiling"))
    workload, _, _ = stated(document, kernel, settings)
    flags = merged(settings.flags, workload.flags if workload else ())
    built = compiled(document, kernel, workload, Options(target.arch, flags), lambda: False)
    if isinstance(built, CompileFailure):
        raise CommandError(Exit.INPUT, f"{kernel.name} does not compile: {built.message}")
    machine = task.options.code == SASS
    try:
        code = in_order(built, built.entries, document.path) if machine else ptx(built, built.entries, document.path)
    except NoDisassembly as error:
        raise CommandError(Exit.MACHINE, str(error)) from error
    source = document.text.decode(errors="replace").split("\n")
    what = "machine code" if machine else "PTX"
    head = (
        f"// {what} of {name} in {document.path or 'a text that was not saved'}, of {built.compiler} for {built.arch}"
    )
    return Ended("done", head, lines=(head, "", *under_lines(code, source)))
