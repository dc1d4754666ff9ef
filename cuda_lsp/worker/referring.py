"""The PyTorch function that a job's workload names, where its user let it run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.execution.reference import TorchReference
from cuda_lsp.asked_reference import key_of
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker.asked import Task


@contextmanager
def referring(task: Task, opened: Opened) -> Iterator[tuple[TorchReference | None, tuple[str, ...]]]:
    """The function for as long as it is wanted, and a line that says why it is not run where it is not. What was
    agreed to is one function of one file: another that stands there by now is not run."""
    named = opened.workload.reference
    if named is None:
        yield None, ()
    elif task.path and task.options.reference == key_of(task.path, named.path, named.name):
        function = TorchReference(named, Path(task.path).resolve().parent)
        try:
            yield function, ()
        finally:
            function.close()
    else:
        yield None, (f"{named} was not run: {_why(task)}",)


def _why(task: Task) -> str:
    if not task.path:
        return "its path is relative to this document, which was never saved"
    if task.options.reference:
        return "it is not the function that you agreed to"
    return "it is Python, and runs where the setting cuda-lsp.reference is on and you agree"
