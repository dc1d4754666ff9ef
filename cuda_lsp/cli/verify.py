"""``cuda-lsp verify``: is my own change right? The same gates that judge a search's candidates. With a proof record."""

import json

import click
from attrs import evolve

from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.deadline import timely
from agent.evaluation.judge import Judged, examine, judge
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.evaluation.record import Unwritable, record, write
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Verdict
from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.flags import flags_argument
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.opening import (
    Finder,
    Opened,
    compiler_options,
    open_device,
    open_document,
    open_kernel,
    open_target,
)
from cuda_lsp.terminal.output import Screen, envelope
from cuda_lsp.terminal.probing import OFFER, finder, probe_option
from cuda_lsp.terminal.referring import reference_option, referring
from cuda_lsp.terminal.render import beside_text, line, timing_text, verdict_text, why_text
from cuda_lsp.terminal.replay import replay, replay_lines
from cuda_lsp.terminal.revision import at_revision
from cuda_lsp.terminal.without_truth import without_truth


@click.command("verify")
@click.argument("original", type=click.Path(), required=False)
@click.argument("rewrite", type=click.Path(), required=False)
@click.option("--against", metavar="REVISION", help="Take the original from git (HEAD) and the rewrite from the file.")
@click.option("--record", "record_file", type=click.Path(), help="Write the verdict's proof record (docs/record.md).")
@click.option("--replay", "replayed", type=click.Path(), metavar="RECORD", help="Repeat a proof record here instead.")
@click.option("--kernel", "name", help="Which kernel; the file's first by default.")
@click.option("--target", help="The card that the estimate is for (H200, A100, ...).")
@click.option("--device", type=click.Choice(["auto", "emulator", "gpu"]), default="auto", show_default=True)
@click.option("--seconds", default=300.0, show_default=True, type=click.FloatRange(min=1), help="Hard cap on time.")
@click.option(
    "--special",
    type=click.Choice(["report", "refuse"]),
    default="report",
    show_default=True,
    help="What to do where NaN or infinity among the inputs comes out otherwise than in the original.",
)
@click.option("--lossy", is_flag=True, help="Accept a rewrite that is less precise.")
@probe_option
@reference_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@flags_argument
def command(
    original: str | None,
    rewrite: str | None,
    against: str | None,
    record_file: str | None,
    replayed: str | None,
    name: str | None,
    target: str | None,
    device: str,
    seconds: float,
    special: str,
    lossy: bool,
    probe: bool,
    refer: bool,
    as_json: bool,
    flags: tuple[str, ...],
) -> int:
    """Judge REWRITE against ORIGINAL, or a file against its own version in git (--against HEAD).

    The workload is the original's; the rewrite's launches and scratch memory are read off its own launch sites.
    --replay RECORD needs no files: a proof record holds them. FLAGS after `--` are compiler flags of both files
    (-DNAME=VALUE, --use_fast_math, -I folder).
    """  # fmt: skip
    if replayed is not None:
        if original is not None or against is not None or record_file is not None:
            raise CommandError(Exit.USAGE, "--replay takes all from its record: name no files beside it")
        return _replay(replayed, device, seconds, as_json)
    if original is None:
        raise CommandError(Exit.USAGE, "name the ORIGINAL, and a REWRITE or --against REVISION; or --replay RECORD")
    if (rewrite is None) == (against is None):
        raise CommandError(Exit.USAGE, "name either a REWRITE or --against REVISION")
    screen = Screen(quiet=as_json)
    opened, changed = _sides(original, rewrite, against, name, finder(flags, screen.note) if probe else None, flags)
    runner = open_device(device)
    card = open_target(target, opened.settings, runner)
    with (
        screen,
        stoppable(lambda: screen.note("stopping at the next safe point")) as cancelled,
        referring(opened, refer, screen.note) as reference,
    ):
        setting = Setting(
            device=runner,
            target=card,
            options=compiler_options(runner, card, opened.settings, opened.workload, flags),
            architectures=opened.settings.architectures,
            depth="full",
            seconds=seconds,
            cancelled=cancelled,
            special=special,
            reference=reference,
        )
        verdict, problem = _judge(opened, changed, setting, lossy, screen, record_file)
        if cancelled():
            raise CommandError(Exit.INTERRUPTED, "interrupted: no verdict")
    accepted = verdict.correctness.state == "right" and (
        lossy or opened.workload.lossy or verdict.shown or verdict.precision.state == "unchecked"
    )
    code = Exit.NEGATIVE if not accepted else Exit.INPUT if problem else Exit.OK
    if as_json:
        click.echo(json.dumps(envelope("verify", code, kernel=opened.kernel.qualified_name, verdict=verdict)))
    else:
        _show(verdict)
    if record_file:
        screen.note(problem or f"the proof record is in {record_file}")
    return code


