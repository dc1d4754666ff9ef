"""``--reference``: the user's word that the PyTorch function which his workload names may run. It is Python."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from agent.execution.reference import TorchReference
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened

reference_option = click.option(
    "--reference",
    "refer",
    is_flag=True,
    help="Let the PyTorch function run that the workload names (it is Python; docs/workload.md).",
)


@contextmanager
def referring(opened: Opened, allowed: bool, note: Callable[[str], None]) -> Iterator[TorchReference | None]:
    """The function that the workload names, for as long as it is wanted; None, with a word, where it may not run.
    Raises CommandError where it may and there is none."""
    named = opened.workload.reference
    if named is None:
        if allowed:
            raise CommandError(
                Exit.USAGE,
                f"--reference: the workload of {opened.kernel.name} names none; in a directive that is "
                "`reference refs.py:function`",
            )
        yield None
        return
    if not allowed:
        note(f"{named} is not run, as it is Python: --reference lets it")
        yield None
        return
    function = TorchReference(named, Path(opened.document.path).resolve().parent)
    try:
        yield function
    finally:
        function.close()
