"""``cuda-lsp doctor``: what this machine can do, what is missing, and the command that mends it."""

import json

import click

from agent.execution.machine import capabilities
from cuda_lsp.terminal.exits import Exit
from cuda_lsp.terminal.output import envelope


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
def command(as_json: bool) -> int:
    """Say what this machine can do, what is missing, and the command that mends it."""
    found = capabilities()
    code = Exit.OK if all(capability.present for capability in found if capability.required) else Exit.MACHINE
    if as_json:
        click.echo(json.dumps(envelope("doctor", code, capabilities=found)))
        return code
    width = max(len(capability.name) for capability in found)
    for capability in found:
        mark = "yes" if capability.present else "NO " if capability.required else "no "
        click.echo(f"{mark}  {capability.name:<{width}}  {capability.detail}")
        if not capability.present and capability.mend:
            click.echo(f"     {'':<{width}}  mend: {capability.mend}")
    return code
