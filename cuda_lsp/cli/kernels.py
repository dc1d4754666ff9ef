"""``cuda-lsp kernels``: what is in a file, where it is launched, and what it costs."""

import json

import click
from agent.execution.occupancy import Occupancy
from agent.workload.settings import Settings
from attrs import frozen

from agent.execution.compiler.result import Resources
from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp.cli.exits import Exit
from cuda_lsp.cli.opening import compiler_options, open_document, open_settings, open_target
from cuda_lsp.cli.output import envelope


@frozen
class Listed:
    """One kernel as listed. ``problem`` says why there is no workload or no build."""

    name: str
    line: int
    signature: str
    launches: tuple[int, ...]
    workload: str
    origin: str
    resources: Resources | None
    occupancy: Occupancy | None
    problem: str


@click.command("kernels")
@click.argument("file", type=click.Path())
@click.option("--target", help="The card that registers and occupancy are for.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def command(file: str, target: str | None, as_json: bool, flags: tuple[str, ...]) -> int:
    """List the kernels of FILE: launches, workload, registers, occupancy."""
    document, settings = open_document(file), open_settings(file)
    card = open_target(target, settings)
    options = compiler_options(card, settings, flags)
    found = [_listed(document, kernel, settings, options) for kernel in document.kernels]
    if as_json:
        click.echo(json.dumps(envelope("kernels", Exit.OK, file=document.path, target=card.name, kernels=found)))
        return Exit.OK
    for listed in found:
        click.echo(f"{listed.signature}      {document.path}:{listed.line}")
        if listed.launches:
            click.echo(f"  launched at line {', '.join(map(str, listed.launches))}")
        if listed.workload:
            click.echo(f"  workload {listed.workload}     {listed.origin}")
        if listed.resources:
            click.echo(f"  {_resources(listed.resources, listed.occupancy)} on {card.arch}")
        if listed.problem:
            click.echo(f"  {listed.problem}")
    if not found:
        click.echo(f"{document.path}: no kernel (`__global__` function) in this file")
    return Exit.OK


def _listed(document: Document, kernel: Kernel, settings: Settings, options: object) -> Listed:
    listed = Listed(
        name=kernel.qualified_name,
        line=kernel.line,
        signature=" ".join(document.slice_text(kernel.signature).split()),
        launches=tuple(site.line for site in document.launches if site.kernel == kernel.name),
        workload="", origin="", resources=None, occupancy=None, problem=kernel.damage or "",
    )  # fmt: skip
    return listed if kernel.damage else _measured(listed, document, kernel, settings, options)


def _measured(listed: Listed, document: Document, kernel: Kernel, settings: Settings, options: object) -> Listed:
    raise NotImplementedError


def _resources(resources: Resources, load: Occupancy | None) -> str:
    text = f"{resources.registers} registers, {resources.static_shared} B static shared"
    if resources.spill_stores:
        text += f", {resources.spill_stores} B spilled"
    if load:
        text += f", occupancy {load.ratio:.0%} ({load.limiter})"
    return text
