"""Compiler flags on the command line: a word that is not known is refused, as what it asks for would not be done."""

import click

from agent.execution.compiler.flags import complaint
from cuda_lsp.terminal.exits import CommandError, Exit


def known(context: click.Context, parameter: click.Parameter, flags: tuple[str, ...]) -> tuple[str, ...]:
    """As a parameter's callback. Raises CommandError."""
    if said := complaint(flags):
        raise CommandError(Exit.USAGE, said)
    return flags


flags_argument = click.argument("flags", nargs=-1, type=click.UNPROCESSED, callback=known)
"""Behind ``--``, for the file."""
