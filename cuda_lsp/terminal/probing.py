"""``--probe``: a workload that nobody states is looked for by running the kernel, and said to be probed wherever it is
used."""

from collections.abc import Callable
from typing import Any

import click

from agent.execution.compiler.result import Options
from agent.execution.process import never
from agent.inference.probing import Limits, Probed, Stopped, probe
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.flags import merged
from agent.workload.settings import Settings
from agent.workload.workload import Workload
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Finder

SECONDS = 60.0
"""Hard cap on the time for one kernel, the compiler's own left out."""

OFFER = "Or add --probe: it is run in the emulator on buffers without ends, to see what it touches"


def probe_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of a command that can look for a workload by running the kernel."""
    text = "Where no workload is found, run the kernel in the emulator to see what it touches."
    return click.option("--probe", is_flag=True, help=text)(command)


def look(
    document: Document, kernel: Kernel, options: Options, seconds: float = SECONDS,
    cancelled: Callable[[], bool] = never,
) -> Probed:  # fmt: skip
    """What probing finds. Raises CommandError where it finds nothing at all."""
    try:
        return probe(document, kernel, options, Limits(seconds, cancelled))
    except Stopped as stopped:
        line = f" (line {stopped.line})" if stopped.line else ""
        code = {"unavailable": Exit.MACHINE, "cancelled": Exit.INTERRUPTED}.get(stopped.kind, Exit.INPUT)
        raise CommandError(code, f"{kernel.name} cannot be probed: {stopped.reason}{line}") from stopped


def finder(flags: tuple[str, ...], say: Callable[[str], None]) -> Finder:
    """Looks for the workload of a kernel that states none, with the compiler's ``flags`` of the command line."""

    def find(document: Document, kernel: Kernel, settings: Settings) -> Workload:
        return found(document, kernel, Options(flags=merged(settings.flags, flags)), say)

    return find


def found(document: Document, kernel: Kernel, options: Options, say: Callable[[str], None]) -> Workload:
    """The workload that probing finds, announced in full. Raises CommandError with a draft where something is open."""
    told = look(document, kernel, options)
    if told.workload is None:
        open_ = "".join(f"\n  - {stop.text}" for stop in told.stops)
        raise CommandError(
            Exit.INPUT,
            f"{document.path}:{kernel.line}: probing {kernel.name} leaves something open:{open_}\n"
            f"Put this above the kernel, with the blanks filled in:\n{told.draft}",
        )
    say(f"the workload of {kernel.name} was probed ({told.runs} runs in the emulator): nothing states it")
    for note in told.notes:
        say(f"assumed: {note}")
    return told.workload
