"""``cuda-lsp capture``: run a program on a card, record its launches, and state one as a directive with its data."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import platformdirs

from agent.inference.capture.building import recorder
from agent.inference.capture.complete import complete
from agent.inference.capture.cupti import find_cupti
from agent.inference.capture.driver import find_driver
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Capture
from agent.inference.capture.log import read_capture
from agent.inference.capture.running import Ended, Wanted, bare, folder, record, told_by
from agent.inference.capture.telling import notes
from agent.source.document import Document, parse
from agent.source.errors import UnknownKernel
from agent.workload.data import folder as store
from agent.workload.errors import WorkloadError
from cuda_lsp.terminal.capture import MOST_SHOWN, Directive, Seen, directives, seen, shown, written
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import open_document
from cuda_lsp.terminal.output import envelope
from cuda_lsp.terminal.writing import apply_document

_SIZE = re.compile(r"(\d+)\s*([KMGT]?)i?B?", re.IGNORECASE)


def _bytes(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """``512M``, ``1G``, ``4096``."""
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"`{value}` is no size; write 512M or 1G", context, parameter)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()]


@click.command("capture", context_settings={"allow_interspersed_args": False})
@click.option("--file", "path", type=click.Path(), help="The file that holds the kernels: its directives are printed.")
@click.option("--kernel", "name", help="Record this kernel alone.")
@click.option("--launch", type=click.IntRange(min=1), help="Record this launch of each kernel (the 3rd, say) alone.")
@click.option(
    "--shapes", default=3, show_default=True, type=click.IntRange(1, 1000), help="Different launches a kernel."
)
@click.option("--after", is_flag=True, help="Record what buffers hold after each launch too.")
@click.option("--max-buffer", default="1G", show_default=True, callback=_bytes, help="Largest buffer to record.")
@click.option("--max-total", default="4G", show_default=True, callback=_bytes, help="All buffers of one process.")
@click.option("--first", is_flag=True, help="End the program once each kernel of --file, or --kernel, was recorded.")
@click.option("--seconds", type=click.FloatRange(min=0.1), help="End the program after that long.")
@click.option("--out", type=click.Path(), help="Keep everything that was recorded in this new folder.")
@click.option("--from", "source", type=click.Path(), help="Read what --out kept; nothing is run.")
@click.option("--write", is_flag=True, help="Write the directives into --file, above their kernels.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output; the program's goes to error."
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(
    path: str | None,
    name: str | None,
    launch: int | None,
    shapes: int,
    after: bool,
    max_buffer: int,
    max_total: int,
    first: bool,
    seconds: float | None,
    out: str | None,
    source: str | None,
    write: bool,
    as_json: bool,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM (with its arguments, after --) on the card of this machine and record the kernels that it launches.

    The program is executed as it is: capture only what you would run yourself. Its output and exit code are kept.
    """
    if program and source:
        raise CommandError(Exit.USAGE, "--from reads what was recorded: name no program beside it")
    if not program and not source:
        raise CommandError(
            Exit.USAGE, "name a program after `--` (`cuda-lsp capture -- ./app 1024`), or --from a folder"
        )
    if write and path is None:
        raise CommandError(Exit.USAGE, "--write needs --file: the file that the directives go into")
    if first and path is None and name is None:
        raise CommandError(Exit.USAGE, "--first needs --file or --kernel: the kernels that it waits for")
    document = open_document(path) if path is not None else None
    try:
        if name and document is not None:
            document.kernel(name)
        wanted = Wanted(
            kernels=(bare(name),) if name else (), launch=launch or 0, shapes=shapes, buffer=max_buffer,
            total=max_total, after=after,
        )  # fmt: skip
        wanted = told_by(document, wanted) if document is not None else wanted
        if source is not None:
            return _report(program, Ended(0), _kept(source), document, name, write, as_json)
        return _run(program, wanted, document, name, write, as_json, out, seconds, first)
    except (CaptureError, UnknownKernel) as error:
        missing = isinstance(error, CaptureError) and error.machine
        raise CommandError(Exit.MACHINE if missing else Exit.INPUT, str(error)) from error


