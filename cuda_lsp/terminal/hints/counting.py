"""``hints --count``: each kernel is compiled and run small, as the editor does after a pause, and its counts are held
against what the rules say.
"""

from agent.analysis.rules import Finding
from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp.contradicting import contradicts
from cuda_lsp.terminal.exits import CommandError
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.messages import Message
from cuda_lsp.worker.tasks import count

SECONDS = 20.0
"""As long as the editor takes for a kernel."""

NOWHERE, UNCOMPILED, UNCOUNTED, TWIN = (
    "nothing to run on",
    "not compiled",
    "ended without counts",
    "of a name that another has",
)


def examine(document: Document, kernel: Kernel, found: tuple[Finding, ...]) -> tuple[tuple[Finding, ...], str]:
    """The findings that counting does not contradict, and those that are made from it; and why the kernel did not run,
    or nothing."""
    named = [one for one in document.kernels if one.qualified_name == kernel.qualified_name]
    if len(named) > 1:  # a launch does not tell which is meant
        return found, TWIN
    task = Task("count", document.path, document.text, kernel.qualified_name, Options(seconds=SECONDS))
    try:
        ended = count.run(task, _ignore)
    except CommandError:
        return found, NOWHERE
    if ended.counts is None:
        return found, UNCOMPILED if ended.reason == count.UNCOMPILED else UNCOUNTED
    counts = ended.counts
    kept = (one for one in found if not contradicts(counts, document.line(one.span.start), one.rule))
    return (*kept, *ended.found), ""


def _ignore(message: Message) -> None:
    """Nobody waits for stages."""
