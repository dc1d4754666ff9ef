"""What the lines of a kernel cost, counted on some of its blocks in the emulator. Asked for by the server itself, and
by ``cuda-lsp hints --count``.

Where nothing states what the kernel runs on, a launch is made up, and the counts say so.
"""

from attrs import evolve

from agent.analysis.headers import learn
from agent.analysis.rules.finding import Finding
from agent.analysis.rules.from_counts import Counts, from_counts
from agent.evaluation.lines.counts import KernelCounts, count_kernel
from agent.execution.compiler.result import CompileFailure
from agent.source.errors import SourceError
from cuda_lsp.terminal.making import finder
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell

UNCOMPILED, UNCOUNTED = "not compiled", "no counts"
_MAKING = 8.0  # seconds for a launch that is made up, while somebody reads


def run(task: Task, tell: Tell) -> Ended:
    """``reason`` is ``done``, or ``not compiled`` or ``no counts`` with the reason. No GPU is touched, whatever there
    is. Raises CommandError where there is nothing to run the kernel on."""
    task = evolve(task, options=evolve(task.options, device="emulator"))
    opened = open_task(task, otherwise=finder((), _MAKING))
    counted = count_kernel(opened.document, opened.kernel, opened.workload, setting_of(task, opened))
    if isinstance(counted, CompileFailure):
        return Ended(UNCOMPILED, counted.message)
    if isinstance(counted, str):
        return Ended(UNCOUNTED, counted)
    return Ended("done", counted.lines.where, counts=counted.lines, found=_found(opened, counted))


def _found(opened: Opened, counted: KernelCounts) -> tuple[Finding, ...]:
    learn(opened.document)
    told = Counts(counted.executed, counted.sizes, counted.lines.made_up, counted.lines.block)
    try:
        return from_counts(opened.document, opened.kernel, told)
    except (SourceError, RecursionError):
        return ()  # nested too deeply: the rules leave it alone too
