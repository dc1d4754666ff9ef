"""``cuda-lsp optimize``: the whole path, from a file to verified rewrites as diffs."""

import difflib
import json

import click

from agent.evaluation.record import Unwritable
from agent.evaluation.setting import Setting
from agent.ideas.adviser import Adviser
from agent.ideas.idea import Scope
from agent.ideas.registry import entries
from agent.models.budget import Metered
from agent.search import events
from agent.search.keeping import Kept
from agent.search.options import SearchOptions
from agent.search.proposal import Proposal
from agent.search.search import Outcome, search
from agent.search.trace import open_trace
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.flags import flags_argument
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.model import ModelOptions, model_options, open_adviser
from cuda_lsp.terminal.opening import Opened, compiler_options, open_device, open_kernel, open_target, trace_key
from cuda_lsp.terminal.output import Screen, envelope, events_json, proposal_json
from cuda_lsp.terminal.probing import OFFER, finder, probe_option
from cuda_lsp.terminal.referring import reference_option, referring
from cuda_lsp.terminal.render import event_lines, line, proposal_lines
from cuda_lsp.terminal.writing import apply_document

_ENDS = {
    "broken original": Exit.BROKEN,
    "cancelled": Exit.INTERRUPTED,
    "unavailable": Exit.MACHINE,
    "done": Exit.NEGATIVE,
    "budget": Exit.NEGATIVE,
    "nothing applicable": Exit.NEGATIVE,
    "no headroom": Exit.NEGATIVE,
}
"""What an end without a proposal means; any other reason is a problem with the input."""


