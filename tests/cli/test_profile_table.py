"""The table of a profile on terminals of all widths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.evaluation.lines.facts import Atomics, Facts, Local, SharedAccesses, Traffic
from cuda_lsp.terminal.profile_cells import COLUMNS, Whole, short
from cuda_lsp.terminal.profile_table import Paper, Row, printable, write

FACTS = Facts(
    instructions=640, lanes=640 * 12, mix={"fp32": 320, "int": 320}, loads=Traffic(64, 2048, 256),
    shared=SharedAccesses(64, 512, 128), atomics=Atomics(64, 640), local=Local(64, 256),
)  # fmt: skip
WHOLE = Whole(FACTS, 32)


def written(capsys: pytest.CaptureFixture[str], rows: list[Row], width: int | None, colour: bool = False) -> list[str]:
    capsys.readouterr()
    write(Paper(width, colour, True), COLUMNS, rows)
    return capsys.readouterr().out.splitlines()


def cells() -> tuple[object, ...]:
    return tuple(column.cell(FACTS, WHOLE) for column in COLUMNS)


def test_cells_say_what_was_counted() -> None:
    said = {column.heads: cell.text for column, cell in zip(COLUMNS, cells(), strict=True)}  # type: ignore[attr-defined]
    assert said["active", "lanes"] == "12"
    assert said["instructions", "a warp"] == "F10 I10"
    assert said["load", "sect/req"] == "32 (4)"
    assert said["global", "traffic"] == "65.5 KB 100%"
    assert said["bank", "conflict"] == "4-way"
    assert said["atomics", "queue"] == "10-way"
    assert said["local", "memory"] == "8.2 KB"
    assert said["store", "sect/req"] == ""


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = "    float value = table[index]; // " + "日本" * 40
    lines = written(capsys, [Row("12", cells(), text, True)], width)  # type: ignore[arg-type]
    assert all(cell_len(line) <= max(width, 40) for line in lines)
    said = " ".join(lines)
    for words in ("12", "F10 I10", "32 (4)", "65.5 KB 100%", "4-way", "10-way", "8.2 KB"):
        assert words in said, words


def test_colour_is_painted_only_where_there_is_any(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("12", cells(), "x", True)]  # type: ignore[arg-type]
    assert any("\x1b[31m" in line for line in written(capsys, rows, None, colour=True))
    plain = written(capsys, rows, None)
    assert not any("\x1b" in line for line in plain) and plain[-1].endswith("! x")


@given(st.text(max_size=60))
def test_no_source_speaks_to_the_terminal(text: str) -> None:
    shown = printable(text)
    assert all(one.isprintable() or one.isspace() for one in shown) or "\ufffd" in shown
    assert not any(one in shown for one in "\x1b\x07\x9b\u202e\r\n")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (7, "7"), (999, "999"), (1000, "1k"), (1500, "1.5k"), (99_949, "99.9k"), (99_950, "100k"),
     (999_499, "999k"), (999_600, "1M"), (4_194_304, "4.2M"), (3.2e9, "3.2G"), (1.5e12, "1.5T")],
)  # fmt: skip
def test_numbers_are_short(count: float, text: str) -> None:
    assert short(count) == text
