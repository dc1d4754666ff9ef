"""A scan as a terminal shows it: the ranking, then what is in the way of the other kernels, by cause."""

from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.scanning.report import NEAR, SMALLER, TENSOR, WHOLE, Group, Ranked, Report
from cuda_lsp.scanning.values import Scanned
from cuda_lsp.terminal.profile_cells import BAD, DIM
from cuda_lsp.terminal.profile_table import Paper, printable
from cuda_lsp.terminal.render import down, duration, line

HEAD = ("", "would save", "share", "headroom", "estimated", "floor", "limited by", "findings")
RIGHT = 6
"""So many columns hold numbers, which stand at the right."""
FEW = 3
"""Kernels of a group that are named."""
WORTH = 0.05
"""Of all estimated time: what reaching the floor would save more than this of is marked."""
INDENT = "     "
MARKS = {SMALLER: "*", WHOLE: "?", TENSOR: "^"}
"""What stands before a time to which a note belongs."""


@frozen
class _Row:
    cells: tuple[str, ...]
    place: str
    style: str = ""


def show(found: Report, paper: Paper, top: int) -> None:
    """Print the ``top`` kernels of the ranking, and all groups of the others."""
    paper.wrap(line("scan", summary(found)))
    if found.ranked:
        paper.wrap(line("figures", found.statement))
        paper.say()
        _write(paper, [_row(one) for one in found.ranked[:top]])
        for text in _below(found, top):
            paper.wrap(text)
    for text in _missing(found):
        paper.say() if not text else paper.wrap(text)


def summary(found: Report) -> str:
    """What was looked at, and how much of it there is an estimate of."""
    kept = f", {found.kept:,} of them known from before" if found.kept else ""
    said = (
        f"{plural(found.kernels, 'kernel')} in {plural(found.files, 'file')}{kept}; "
        f"{len(found.ranked):,} estimated for {found.target}"
    )
    return f"{said}, {duration(found.seconds)} in all" if found.ranked else said


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def place(one: Scanned) -> str:
    return printable(f"{one.path}:{one.line}")


def rules(one: Scanned) -> tuple[str, ...]:
    """Each rule that found something, with how often where that is more than once."""
    counted: dict[str, int] = {}
    for hint in one.hints:
        counted[hint.rule] = counted.get(hint.rule, 0) + 1
    return tuple(f"{rule}x{count}" if count > 1 else rule for rule, count in counted.items())


def percent(part: float) -> str:
    return f"{part:.1%}"


def marks(one: Ranked) -> str:
    return "".join(MARKS[note] for note in one.notes)


def _row(one: Ranked) -> _Row:
    cells = (
        str(one.rank),
        percent(one.gain),
        percent(one.share),
        down(one.headroom),
        marks(one) + duration(one.cost.seconds),
        duration(one.cost.floor_seconds),
        one.cost.limit,
        " ".join(rules(one.scanned)) or "-",
    )
    style = BAD if one.gain >= WORTH else DIM if one.headroom < NEAR else ""
    return _Row(cells, f"{printable(one.scanned.kernel)}  {place(one.scanned)}", style)


def _write(paper: Paper, rows: list[_Row]) -> None:
    widths = [max(len(row.cells[at]) for row in (_Row(HEAD, ""), *rows)) for at in range(len(HEAD))]
    table = (_Row(HEAD, "kernel", "head"), *rows)
    for row in table:
        cells = "  ".join(
            cell.rjust(width) if at < RIGHT else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row.cells, widths, strict=True))
        )
        if paper.width is not None and len(cells) + 2 + len(row.place) > paper.width:
            paper.say(paper.paint(cells.rstrip(), row.style))
            paper.say(paper.paint(f"{INDENT}{row.place}", row.style))
        else:
            paper.say(paper.paint(f"{cells}  {row.place}", row.style))


def _below(found: Report, top: int) -> Iterator[str]:
    further = found.ranked[top:]
    if further:
        most = percent(sum(one.gain for one in further))
        yield f"{INDENT}and {len(further):,} more, which would save {most} together (--top shows more)"
    for note, mark in MARKS.items():
        if any(note in one.notes for one in found.ranked[:top]):
            yield f"{INDENT}{mark} {note}"


def _missing(found: Report) -> Iterator[str]:
    without = sum(len(group.kernels) for group in found.groups)
    if without:
        yield ""
        yield f"no estimate of {plural(without, 'kernel')}:"
    for group in found.groups:
        yield from _group(group)
    if found.problems:
        yield ""
        yield f"not read: {plural(len(found.problems), 'path')}"
        for problem in found.problems:
            yield f"{INDENT}{printable(problem.path)}: {printable(problem.message)}"
    if found.stopped:
        yield ""
        yield f"stopped    {found.stopped}"


def _group(group: Group) -> Iterator[str]:
    said = f"{group.cause.value}: {printable(group.words)}" if group.words else group.cause.value
    yield f"{len(group.kernels):>4} {said}"
    for one in group.kernels[:FEW]:
        asks = f"   asks: {' '.join(map(printable, one.asks[:FEW]))}" if one.asks else ""
        yield f"{INDENT}{INDENT}{printable(one.kernel)}  {place(one)}{asks}"
    if len(group.kernels) > FEW:
        yield f"{INDENT}{INDENT}and {len(group.kernels) - FEW:,} more"
