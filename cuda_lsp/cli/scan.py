"""``cuda-lsp scan``: the kernels of a code base, ranked by what their distance to the floor costs."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click
from attrs import define, field
from rich.markup import escape

from agent.execution.compiler import pool as compiler
from agent.execution.compiler.slices import unavailable
from agent.execution.targets import Target
from agent.workload.settings import Settings
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.scanning import store
from cuda_lsp.scanning.report import Report, report
from cuda_lsp.scanning.scan import Limits, Progress, scan
from cuda_lsp.scanning.values import ListedFile, Scanned
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.flags import known
from cuda_lsp.terminal.hints.exclude import Pattern, patterns
from cuda_lsp.terminal.hints.project import exclusion, projects
from cuda_lsp.terminal.hints.walk import Left, Problem, walk
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.opening import open_settings, open_target
from cuda_lsp.terminal.output import Screen, envelope
from cuda_lsp.terminal.profile_table import paper, printable
from cuda_lsp.terminal.scan.page import page
from cuda_lsp.terminal.scan.table import show
from cuda_lsp.terminal.writing import new_file
from cuda_lsp.worker.asked import Options

FIELDS: dict[str, Any] = {"report": Report}
"""What `--json` has beside the envelope."""

PAGES = (".html", ".htm")


@click.command("scan")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--target", help="The card that times and floors are for (H200, A100, ...).")
@click.option("--html", type=click.Path(), metavar="FILE", help="Write a page with pictures, whole in one file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
@click.option("--top", default=30, show_default=True, type=click.IntRange(min=1), help="Rows of the table.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out, as in .gitignore; may be repeated.")
@click.option("--seconds", default=900.0, show_default=True, type=click.FloatRange(min=1), help="Cap on all of it.")
@click.option(
    "--kernel-seconds", default=30.0, show_default=True, type=click.FloatRange(min=1), help="Cap on one kernel."
)
@click.option("--jobs", default=0, type=click.IntRange(min=0), help="Kernels at a time; as many as cores by default.")
@click.option(
    "--flag",
    "flags",
    multiple=True,
    callback=known,
    help="A compiler flag for every file (--flag=-Iinclude); may be repeated.",
)
@click.option("--fresh", is_flag=True, help="Take nothing that an earlier scan found.")
def command(
    paths: tuple[str, ...],
    target: str | None,
    html: str | None,
    as_json: bool,
    top: int,
    exclude: tuple[str, ...],
    seconds: float,
    kernel_seconds: float,
    jobs: int,
    flags: tuple[str, ...],
    fresh: bool,
) -> int:
    """Rank the kernels of PATHS (files, and folders with the CUDA files in them) by where effort is worth most."""
    if html is not None and os.path.splitext(html)[1].lower() not in PAGES:  # noqa: PTH122
        raise click.UsageError(f"--html {html}: name a file that ends in .html")
    left_out = _patterns(exclude)
    card = open_target(target, _settings(paths))
    _require_compiler(card)
    options = Options(target=card.name, device="emulator", seconds=kernel_seconds, flags=flags, fresh=fresh)
    limits = Limits(time.monotonic() + seconds, kernel_seconds, jobs or _cores())
    writing: AbstractContextManager[Callable[[str], None] | None] = new_file(html) if html else nullcontext()
    with writing as write:
        found, stopped = _scan(paths, left_out, options, limits, as_json)
        said = report(card.name, paths, found.files, found.kernels, found.problems, found.left, stopped)
        code = _code(said, stopped)
        if as_json:
            click.echo(json.dumps(envelope("scan", code, report=said)))
        else:
            show(said, paper(), top)
        if write is not None:
            write(page(said))
    return code


@define
class _Found:
    files: int = 0
    kernels: list[Scanned] = field(factory=list)
    problems: list[Problem] = field(factory=list)
    left: Counter[str] = field(factory=Counter)


def _scan(
    paths: Sequence[str], left_out: tuple[Pattern, ...], options: Options, limits: Limits, quiet: bool
) -> tuple[_Found, str]:
    """What was found, and what ended it early in words."""
    found, pool, screen = _Found(), Pool(), Screen(quiet=quiet)
    with screen, stoppable(lambda: screen.note("stopping; what was found so far is shown")) as interrupted:
        try:
            screen.stage("looking for kernels")
            for one in scan(_files(paths, left_out, found), options, limits, interrupted, pool):
                _take(one, found, screen)
        finally:
            pool.close()
            store.prune()
        if interrupted():
            return found, f"interrupted: {_AGAIN}"
    late = time.monotonic() > limits.ends
    return found, f"the time of --seconds ended: {_AGAIN}" if late else ""


_AGAIN = "the kernels that were not reached are listed as such. The same command goes on from here"


def _files(paths: Sequence[str], left_out: tuple[Pattern, ...], found: _Found) -> list[str]:
    files = []
    for one in walk(paths, exclusion(projects((), ()), left_out)):
        match one:
            case Problem():
                found.problems.append(one)
            case Left():
                found.left[one.reason] += 1
            case _:
                files.append(one)
    return files


def _take(one: ListedFile | Scanned | Progress, found: _Found, screen: Screen) -> None:
    match one:
        case ListedFile(problem=""):
            found.files += bool(one.kernels)
        case ListedFile():
            found.problems.append(Problem(one.path, one.problem))
        case Scanned():
            found.kernels.append(one)
        case Progress():
            screen.stage(f"{one.done:,} of {one.total:,} kernels {escape(printable(one.name))}")


def _code(said: Report, stopped: str) -> Exit:
    if stopped.startswith("interrupted"):
        return Exit.INTERRUPTED
    if not said.kernels and stopped:
        raise CommandError(Exit.INPUT, f"nothing was looked at yet: {stopped}")
    if not said.kernels:
        where = ", ".join(said.paths)
        raise CommandError(Exit.INPUT, f"{where}: no kernel (`__global__` function) in any file here{_why(said)}")
    return Exit.OK


def _why(said: Report) -> str:
    """Of what could not be read or was passed over, as far as it may hold the kernels that were looked for."""
    parts = [f"{problem.path}: {problem.message}" for problem in said.problems[:3]]
    parts += [f"and {len(said.problems) - 3} more that cannot be read"] if len(said.problems) > 3 else []
    parts += [f"{reason}: {count}" for reason, count in said.left.items()]
    return f" ({'; '.join(parts)})" if parts else ""


def _settings(paths: Sequence[str]) -> Settings:
    """Those of the first path's project: they name the target."""
    return open_settings(os.path.join(paths[0], "x") if os.path.isdir(paths[0]) else paths[0])  # noqa: PTH112, PTH118


def _require_compiler(card: Target) -> None:
    missing = unavailable(compiler.identity(), card.arch)
    if missing is not None:
        raise CommandError(Exit.MACHINE, f"{missing.message}. Nothing can be estimated without it")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _patterns(globs: tuple[str, ...]) -> tuple[Pattern, ...]:
    try:
        return patterns(globs, os.curdir)
    except ValueError as error:
        raise click.UsageError(f"--exclude: {error}") from None
