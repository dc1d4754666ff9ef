"""The five ways in which benchmarks mislead: what docs/record.md says of gates, fields and lines is so."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent.evaluation.gates import gates
from agent.evaluation.record import read
from cuda_lsp.terminal.record_schema import record_schema
from cuda_lsp.terminal.render import evidence_lines, verdict_text
from tests.evaluation.record.samples import GOLDEN
from tests.evaluation.test_timing import Clock, verdict

PAGE = Path(__file__).resolve().parents[3] / "docs" / "record.md"
LINES = {
    "one size only": (r"right \(Test card: \d+ families, \d+ sizes up to n=\d+\)", r"at 4 other sizes"),
    "ignoring correctness": (r"^wrong \(.* is .*, expected .*\)$", r"same precision"),
    "tuned to one GPU": (
        r"right \(Test card: ",
        r"not checked: speed on other cards than Test card",
        r"est\. .*x on H200, not measured",
    ),
    "initialisation left out": (r"the first call in a process: 1 s -> 2 s",),
    "no statistics": (
        r"faster, .*x \(95 %: .* to .*\)",
        r"the original against itself .* to ",
        r"\d+ blocks of four calls in 3 processes",
    ),
}
"""What must be printed of a verdict that was measured, of a wrong one, or of an estimate."""


def _rows() -> dict[str, list[str]]:
    text = PAGE.read_text().partition("## The five ways")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


@cache
def printed() -> str:
    """All lines that a terminal shows of three verdicts."""
    measured = verdict(Clock(), "full")
    reason = "y[3] is 0, expected 1.25 (5 of 64 differ)"
    wrong = evolve(measured, correctness=evolve(measured.correctness, state="wrong", reason=reason))
    shown = (measured, wrong, read(GOLDEN).verdict)
    return "\n".join(line for one in shown for line in (verdict_text(one), *evidence_lines(one)))


def test_all_five_are_there() -> None:
    assert list(_rows()) == list(LINES)


@pytest.mark.parametrize("way", LINES)
def test_its_gates_exist(way: str) -> None:
    known = {gate.name for gate in gates()}
    named = [name.strip() for name in _rows()[way][0].split(",")]
    assert named and set(named) <= known


@pytest.mark.parametrize("way", LINES)
def test_its_fields_exist(way: str) -> None:
    named = re.findall(r"`([^`]+)`", _rows()[way][1])
    assert named
    for field in named:
        assert _exists(field.split(".")), field


def _exists(path: list[str]) -> bool:
    """Whether a dotted path names a field of the record's schema."""
    schema = record_schema()

    def properties(of: dict[str, Any]) -> dict[str, Any]:
        options = of.get("anyOf", [of])
        found: dict[str, Any] = {}
        for option in options:
            target = schema["$defs"][option["$ref"].rpartition("/")[2]] if "$ref" in option else option
            found |= target.get("properties", {})
        return found

    at = schema["allOf"][0]
    for name in path:
        inside = properties(at)
        if name not in inside:
            return False
        at = inside[name]
    return True


def test_a_field_that_does_not_exist_is_noticed() -> None:
    assert _exists(["verdict", "evidence", "timing", "samples"])
    assert not _exists(["verdict", "evidence", "timing", "lies"]) and not _exists(["nothing"])


@pytest.mark.parametrize("way", LINES)
def test_its_lines_are_printed(way: str) -> None:
    for pattern in LINES[way]:
        assert re.search(pattern, printed(), re.MULTILINE), pattern


@pytest.mark.parametrize("way", LINES)
def test_the_page_shows_such_lines(way: str) -> None:
    """Each example of the page has the words of a pattern that is printed, whatever its numbers and names."""
    shown = _rows()[way][2].replace("H200", "Test card")
    for pattern in LINES[way]:
        words = max(re.split(r"\\d\+|\.\*|[\\^$()|:=]|n=|Test card|H200|\d+ s", pattern), key=len).strip()
        assert words in shown, words
