"""``cuda-lsp serve``: the language server."""

import gc
import logging
import os
import sys
from pathlib import Path
from typing import BinaryIO

import click

from cuda_lsp.terminal.exits import CommandError, Exit


@click.command("serve")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output. That is the default.")
@click.option("--tcp", type=click.IntRange(0, 65535), metavar="PORT", help="Wait on 127.0.0.1:PORT, for debugging.")
@click.option(
    "--log", "log_file", type=click.Path(), metavar="FILE", help="Write a log to FILE, not to standard error."
)
@click.option("--trace", type=click.Path(), metavar="FILE", help="Write every message to FILE, for a bug report.")
@click.option("--trace-source", is_flag=True, help="Leave texts in the trace. Without it the trace holds no source.")
def command(stdio: bool, tcp: int | None, log_file: str | None, trace: str | None, trace_source: bool) -> int:
    """Serve an editor: the language server, over standard input and output."""
    if stdio and tcp is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    if trace_source and not trace:
        raise click.UsageError("--trace-source needs --trace FILE")
    _start_log(log_file)
    tracer = None
    if trace:
        from cuda_lsp.trace import open_trace

        tracer = open_trace(_writable(trace, "--trace"), with_source=trace_source)
    # the output belongs to the protocol: whatever else prints, also a library in C, prints to standard error
    stdin, stdout = sys.stdin.buffer, _claimed_output() if tcp is None else None

    # what is imported stays: a tenth of the start would be spent on looking through it for garbage
    gc.disable()
    from cuda_lsp.server import CudaServer

    # a keystroke must not wait long for the thread that finds facts in the background
    sys.setswitchinterval(0.0005)
    return Exit.OK if CudaServer(tracer).serve(stdin, stdout, tcp) else Exit.NEGATIVE


def _claimed_output() -> BinaryIO:
    mine = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(mine, "wb")


def _start_log(file: str | None) -> None:
    handler = logging.FileHandler(_writable(file, "--log"), encoding="utf-8") if file else logging.StreamHandler()
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, format=form, handlers=[handler])
    # a log that cannot be written (a full disk, an editor that closed our standard error) is nobody's business
    logging.raiseExceptions = False
    logging.getLogger("cuda_lsp").setLevel(logging.INFO)
    # it would log whole messages, with the source in them
    logging.getLogger("pygls").setLevel(logging.CRITICAL)


def _writable(file: str, option: str) -> Path:
    try:
        with open(file, "a", encoding="utf-8"):  # noqa: PTH123
            return Path(file)
    except OSError as error:
        raise CommandError(Exit.INPUT, f"{option} {file}: cannot be written ({error.strerror or error})") from error
