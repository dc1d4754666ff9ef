"""``cuda-lsp hints``: what the rules say about files and folders, with an exit code for continuous integration."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

import click

from agent.source.errors import SourceError
from agent.workload.settings import SettingsError
from cuda_lsp.ruling import unknown
from cuda_lsp.settings import Settings
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.hints.baseline import Known, NewBaseline, new_baseline, read_baseline
from cuda_lsp.terminal.hints.exclude import Pattern, patterns
from cuda_lsp.terminal.hints.form import FIELDS, Form, Tally, json_form, text_form
from cuda_lsp.terminal.hints.github import github_form
from cuda_lsp.terminal.hints.project import Projects, exclusion, projects
from cuda_lsp.terminal.hints.reported import Examine, Looked, Reported, look
from cuda_lsp.terminal.hints.walk import Left, Problem, walk
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.output import envelope
from cuda_lsp.terminal.profile_table import printable

__all__ = ["FIELDS", "command"]

SEVERITIES = ("hint", "information", "warning", "error")
NEVER = "never"


def _sarif_form() -> Form:
    # the rules' pages go along, which takes a moment to make
    from cuda_lsp.terminal.hints.sarif import sarif_form

    return sarif_form()


FORMS: dict[str, Callable[[], Form]] = {
    "text": text_form,
    "json": json_form,
    "sarif": _sarif_form,
    "github": github_form,
}


@click.command("hints")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--format", "form", type=click.Choice(list(FORMS)), default="text", show_default=True, help="The output.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json (docs/json.md).")
@click.option("--select", multiple=True, metavar="IDS", help="The rules that run: ids or letters, `M1,S`; `ALL`.")
@click.option("--ignore", multiple=True, metavar="IDS", help="Rules that do not run; the longer name wins.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out, as in .gitignore; may be repeated.")
@click.option(
    "--fail-on",
    type=click.Choice([*reversed(SEVERITIES), NEVER]),
    default="warning",
    show_default=True,
    help="Exit with 1 for findings of this severity or a higher one.",
)
@click.option(
    "--count",
    "counting",
    is_flag=True,
    help="Run each kernel small in the emulator: what its counts show and no rule names is added, what they contradict "
    "left out. Slow: seconds for a kernel.",
)
@click.option("--baseline", type=click.Path(), metavar="FILE", help="Leave out the findings that stand in FILE.")
@click.option("--write-baseline", type=click.Path(), metavar="FILE", help="Put all findings into FILE; show none.")
def command(
    paths: tuple[str, ...],
    form: str,
    as_json: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    fail_on: str,
    counting: bool,
    baseline: str | None,
    write_baseline: str | None,
) -> int:
    """Say what the rules find in PATHS: files, and folders with the CUDA files in them."""
    chosen, ignored = _names(select, "--select"), _names(ignore, "--ignore")
    if baseline and write_baseline:
        raise click.UsageError("--write-baseline takes all that is found: leave --baseline out")
    try:
        known = read_baseline(baseline) if baseline else None
        project = projects(chosen, ignored)
        found = looked_at(paths, project, _patterns(exclude), _examine() if counting else None)
        with new_baseline(write_baseline) if write_baseline else nullcontext() as new:
            code = _run(found, FORMS["json" if as_json else form](), known, new, fail_on)
    except CommandError as error:
        if form == "json" and not as_json:  # for --json it is done for every command
            click.echo(json.dumps(envelope("hints", error.code, error=str(error))))
        raise
    return code


def looked_at(
    paths: Sequence[str], project: Projects, left_out: tuple[Pattern, ...], examine: Examine | None = None
) -> Iterator[Looked | Problem | Left]:
    """What is in the files of ``paths``, one after the other."""
    wrong: set[str] = set()
    for found in walk(paths, exclusion(project, left_out)):
        if not isinstance(found, str):
            yield found
            continue
        try:
            yield look(found, project(os.path.dirname(os.path.abspath(found))).settings, examine)  # noqa: PTH100, PTH120
        except SourceError as error:
            yield Problem(found, str(error).removeprefix(found).strip())
        except SettingsError as error:
            if str(error) not in wrong:
                wrong.add(str(error))
                yield Problem(found, f"{error}. Nothing that these settings are for is looked at")
        except Exception as error:
            # the last line of the report, so that one knows what to leave out
            error.add_note(f"{type(error).__name__} while looking at {found}; --exclude leaves it out")
            raise


def _examine() -> Examine:
    # the compiler and the emulator go along, which nobody waits for who does not ask for them
    from cuda_lsp.terminal.hints.counting import examine

    return examine


def _run(
    found: Iterator[Looked | Problem | Left], form: Form, known: Known | None, new: NewBaseline | None, fail_on: str
) -> Exit:
    tally = Tally()
    click.echo(form.begin(), nl=False)
    with stoppable(lambda: _note("stopping after this file")) as stopped:
        try:
            _tell(found, form, known, new, tally, stopped)
            if new is not None and not stopped():
                new.commit()
        except CommandError as error:  # the output has begun: it is ended as it should be
            _counted(Problem("", str(error)), tally)
        code = Exit.INTERRUPTED if stopped() else _code(tally, fail_on)
    click.echo(form.end(tally, code), nl=False)
    _sum_up(tally, code, new is not None)
    return code


def _tell(
    found: Iterator[Looked | Problem | Left],
    form: Form,
    known: Known | None,
    new: NewBaseline | None,
    tally: Tally,
    stopped: Callable[[], bool],
) -> None:
    """Write the findings as they come, and count."""
    between = ""
    for one in found:
        for finding in _counted(one, tally):
            if new is not None:
                new.add(finding)
            if new is not None or (known is not None and known(finding)):
                tally.known += 1
                continue
            tally.shown[finding.severity] += 1
            click.echo(between + form.one(finding), nl=False)
            between = form.between
        if stopped():
            return


def _counted(one: Looked | Problem | Left, tally: Tally) -> tuple[Reported, ...]:
    """The findings of one file; what could not be looked at is said at once."""
    match one:
        case Looked():
            tally.files += 1
            tally.kernels += one.kernels
            tally.damaged += one.damaged
            if one.unread:
                tally.unread.append(one.unread)
            tally.ran += one.ran
            tally.unrun.update(one.unrun)
            return one.findings
        case Problem():
            tally.problems.append(one)
            _note(f"{one.path}: {one.message}" if one.path else one.message)
        case Left():
            tally.left[one.reason] += 1
    return ()


def _code(tally: Tally, fail_on: str) -> Exit:
    """Findings that count come first: they stand whatever else could not be looked at."""
    counting = () if fail_on == NEVER else SEVERITIES[SEVERITIES.index(fail_on) :]
    if any(tally.shown[severity] for severity in counting):
        return Exit.NEGATIVE
    return Exit.INPUT if tally.problems else Exit.OK


def _sum_up(tally: Tally, code: Exit, written: bool) -> None:
    said = ", ".join(
        f"{tally.shown[severity]} {severity}" for severity in reversed(SEVERITIES) if tally.shown[severity]
    )
    if tally.known:
        said = f"{said or 'nothing new'}; {tally.known} {'written' if written else 'known'}"
    _note(f"{said or 'no findings'} (files: {tally.files}, kernels: {tally.kernels})")
    if tally.damaged:
        _note(f"kernels with parse errors, which were not looked at: {tally.damaged}")
    if tally.unread:
        count, more = len(tally.unread), "the first is " if tally.unread[1:] else ""
        _note(f"files with parse errors in which no kernel could be read: {count} ({more}{tally.unread[0]})")
    if tally.ran or tally.unrun:
        why = ", ".join(f"{count} {reason}" for reason, count in tally.unrun.most_common())
        _note(f"kernels that were counted: {tally.ran}; not counted: {tally.unrun.total()}{f' ({why})' if why else ''}")
    for reason, count in sorted(tally.left.items()):
        _note(f"{reason}: {count}")
    if code is Exit.INTERRUPTED:
        _note("interrupted: the rest was not looked at" + (", and no baseline was written" if written else ""))


def _note(text: str) -> None:
    click.echo(f"cuda-lsp: {printable(text)}", err=True)


def _names(told: tuple[str, ...], option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for one in told for name in one.split(",") if name.strip())
    wrong = unknown(Settings(select=names))
    if wrong:
        raise click.UsageError(f"{option}: {wrong[0]}")
    return names


def _patterns(globs: tuple[str, ...]) -> tuple[Pattern, ...]:
    try:
        return patterns(globs, os.curdir)
    except ValueError as error:
        raise click.UsageError(f"--exclude: {error}") from None
