"""A profile as a terminal shows it: an annotated listing, and below it totals, resources and the estimate."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, prod

from attrs import frozen

from agent.evaluation.lines.costs import Bad, CountedLine, LineCounts, bad_lines
from agent.evaluation.lines.facts import WARP, Facts, ProfiledLine
from agent.evaluation.lines.profile import Profile
from cuda_lsp.terminal.profile_cells import COLUMNS, DIM, LETTERS, NOTHING, Cell, Whole
from cuda_lsp.terminal.profile_precision import ERRORS, cell, losses
from cuda_lsp.terminal.profile_table import Paper, Row, printable, write
from cuda_lsp.terminal.profile_totals import estimates, totals
from cuda_lsp.terminal.render import line

NEAR = 2
"""Lines between two that were counted, outside the kernel, that are shown with them."""


@frozen
class Shown:
    """What is shown of a file: its lines, the kernel's first and last (1-based), and further lines under a line:
    PTX with its counts where ``ptx``, and SASS by line."""

    source: tuple[str, ...]
    first: int
    last: int
    ptx: bool = False
    sass: Mapping[int, tuple[str, ...]] | None = None


def show(profile: Profile, shown: Shown, paper: Paper) -> None:
    """Print all of it."""
    bad = flagged(profile)
    whole = Whole(profile.total, warps(profile))
    rows = list(_rows(profile, shown, whole, {one.line for one in bad}))
    write(paper, (*COLUMNS, ERRORS), rows)
    for text in (_legend(profile), "", *_bad(bad), *totals(profile), *losses(profile), "", *estimates(profile)):
        paper.wrap(text)


def warps(profile: Profile) -> int:
    """All warps of all launches."""
    return max(1, sum(one.blocks * one.times * ceil(prod(one.block) / WARP) for one in profile.launches))


def flagged(profile: Profile) -> tuple[Bad, ...]:
    """The lines that cost a good deal more than they must, by the rules of the editor's hints."""
    counted = tuple(part for one in profile.lines for part in _counted(one))
    return bad_lines(LineCounts(profile.kernel, counted, 1, profile.launches[0].block, profile.sizes))


def _counted(one: ProfiledLine) -> Iterator[CountedLine]:
    """Loads, stores and atomics of a line apart: what is bad about one of them is not thinned by another."""
    facts = one.facts
    for traffic, atomics in ((facts.stores, 0), (facts.updates, facts.updates.requests)):
        if traffic.requests:
            yield CountedLine(
                one.number,
                requests=traffic.requests,
                sectors=traffic.sectors,
                ideal_sectors=traffic.ideal_sectors,
                atomics=atomics,
            )
    yield CountedLine(
        one.number,
        requests=facts.loads.requests,
        sectors=facts.loads.sectors,
        ideal_sectors=facts.loads.ideal_sectors,
        shared_requests=facts.shared.requests,
        passes=facts.shared.passes,
        ideal_passes=max(1, round(facts.shared.ideal_passes / max(1, facts.shared.requests))),
        local_requests=facts.local.requests,
        instructions=facts.instructions,
        lanes=facts.lanes,
    )


# --- the listing ------------------------------------------------------------------------------------------------------


def _rows(profile: Profile, shown: Shown, whole: Whole, bad: set[int]) -> Iterator[Row]:
    counted = {one.number: one for one in profile.lines}
    errors = {one.number: cell(one) for one in profile.precision.lines} if profile.precision else {}
    ranges = [*_outside(shown, sorted(counted)), (shown.first, shown.last)]
    before = 0
    for first, last in sorted(ranges):
        if before and first > before + 1:
            yield Row("", (), "", style=DIM)
        before = last
        for at in range(first, min(last, len(shown.source)) + 1):
            yield from _line_rows(at, counted.get(at), shown, whole, at in bad, errors.get(at, NOTHING))
    if profile.elsewhere.instructions:
        yield Row("", _cells(profile.elsewhere, whole), "(code that belongs to no line of this file)", style=DIM)


def _line_rows(
    at: int, counted: ProfiledLine | None, shown: Shown, whole: Whole, bad: bool, error: Cell
) -> Iterator[Row]:
    text = printable(shown.source[at - 1])
    if counted is None:
        yield Row(str(at), (), text, style=DIM)
        return
    yield Row(str(at), _cells(counted.facts, whole, error), text, bad, "" if counted.facts.instructions else DIM)
    for one in counted.ptx if shown.ptx else ():
        yield Row("", _cells(one.facts, whole), f"        {printable(one.text)}", style=DIM)
    for instruction in (shown.sass or {}).get(at, ()):
        yield Row("", (), f"        {printable(instruction)}", style=DIM)


def _cells(facts: Facts, whole: Whole, error: Cell = NOTHING) -> tuple[Cell, ...]:
    return (*(column.cell(facts, whole) for column in COLUMNS), error)


def _outside(shown: Shown, numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges of counted lines outside the kernel: functions that it calls."""
    found: list[tuple[int, int]] = []
    for at in numbers:
        if shown.first <= at <= shown.last:
            continue
        between = found and found[-1][1] < shown.first < at
        if found and at - found[-1][1] <= NEAR + 1 and not between:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


def _legend(profile: Profile) -> str:
    kinds = ", ".join(f"{LETTERS.get(name, name[:1].upper())} {name}" for name in profile.total.mix)
    return f"     instructions a warp, of PTX: {kinds}"


def _bad(bad: tuple[Bad, ...]) -> Iterator[str]:
    for one in bad:
        yield line(f"line {one.line}", f"{one.words}. {one.meaning}")
    if bad:
        yield ""
