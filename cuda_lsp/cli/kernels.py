"""``cuda-lsp kernels``: what is in a file, where it is launched, and what it costs."""

import json
import math

import click
from attrs import evolve, frozen

from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure, Options, Resources
from agent.execution.emulator import Emulator
from agent.execution.occupancy import Occupancy, occupancy
from agent.execution.targets import Target
from agent.source.document import Document
from agent.source.indirect import launched_at
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch
from agent.workload.describe import arguments, origin
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.program import Program
from agent.workload.settings import Settings
from agent.workload.stray import stray_directives
from agent.workload.workload import Workload
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.flags import flags_argument
from cuda_lsp.terminal.opening import compiler_options, open_document, open_settings, open_target
from cuda_lsp.terminal.output import envelope
from cuda_lsp.terminal.probing import look, probe_option
from cuda_lsp.terminal.profile_table import printable
from cuda_lsp.terminal.unread import no_kernel, parse_error


@frozen
class Listed:
    """One kernel as listed. ``problem`` says why there is no workload or no build; ``probed`` is what running it told
    then, with what was ``assumed`` and what is left ``open``."""

    name: str
    line: int
    signature: str
    launches: tuple[int, ...]
    workload: str = ""
    origin: str = ""
    resources: Resources | None = None
    occupancy: Occupancy | None = None
    problem: str = ""
    probed: str = ""
    assumed: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@click.command("kernels")
@click.argument("file", type=click.Path())
@click.option("--target", help="The card that registers and occupancy are for.")
@probe_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@flags_argument
def command(file: str, target: str | None, probe: bool, as_json: bool, flags: tuple[str, ...]) -> int:
    """List the kernels of FILE: launches, workload, registers, occupancy.

    FLAGS after `--` are compiler flags of the file (-DNAME=VALUE, --use_fast_math, -I folder).
    """
    document, settings = open_document(file), open_settings(file)
    card = open_target(target, settings)
    found = [_listed(document, kernel, card, settings, flags, probe) for kernel in document.kernels]
    for stray in stray_directives(document):
        click.echo(f"{document.path}:{stray.line}: {stray.message}", err=True)
    if as_json:
        if parse_error(document):
            click.echo(f"cuda-lsp: {printable(no_kernel(document))}", err=True)
        click.echo(json.dumps(envelope("kernels", Exit.OK, file=document.path, target=card.name, kernels=found)))
        return Exit.OK
    if told := settings.built.told(file) or settings.built.problem:
        click.echo(f"flags of the build: {told}")
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
        if listed.probed:
            click.echo(f"  probed   {listed.probed}")
        for word, texts in (("assumed", listed.assumed), ("open", listed.open)):
            for text in texts:
                click.echo(f"  {word:8} {text}")
    if not found:
        click.echo(printable(no_kernel(document)))
    return Exit.OK


def _listed(
    document: Document, kernel: Kernel, card: Target, settings: Settings, flags: tuple[str, ...], probe: bool
) -> Listed:
    listed = Listed(
        name=kernel.qualified_name,
        line=kernel.line,
        signature=" ".join(document.slice_text(kernel.signature).split()),
        launches=launched_at(document, kernel.name),
    )
    if kernel.damage:
        return evolve(listed, problem=kernel.damage)
    try:
        workload = find_workload(document, kernel, settings, flags)
    except (NoWorkload, WorkloadError) as error:
        listed = evolve(listed, problem=f"no workload: {error}")
        if not (probe and isinstance(error, NoWorkload)):
            return listed
        return _probed(listed, document, kernel, compiler_options(Emulator(), card, settings, None, flags))
    listed = evolve(listed, workload=arguments(workload), origin=origin(workload))
    options = compiler_options(Emulator(), card, settings, workload, flags)
    return _measured(listed, Program(document, workload.plan, kernel.name), workload, options)


def _probed(listed: Listed, document: Document, kernel: Kernel, options: Options) -> Listed:
    """What running the kernel tells: nothing of it is taken for a workload here."""
    try:
        told = look(document, kernel, options)
    except CommandError as error:
        return evolve(listed, open=(str(error),))
    return evolve(
        listed, probed=told.summary, assumed=told.notes, open=tuple(stop.text for stop in told.stops)
    )  # fmt: skip


def _measured(listed: Listed, program: Program, workload: Workload, options: Options) -> Listed:
    """With registers and occupancy of the kernel as the workload launches it first."""
    built = build(program, options)
    if isinstance(built, CompileFailure):
        return evolve(listed, problem=built.message)
    name, resources = next(iter(built.resources.items()))
    try:
        steps = bind(workload, program.plan, document=program.document).steps
    except WorkloadError as error:
        return evolve(listed, resources=resources, problem=str(error))
    launch = next(step for step in steps if isinstance(step, BoundLaunch) and step.kernel == name)
    load = occupancy(options.arch, resources, math.prod(launch.block), launch.shared)
    return evolve(listed, resources=resources, occupancy=load)


def _resources(resources: Resources, load: Occupancy | None) -> str:
    text = f"{resources.registers} registers, {resources.static_shared} B static shared"
    if resources.spill_stores:
        text += f", {resources.spill_stores} B spilled"
    if load:
        text += f", occupancy {load.ratio:.0%} ({load.limiter})"
    return text
