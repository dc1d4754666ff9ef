"""The command ``cuda-lsp``: finds its subcommands, and is where an error becomes a message and an exit code."""

import importlib
import json
import pkgutil
import sys
import tempfile
import traceback

import click

import cuda_lsp
from agent.execution.leaving import leave_nothing
from cuda_lsp import cli
from cuda_lsp.terminal import ending, outlet
from cuda_lsp.terminal.exits import TOO_DEEP, CommandError, Exit


class Commands(click.Group):
    """Every module of ``cuda_lsp.cli`` is a subcommand. It is imported when it is asked for: ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(cli.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{cli.__name__}.{cmd_name}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(cuda_lsp.__version__, prog_name="cuda-lsp")
def group() -> None:
    """What the hardware will do with a CUDA kernel, and rewrites that are proved before they are shown."""


def main() -> None:
    """Entry point. Never shows a traceback."""
    ending.watch()
    try:
        code = group.main(standalone_mode=False) or Exit.OK
        outlet.flush()
    except ending.Ended:
        code = Exit.INTERRUPTED
    except (click.exceptions.Abort, KeyboardInterrupt):
        leave_nothing(last=False)
        code = _say("interrupted", Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        code = Exit.USAGE
    except CommandError as error:
        code = _say(str(error), error.code)
    except BrokenPipeError:
        outlet.shut()  # the reader went away (`| head`): that is no error of ours
        code = Exit.OK
    except RecursionError:
        code = _say(TOO_DEEP, Exit.INPUT)
    except Exception as error:
        ending.finish()  # what was ended in the midst of something may fail in any way
        code = _unwritten(error) if outlet.unwritable(error) else _say(_report(), Exit.INTERNAL)
    ending.finish()
    sys.exit(int(code))


def _say(message: str, code: Exit) -> Exit:
    if "--json" in sys.argv:
        # Loaded here, so that little is loaded, and little can be interrupted, before `main` answers for errors.
        from cuda_lsp.terminal.output import envelope

        try:
            click.echo(json.dumps(envelope(sys.argv[1], code, error=message)))
        except OSError as error:
            outlet.shut()
            message = outlet.unwritable(error) or message
    click.echo(f"cuda-lsp: {message}", err=True)
    return code


def _unwritten(error: Exception) -> Exit:
    outlet.shut()
    return _say(outlet.unwritable(error), Exit.INPUT)


def _report() -> str:
    """Writes what happened to a file for a bug report; no source text goes into it beyond our own."""
    text = traceback.format_exc()
    last = text.strip().splitlines()[-1]
    try:
        with tempfile.NamedTemporaryFile("w", prefix="cuda-lsp-", suffix=".log", delete=False) as file:
            file.write(text)
        return f"internal error ({last}). A report is in {file.name}; nothing of yours was changed"
    except OSError:
        return f"internal error ({last}). Nothing of yours was changed"
