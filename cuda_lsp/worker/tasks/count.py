"""What the lines of a kernel cost, counted on some of its blocks in the emulator. Asked for by the server itself.

Where nothing states what the kernel runs on, a launch is made up, and the counts say so.
"""

from attrs import evolve

from agent.evaluation.line_counts import count_lines
from cuda_lsp.terminal.making import finder
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.opening import open_task, setting_of
from cuda_lsp.worker.tasks import Tell

_MAKING = 8.0  # seconds for a launch that is made up, while somebody reads


def run(task: Task, tell: Tell) -> Ended:
    """``reason`` is ``done``, or ``no counts`` with the reason. No GPU is touched, whatever there is."""
    task = evolve(task, options=evolve(task.options, device="emulator"))
    opened = open_task(task, otherwise=finder((), _MAKING))
    counts = count_lines(opened.document, opened.kernel, opened.workload, setting_of(task, opened))
    if isinstance(counts, str):
        return Ended("no counts", counts)
    return Ended("done", counts.where, counts=counts)
