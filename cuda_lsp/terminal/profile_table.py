"""A table with source lines at its right, as wide as the terminal is: what does not fit beside them stands below."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
from attrs import frozen
from rich.cells import cell_len, set_cell_size

from cuda_lsp.terminal.profile_cells import BAD, DIM, POOR, Cell, Column

INDENT = 11

LEAST_SOURCE = 40
"""Characters of source that come before any further column."""

_COLOURS = {BAD: {"fg": "red", "bold": True}, POOR: {"fg": "yellow"}, DIM: {"dim": True}, "head": {"bold": True}}
_PLAIN = str.maketrans({"│": "|", "─": "-", "█": "#", "▌": "#", "…": "~", "·": "-", "×": "x", "▸": ">"})


@frozen
class Paper:
    """What is written on. ``width`` is None where nothing has to be cut (a pipe or a file)."""

    width: int | None
    colour: bool
    unicode: bool

    def say(self, text: str = "") -> None:
        if not self.unicode:
            text = text.translate(_PLAIN)
            text = text.encode("ascii", "replace").decode()
        click.echo(text, color=self.colour)

    def wrap(self, text: str) -> None:
        """Broken at blanks where it is too long, below the label that :func:`cuda_lsp.terminal.render.line` gives."""
        while self.width is not None and len(text) > self.width > 2 * INDENT:
            cut = text.rfind(" ", INDENT + 1, self.width + 1)
            if cut < 0:
                break
            self.say(text[:cut].rstrip())
            text = " " * INDENT + text[cut:].strip()
        self.say(text)

    def paint(self, text: str, style: str) -> str:
        return click.style(text, **_COLOURS[style]) if style and self.colour else text  # type: ignore[arg-type]


def paper() -> Paper:
    """Standard output as it is: a terminal's width, colour unless NO_COLOR or a dumb terminal speaks against it."""
    terminal = sys.stdout.isatty()
    stated = os.environ.get("COLUMNS", "")
    width = shutil.get_terminal_size((80, 24)).columns if terminal or stated.isdigit() else None
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        "│─█▌…·×▸".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Paper(width, colour, False)
    return Paper(width, colour, True)


@frozen
class Row:
    """``label`` is the line's number or nothing; ``flag`` marks a line that costs more than it must."""

    label: str
    cells: tuple[Cell, ...]
    text: str
    flag: bool = False
    style: str = ""


def printable(text: str) -> str:
    """Source as it may be shown: tabs as blanks, and no control character that could speak to the terminal."""
    wide = text.expandtabs(4)
    return "".join("\ufffd" if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn") else one for one in wide)


def write(paper: Paper, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Prints the table. What columns say that find no room stands below each row."""
    by_column = [[row.cells[at] for row in rows if row.cells] for at in range(len(columns))]
    used = [at for at, cells in enumerate(by_column) if columns[at].speaks(cells)]
    widths = {at: max(len(text) for text in _texts(columns[at], by_column[at])) for at in used}
    gutter = max([4, *(len(row.label) for row in rows)])
    room = None if paper.width is None else paper.width - gutter - 3
    kept = _fitting(
        columns, used, widths, room, min(LEAST_SOURCE, max((cell_len(row.text) for row in rows), default=0))
    )
    left = None if room is None else max(8, room - sum(widths[at] + 2 for at in kept))
    for line in (0, 1):
        heads = "".join(f"  {columns[at].heads[line]:>{widths[at]}}" for at in kept)
        paper.say(paper.paint(f"{'line' if line else '':>{gutter}}{heads} │".rstrip(), "head"))
    folded = [at for at in used if at not in kept]
    for row in rows:
        paper.say(_row(paper, row, kept, widths, gutter, left))
        for text in _below(columns, folded, row, (paper.width or 0) - gutter - 2):
            paper.say(paper.paint(f"{'':>{gutter}}  {text}", DIM))


def _texts(column: Column, cells: Iterable[Cell]) -> Iterator[str]:
    yield from column.heads
    yield from (cell.text for cell in cells)


def _below(columns: Sequence[Column], folded: Sequence[int], row: Row, room: int) -> Iterator[str]:
    """What found no room beside a line of source, in rows of at most ``room`` characters; nothing where only the mix
    of instructions is left to say."""
    if not row.label or not row.cells:
        return
    said = [at for at in folded if columns[at].speaks([row.cells[at]])]
    if all(columns[at].inline == "{}" for at in said):
        return
    text = ""
    for part in (columns[at].inline.format(row.cells[at].text) for at in said):
        if text and len(text) + 3 + len(part) > room:
            yield text
            text = ""
        text += f" · {part}" if text else part
    yield text


def _fitting(
    columns: Sequence[Column], used: Sequence[int], widths: Mapping[int, int], room: int | None, source: int
) -> list[int]:
    """The columns that leave room for the source."""
    kept = list(used)
    while room is not None and len(kept) > 1 and sum(widths[at] + 2 for at in kept) + source > room:
        kept.remove(max(kept, key=lambda at: (columns[at].rank, at)))
    return kept


def _cut(text: str, width: int | None) -> str:
    return text if width is None or cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _row(paper: Paper, row: Row, kept: Sequence[int], widths: Mapping[int, int], gutter: int, left: int | None) -> str:
    cells = ""
    for at in kept:
        cell = row.cells[at] if row.cells else Cell()
        padded = f"  {cell.text:>{widths[at]}}"
        cells += paper.paint(padded, cell.style or row.style) if cell.text else padded
    edge = paper.paint("▌", BAD) if row.flag and paper.colour else "!" if row.flag else "│"
    label = paper.paint(f"{row.label:>{gutter}}", BAD if row.flag else DIM if row.style == DIM else "")
    text = _cut(row.text, left)
    return f"{label}{cells} {edge} {paper.paint(text, row.style) if text else ''}".rstrip()
