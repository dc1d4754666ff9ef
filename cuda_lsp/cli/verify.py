"""``cuda-lsp verify``: is my own change right? The same gates that judge a search's candidates."""

import json

import click
from attrs import evolve

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, prepare
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Verdict
from agent.source.document import Document, parse
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.opening import Opened, compiler_options, open_device, open_document, open_kernel, open_target
from cuda_lsp.terminal.output import Screen, envelope
from cuda_lsp.terminal.render import line, verdict_text, why_text
from cuda_lsp.terminal.revision import at_revision


@click.command("verify")
@click.argument("original", type=click.Path())
@click.argument("rewrite", type=click.Path(), required=False)
@click.option("--against", metavar="REVISION", help="Take the original from git (HEAD) and the rewrite from the file.")
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def command(
    original: str,
    rewrite: str | None,
    against: str | None,
    name: str | None,
    target: str | None,
    device: str,
    seconds: float,
    special: str,
    lossy: bool,
    as_json: bool,
    flags: tuple[str, ...],
) -> int:
    """Judge REWRITE against ORIGINAL, or a file against its own version in git (--against HEAD).

    The workload is the original's; the rewrite's launches and scratch memory are read off its own launch sites.
    """  # fmt: skip
    if (rewrite is None) == (against is None):
        raise CommandError(Exit.USAGE, "name either a REWRITE or --against REVISION")
    screen = Screen(quiet=as_json)
    opened, changed = _sides(original, rewrite, against, name)
    runner = open_device(device)
    card = open_target(target, opened.settings, runner)
    with screen, stoppable(lambda: screen.note("stopping at the next safe point")) as cancelled:
        setting = Setting(
            device=runner,
            target=card,
            options=compiler_options(runner, card, opened.settings, opened.workload, flags),
            architectures=opened.settings.architectures,
            depth="full",
            seconds=seconds,
            cancelled=cancelled,
            special=special,
        )
        verdict = _judge(opened, changed, setting, lossy, screen)
        if cancelled():
            raise CommandError(Exit.INTERRUPTED, "interrupted: no verdict")
    accepted = verdict.correctness.state == "right" and (
        lossy or verdict.shown or verdict.precision.state == "unchecked"
    )
    code = Exit.OK if accepted else Exit.NEGATIVE
    if as_json:
        click.echo(json.dumps(envelope("verify", code, kernel=opened.kernel.qualified_name, verdict=verdict)))
    else:
        _show(verdict)
    return code


def _sides(original: str, rewrite: str | None, against: str | None, name: str | None) -> tuple[Opened, Document]:
    if rewrite is not None:
        return open_kernel(original, name), open_document(rewrite)
    changed = open_document(original)
    old = parse(at_revision(original, against or "HEAD"), original)
    return open_kernel(original, name, old), changed


def _judge(opened: Opened, changed: Document, setting: Setting, lossy: bool, screen: Screen) -> Verdict:
    try:
        plan = plan_of(changed, opened.workload, opened.document)
    except (WorkloadError, SourceError) as error:
        raise CommandError(Exit.INPUT, f"{changed.path}: {error}") from error
    prepared = prepare(opened.program, opened.workload, setting)
    if isinstance(prepared, Failure):
        raise CommandError(Exit.MACHINE if prepared.kind == "unavailable" else Exit.INPUT, prepared.message)
    screen.say(line("contract", prepared.contract.summary))
    if prepared.contract.broken:
        raise CommandError(Exit.BROKEN, f"the original breaks its own contract: {prepared.contract.summary}")
    return judge(evolve(prepared, setting=setting), Program(changed, plan, "rewrite"), allow_lossy=lossy)


def _show(verdict: Verdict) -> None:
    click.echo(line("verdict", verdict_text(verdict)))
    why = why_text(verdict)
    if why:
        click.echo(line("why", why))
    for gate in verdict.gates:
        click.echo(line("", f"{gate.gate}: {gate.outcome}{f', {gate.reason}' if gate.reason else ''}"))
    if verdict.evidence.not_checked:
        click.echo(line("unchecked", "; ".join(verdict.evidence.not_checked)))
