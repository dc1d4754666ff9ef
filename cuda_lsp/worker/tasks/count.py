"""What the lines of a kernel cost, counted on some of its blocks in the emulator. Asked for by the server itself, and
by ``cuda-lsp hints --count``.

Where nothing states what the kernel runs on, a launch is made up, and the counts say so. What is bad on it and named
by no rule is counted with other numbers too.
"""

import contextlib
from collections.abc import Iterator

from attrs import evolve

from agent.analysis.headers import learn
from agent.analysis.rules.finding import Finding
from agent.analysis.rules.from_counts import Counts, from_counts, unnamed
from agent.evaluation.lines.counts import KernelCounts, count_kernel
from agent.execution.compiler.result import CompileFailure
from agent.inference.making import at_other_numbers, invented, plausible
from agent.inference.probing import Limits, Stopped
from agent.source.errors import SourceError
from cuda_lsp.terminal.making import finder
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell

UNCOMPILED, UNCOUNTED = "not compiled", "no counts"
_MAKING = 8.0  # seconds for a launch that is made up, while somebody reads
_MORE = 4.0  # for two more of them
_ENOUGH = 2  # launches whose numbers could be somebody's


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
    return Ended("done", counted.lines.where, counts=counted.lines, found=_found(task, opened, counted))


def _found(task: Task, opened: Opened, counted: KernelCounts) -> tuple[Finding, ...]:
    document, kernel = opened.document, opened.kernel
    learn(document)
    told = _told(opened, counted)
    try:
        doubtful = told.made_up and unnamed(document, kernel, told)
        return from_counts(document, kernel, told, _elsewhere(task, opened) if doubtful else ())
    except (SourceError, RecursionError):
        return ()  # nested too deeply: the rules leave it alone too


def _told(opened: Opened, counted: KernelCounts) -> Counts:
    lines = counted.lines
    free = invented(opened.document, opened.kernel, opened.workload) if lines.made_up else None
    return Counts(counted.executed, counted.sizes, lines.made_up, lines.block, free)


def _elsewhere(task: Task, opened: Opened) -> tuple[Counts, ...]:
    """The same on launches with other numbers, as many as it takes to say that none of them decides; else none."""
    others: list[Counts] = []
    with contextlib.suppress(Stopped):
        others += _others(task, opened)
    return tuple(others) if len(others) + plausible(opened.workload) >= _ENOUGH else ()


def _others(task: Task, opened: Opened) -> Iterator[Counts]:
    setting = setting_of(task, opened)
    for workload in at_other_numbers(opened.document, opened.kernel, opened.workload, setting.options, Limits(_MORE)):
        other = evolve(opened, workload=workload)
        counted = count_kernel(other.document, other.kernel, workload, setting)
        if isinstance(counted, KernelCounts):
            yield _told(other, counted)
