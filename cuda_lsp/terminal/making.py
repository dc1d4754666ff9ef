"""A launch that is made up where nothing states one: lines can be counted on it, and it is said to be made up."""

from agent.execution.compiler.result import Options
from agent.inference.making import make_up
from agent.inference.probing import Limits, Stopped
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.flags import merged
from agent.workload.settings import Settings
from agent.workload.workload import Workload
from cuda_lsp.terminal.opening import Finder

SECONDS = 20.0
"""Hard cap on the time for one kernel, the compiler's own left out."""


def finder(flags: tuple[str, ...], seconds: float = SECONDS) -> Finder:
    """Makes up a launch of a kernel that states none; or says why none can be. Compiled with ``flags``."""

    def find(document: Document, kernel: Kernel, settings: Settings) -> Workload | str:
        options = Options(flags=merged(settings.flags, flags))
        try:
            return make_up(document, kernel, options, Limits(seconds)).workload
        except Stopped as stopped:
            return f"Nor can a launch be made up: {stopped.reason}"

    return find