def _kept(source: str) -> Capture:
    """What an earlier capture recorded. Raises CaptureError where there is none."""
    found = read_capture(Path(source))
    if not found.processes:
        raise CaptureError(
            f"{source} holds no recording: `cuda-lsp capture --out {source} -- ./app` makes one, where the program "
            "uses CUDA",
            machine=False,
        )
    return found


def _run(
    program: tuple[str, ...],
    wanted: Wanted,
    document: Document | None,
    name: str | None,
    write: bool,
    as_json: bool,
    out: str | None,
    seconds: float | None,
    first: bool,
) -> int:
    driver = find_driver()
    cupti = find_cupti(driver.version)
    library = recorder(cupti)
    cache = Path(platformdirs.user_cache_dir("cuda-lsp", appauthor=False)) / "captures"
    with folder(Path(out) if out is not None else None, cache) as place:
        _say(f"running `{shlex.join(program)}` and recording its launches (this executes the program)")
        kernels = [] if document is None else [document.kernel(name)] if name else list(document.kernels)
        waiting = complete(place, wanted, [(document, kernels)] if document is not None else [])
        ended = record(program, place, wanted, library, cupti, seconds, as_json, waiting if first else None)
        if out is not None:
            _say(f"what was recorded is in {place}")
        return _report(program, ended, read_capture(place), document, name, write, as_json)


def _report(
    program: tuple[str, ...],
    ended: Ended,
    capture: Capture,
    document: Document | None,
    name: str | None,
    write: bool,
    as_json: bool,
) -> int:
    found = tuple(seen(one) for one in capture.launches)
    try:
        stated = tuple(directives(capture, document, name)) if document is not None else ()
    except OSError as error:
        raise CommandError(Exit.INPUT, f"contents cannot be kept in {store()}: {error.strerror}") from error
    told = (*([ended.note] if ended.note else []), *notes(capture))
    wrote = _write(document, stated) if write and document is not None else ()
    good = any(one.text for one in stated) if document is not None else bool(found)
    code = ended.code or (Exit.OK if good and all(wrote) else Exit.NEGATIVE)
    if as_json:
        content = {"program": program, "returned": ended.code, "launches": found, "directives": stated, "notes": told}
        click.echo(json.dumps(envelope("capture", code, **content)))
    else:
        _show(found, stated, told, document)
    return int(code)


def _show(found: Sequence[Seen], stated: Sequence[Directive], told: Sequence[str], document: Document | None) -> None:
    kernels = dict.fromkeys(launch.kernel for launch in found)
    _say(f"recorded {_many(len(found), 'launch', 'es')} of {_many(len(kernels), 'kernel')}")
    for launch in found[:MOST_SHOWN]:
        click.echo(f"  {shown(launch)}", err=True)
    if len(found) > MOST_SHOWN:
        click.echo(f"  and {len(found) - MOST_SHOWN} more", err=True)
    for note in told:
        _say(note)
    if document is None and found:
        _say("name the file of a kernel with --file to have its directive")
    if document is not None and found and not stated:
        _say(f"none of them is of a kernel in {document.path}")
    for one in stated:
        where = f"{one.kernel} ({document.path if document else ''}:{one.line}), launch {one.number}"
        _say(f"{where}: {one.problem}" if one.problem else where)
        for note in one.notes:
            _say(f"  {note}")
        click.echo(one.text, err=True, nl=False)


def _write(document: Document, stated: Sequence[Directive]) -> tuple[bool, ...]:
    """Put each directive above its kernel, all of them in one go; says what could not be written."""
    text, done = document, []
    for one in stated:
        try:
            text = parse(written(text, one), document.path) if one.text else text
            done.append(bool(one.text))
        except WorkloadError as error:
            _say(error.message)
            done.append(False)
    if text.text != document.text:
        apply_document(document, text)
        _say(f"{sum(done)} directive{'s'[sum(done) == 1 :]} written into {document.path}")
    return tuple(done)


def _many(count: int, what: str, ending: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else ending}"


def _say(text: str) -> None:
    click.echo(f"cuda-lsp: {text}", err=True)
