"""``cuda-lsp profile``: a kernel's lines with what each of them costs, counted in the emulator."""

import json
from collections.abc import Mapping
from typing import Any

import click
from attrs import evolve

from agent.evaluation.lines.profile import Profile, profile
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import declared
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.emulator import Emulator
from agent.execution.nsight import Counted
from agent.execution.sass import NoDisassembly, by_line
from agent.workload.describe import arguments, origin
from agent.workload.workload import MADE_UP
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.flags import flags_argument
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.making import finder
from cuda_lsp.terminal.opening import Opened, compiler_options, open_kernel, open_target
from cuda_lsp.terminal.output import Screen, envelope
from cuda_lsp.terminal.profile import Shown, show
from cuda_lsp.terminal.profile_card import asked, card_lines, reported
from cuda_lsp.terminal.profile_table import paper, printable
from cuda_lsp.terminal.profile_totals import provenance
from cuda_lsp.terminal.render import line

FIELDS: dict[str, Any] = {
    "file": str,
    "line": int,
    "signature": str,
    "workload": str,
    "origin": str,
    "provenance": str,
    "profile": Profile,
    "sass": Mapping[int, tuple[str, ...]],
    "card": tuple[Counted, ...],
}
"""What `--json` has beside the envelope."""


@click.command("profile")
@click.argument("file", type=click.Path())
@click.option("--kernel", "name", help="Which kernel; the file's first by default.")
@click.option("--target", help="The card that the estimate is for (H200, A100, ...).")
@click.option("--size", "sizes", multiple=True, metavar="NAME=VALUE", help="Count at this size; may be repeated.")
@click.option("--ptx", is_flag=True, help="The PTX of each line under it, with its counts.")
@click.option("--sass", is_flag=True, help="The machine code of each line under it (needs nvdisasm).")
@click.option(
    "--report",
    type=click.Path(),
    metavar="REPORT",
    help="A report of Nsight Compute (.ncu-rep, or its CSV): the card's own counts of this kernel, too.",
)
@click.option(
    "--ncu", is_flag=True, help="Run it once on this machine's card under Nsight Compute: the same, counted now."
)
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(min=0.1), help="Cap on one attempt.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@flags_argument
def command(
    file: str,
    name: str | None,
    target: str | None,
    sizes: tuple[str, ...],
    ptx: bool,
    sass: bool,
    report: str | None,
    ncu: bool,
    seconds: float,
    as_json: bool,
    flags: tuple[str, ...],
) -> int:
    """Print a kernel of FILE with what each line costs: counted in the emulator, and estimated for a card.

    Where nothing states what the kernel runs on, a small launch is made up, and the output says so.
    FLAGS after `--` are compiler flags of the file (-DNAME=VALUE, --use_fast_math, -I folder).
    """
    opened = open_kernel(file, name, otherwise=finder(flags), flags=flags)
    own, where = reported(report, opened.kernel.name) if report is not None else ((), "")
    if ncu and report is not None:
        raise CommandError(Exit.USAGE, "--ncu counts now and --report tells what was counted before: give one of them")
    card = open_target(target, opened.settings)
    wanted = _sizes(opened, sizes)
    screen = Screen(quiet=as_json)
    with screen, stoppable(lambda: screen.note("stopping at the next safe point")) as cancelled:
        screen.stage("counting in the emulator")
        options = compiler_options(Emulator(), card, opened.settings, opened.workload, flags)
        setting = Setting(Emulator(), card, options, cancelled=cancelled)
        found = profile(opened.document, opened.kernel, opened.workload, setting, wanted, seconds, precision=True)
        if cancelled():
            raise CommandError(Exit.INTERRUPTED, "interrupted: nothing is known yet")
    counted, built = _counted(found, opened)
    if ncu:
        own, where = asked(opened, wanted, flags)
    code = _sass(counted, built, opened, screen if ptx else None) if sass else None
    if as_json:
        click.echo(json.dumps(_envelope(counted, opened, ptx, code, own)))
        return Exit.OK
    document = opened.document
    on = paper()
    on.wrap(f"{_signature(opened)}      {printable(document.path)}:{opened.kernel.line}")
    on.wrap(line("workload", f"{arguments(opened.workload)}     {origin(opened.workload)}"))
    on.wrap(line("counted", provenance(counted)))
    on.say()
    source = tuple(document.text.decode(errors="replace").split("\n"))
    first, last = document.line(opened.kernel.span.start), document.line(opened.kernel.span.end)
    show(counted, Shown(source, first, last, ptx, code), on)
    for text in ("", *card_lines(own, where)) if own else ():
        on.wrap(text)
    return Exit.OK


def _sizes(opened: Opened, stated: tuple[str, ...]) -> dict[str, int] | None:
    """The workload's sizes with those of the command line in their place; None where there are none."""
    if not stated:
        return None
    if opened.workload.origin.kind == MADE_UP:
        text = "its launch is made up and as large as it was seen to need: state the kernel's own in a directive"
        raise CommandError(Exit.USAGE, f"--size {stated[0]}: {text}")
    known = declared(opened.workload)
    sizes = dict(known)
    for one in stated:
        name, _, value = one.partition("=")
        if name not in known:
            names = ", ".join(known) or "none"
            raise CommandError(Exit.USAGE, f"--size {one}: the workload has no size of that name (it has {names})")
        if not value.isdecimal() or int(value) < 1:
            raise CommandError(Exit.USAGE, f"--size {one}: write NAME=VALUE with a whole number from 1 on")
        sizes[name] = int(value)
    return sizes


def _counted(found: tuple[Profile, Build] | CompileFailure | str, opened: Opened) -> tuple[Profile, Build]:
    if isinstance(found, tuple):
        return found
    where = f"{opened.document.path}: {opened.kernel.name}"
    if isinstance(found, CompileFailure):
        code = Exit.MACHINE if found.kind == "unavailable" else Exit.INPUT
        raise CommandError(code, f"{where} does not compile: {found.message}")
    text = f"{where} cannot be counted: {found}"
    if found.startswith("more than"):
        text += " at the smallest size tried. Give a smaller one with --size NAME=VALUE, or more time with --seconds"
    raise CommandError(Exit.INPUT, text)


def _sass(counted: Profile, built: Build, opened: Opened, screen: Screen | None) -> dict[int, tuple[str, ...]] | None:
    """Machine code by line. Where there is none, ``screen`` notes why if there is something else to show."""
    try:
        return by_line(built, {one.kernel for one in counted.launches}, opened.document.path)
    except NoDisassembly as error:
        if screen is not None:
            screen.note(str(error))
            return None
        raise CommandError(Exit.MACHINE, str(error)) from error


def _envelope(
    counted: Profile, opened: Opened, ptx: bool, code: dict[int, tuple[str, ...]] | None, own: tuple[Counted, ...]
) -> dict[str, object]:
    lines = counted.lines if ptx else tuple(evolve(one, ptx=()) for one in counted.lines)
    return envelope(
        "profile",
        Exit.OK,
        file=opened.document.path,
        line=opened.kernel.line,
        signature=_signature(opened),
        workload=arguments(opened.workload),
        origin=origin(opened.workload),
        provenance=provenance(counted),
        profile=evolve(counted, lines=lines),
        sass=code or {},
        card=own,
    )


def _signature(opened: Opened) -> str:
    return printable(" ".join(opened.document.slice_text(opened.kernel.signature).split()))