@click.command("optimize")
@click.argument("file", type=click.Path())
@click.option("--kernel", "name", help="Which kernel; the file's first by default.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 10), help="Rounds of ideas.")
@click.option("--seconds", default=300.0, show_default=True, type=click.FloatRange(min=1), help="Hard cap on time.")
@click.option("--candidates", default=36, show_default=True, type=click.IntRange(1), help="Hard cap on candidates.")
@click.option(
    "--proposals", default=3, show_default=True, type=click.IntRange(0, 3), help="Most rewrites to confirm and show."
)
@click.option("--trials", default=12, show_default=True, type=click.IntRange(0), help="Values tried for each constant.")
@click.option("--target", help="The card that the estimate is for (H200, A100, ...).")
@click.option("--device", type=click.Choice(["auto", "emulator", "gpu"]), default="auto", show_default=True)
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in Scope]),
    default="plan",
    show_default=True,
    help="What a rewrite may change: the kernel only, its launch too, or several kernels.",
)
@click.option("--idea", "only", multiple=True, help="Only this idea (repeatable).")
@click.option("--without", multiple=True, help="Leave this idea out (repeatable).")
@click.option(
    "--special",
    type=click.Choice(["report", "refuse"]),
    default="report",
    show_default=True,
    help="What to do where NaN or infinity among the inputs comes out otherwise than in the original.",
)
@click.option("--lossy", is_flag=True, help="Also show rewrites that are less precise, marked so.")
@click.option("--fresh", is_flag=True, help="Do not go on from an interrupted search.")
@probe_option
@reference_option
@model_options
@click.option("--apply", "apply_", is_flag=True, help="Write the first proposal into the file.")
@click.option(
    "--records", type=click.Path(), metavar="DIR", help="Write each verdict's proof record there (docs/record.md)."
)
@click.option("--diff", "diff_only", is_flag=True, help="Print only the first proposal's diff.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@flags_argument
def command(
    file: str,
    name: str | None,
    rounds: int,
    seconds: float,
    candidates: int,
    proposals: int,
    trials: int,
    target: str | None,
    device: str,
    scope: str,
    only: tuple[str, ...],
    without: tuple[str, ...],
    special: str,
    lossy: bool,
    fresh: bool,
    probe: bool,
    refer: bool,
    apply_: bool,
    records: str | None,
    diff_only: bool,
    as_json: bool,
    flags: tuple[str, ...],
    model: ModelOptions,
) -> int:
    """Look for faster rewrites of a kernel in FILE and show those that are proved right.

    FLAGS after `--` are compiler flags of the file (-DNAME=VALUE, --use_fast_math, -I folder).
    """  # fmt: skip
    if apply_ and not proposals:
        raise click.UsageError("--apply writes the first proposal, and --proposals 0 makes none")
    screen = Screen(quiet=as_json or diff_only)
    opened = open_kernel(file, name, otherwise=finder(flags, screen.note) if probe else None, hint=OFFER, flags=flags)
    options = SearchOptions(
        rounds=rounds,
        candidates=candidates,
        proposals=proposals,
        trials=trials,
        seconds=seconds,
        scope=Scope(scope),
        only=only,
        without=without,
        lossy=lossy,
        fresh=fresh,
    )
    if opened.others:
        screen.note(
            f"{opened.kernel.name} is the first of {len(opened.others) + 1} kernels; "
            f"--kernel names another: {', '.join(opened.others)}"
        )
    adviser = open_adviser(model, opened, seconds, screen.note)
    if adviser is None:  # a model's ideas have names of their own
        _check_names("--idea", only)
        _check_names("--without", without)
    runner = open_device(device)
    card = open_target(target, opened.settings, runner)
    with (
        screen,
        stoppable(lambda: screen.note("stopping at the next safe point; Ctrl-C again ends at once")) as cancelled,
        referring(opened, refer, screen.note) as reference,
    ):
        setting = Setting(
            device=runner,
            target=card,
            options=compiler_options(runner, card, opened.settings, opened.workload, flags),
            architectures=opened.settings.architectures,
            seconds=seconds,
            cancelled=cancelled,
            special=special,
            reference=reference,
        )
        kept = None if records is None else Kept(lossy)
        outcome, seen = _search(opened, setting, options, screen, adviser, kept)
    code = Exit.OK if outcome.proposals else _ENDS.get(outcome.reason, Exit.INPUT)
    problem = code in (Exit.INPUT, Exit.MACHINE)
    if kept is not None and records is not None and not _write_records(kept, records, screen) and code == Exit.OK:
        code = Exit.INPUT
    if as_json:
        click.echo(json.dumps(_as_json(outcome, seen, code)))
    elif problem or (diff_only and code == Exit.BROKEN):
        raise CommandError(code, outcome.message)
    elif diff_only:
        if not outcome.proposals:
            click.echo(line("result", f"{outcome.reason}: {outcome.message}"), err=True)
        click.echo(outcome.proposals[0].diff if outcome.proposals else "", nl=False)
    else:
        _show(outcome)
    if apply_ and outcome.proposals:
        _apply(opened, outcome.proposals[0])
    return code


def _write_records(kept: Kept, folder: str, screen: Screen) -> bool:
    """Whether they could be written; the user is told either way."""
    try:
        count = len(kept.write(folder))
    except Unwritable as error:
        screen.note(str(error))
        return False
    screen.note(f"{count} proof record{'s' * (count != 1)} in {folder}")
    return True


def _check_names(option: str, names: tuple[str, ...]) -> None:
    """A misspelt idea would leave a search with nothing to try, and the reason would not be told."""
    known = [entry.name for entry in entries()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise click.UsageError(
                f"{option}: there is no idea called {name}; "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}")
            )


def _search(
    opened: Opened,
    setting: Setting,
    options: SearchOptions,
    screen: Screen,
    adviser: Adviser | None,
    kept: Kept | None,
) -> tuple[Outcome, list[events.Event]]:
    seen: list[events.Event] = []
    if adviser is not None and isinstance(adviser.model, Metered):
        adviser.model.cancelled = setting.cancelled
    trace = open_trace(trace_key(opened, setting), options.fresh)
    if trace.verdicts:
        screen.note(f"going on from an interrupted search: {len(trace.verdicts)} candidates were judged before")

    def listen(event: events.Event) -> None:
        seen.append(event)
        screen.progress(event)
        for text in event_lines(event):
            screen.say(text)

    outcome = search(
        opened.program,
        opened.kernel,
        opened.workload,
        setting,
        options,
        trace,
        listen,
        adviser,
        kept,
    )
    if trace.problem:
        screen.note(trace.problem)
    return outcome, seen


def _as_json(outcome: Outcome, seen: list[events.Event], code: Exit) -> dict[str, object]:
    proposals = [proposal_json(proposal) for proposal in outcome.proposals]
    ended = {"reason": outcome.reason, "message": outcome.message, "proposals": proposals}
    return envelope("optimize", code, events=events_json(seen), outcome=ended)


def _show(outcome: Outcome) -> None:
    if not outcome.proposals:
        # A broken original has been described, as its contract.
        message = "" if outcome.reason == "broken original" else outcome.message
        click.echo(line("result", f"{outcome.reason}: {message}" if message else outcome.reason))
    for number, proposal in enumerate(outcome.proposals, 1):
        for text in proposal_lines(number, proposal):
            click.echo(text)
        click.echo(proposal.diff, nl=False)


def _apply(opened: Opened, proposal: Proposal) -> None:
    if proposal.by_hand:
        raise CommandError(Exit.INPUT, f"not applied: {proposal.by_hand}")
    apply_document(opened.document, proposal.document)
    click.echo(f"applied {proposal.title} to {opened.document.path}", err=True)