def _replay(path: str, device: str, seconds: float, as_json: bool) -> int:
    found = replay(path, device, seconds, Screen(quiet=as_json))
    code = Exit.OK if found.confirmed else Exit.NEGATIVE
    if as_json:
        click.echo(json.dumps(envelope("verify", code, replay=found)))
    else:
        for text in replay_lines(found):
            click.echo(text)
    return code


def _sides(
    original: str,
    rewrite: str | None,
    against: str | None,
    name: str | None,
    otherwise: Finder | None,
    flags: tuple[str, ...],
) -> tuple[Opened, Document]:
    if rewrite is not None:
        return open_kernel(original, name, otherwise=otherwise, hint=OFFER, flags=flags), open_document(rewrite)
    changed = open_document(original)
    old = parse(at_revision(original, against or "HEAD"), original)
    return open_kernel(original, name, old, otherwise=otherwise, hint=OFFER, flags=flags), changed


def _judge(
    opened: Opened, changed: Document, setting: Setting, lossy: bool, screen: Screen, record_file: str | None
) -> tuple[Verdict, str]:
    """The verdict, and what kept its record from being written, if anything did."""
    try:
        plan = plan_of(changed, opened.workload, opened.document)
    except (WorkloadError, SourceError) as error:
        raise CommandError(Exit.INPUT, f"{changed.path}: {error}") from error
    limited = timely(setting)
    prepared = prepare(opened.program, opened.workload, limited)
    if isinstance(prepared, Failure):
        if prepared.kind == "cancelled":
            code = Exit.INTERRUPTED if setting.cancelled() else Exit.NEGATIVE
            raise CommandError(code, f"no verdict: {prepared.message}")
        raise CommandError(Exit.MACHINE if prepared.kind == "unavailable" else Exit.INPUT, prepared.message)
    screen.say(line("contract", prepared.contract.summary))
    candidate = Program(changed, plan, "the rewrite")
    if prepared.contract.broken:
        _, why = without_truth(prepared, candidate, limited, "the original")
        raise CommandError(Exit.INTERRUPTED if setting.cancelled() else Exit.BROKEN, why)
    prepared = evolve(prepared, setting=limited)
    try:
        if record_file is None:
            return judge(prepared, candidate, allow_lossy=lossy), ""
        judged = examine(prepared, candidate, allow_lossy=lossy)
    except ShortExtent as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    return judged.verdict, "" if setting.cancelled() else _record(prepared, candidate, judged, lossy, record_file)


def _record(prepared: Prepared, candidate: Program, judged: Judged, lossy: bool, path: str) -> str:
    try:
        write(record(prepared, candidate, judged, lossy), path)
    except Unwritable as error:
        return str(error)
    return ""


def _show(verdict: Verdict) -> None:
    click.echo(line("verdict", verdict_text(verdict)))
    why = why_text(verdict)
    if why:
        click.echo(line("why", why))
    if timed := timing_text(verdict.evidence.timing):
        click.echo(line("timed", timed))
    if beside := beside_text(verdict.evidence):
        click.echo(line("beside", beside))
    for gate in verdict.gates:
        click.echo(line("", f"{gate.gate}: {gate.outcome}{f', {gate.reason}' if gate.reason else ''}"))
    if verdict.evidence.not_checked:
        click.echo(line("unchecked", "; ".join(verdict.evidence.not_checked)))
