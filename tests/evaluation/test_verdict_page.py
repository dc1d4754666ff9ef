"""The page of the verdict names every gate, and what it points at is there."""

import re
from pathlib import Path

from agent.evaluation.gates import gates

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verdict.md").read_text()


def test_every_gate_has_its_row() -> None:
    rows = set(re.findall(r"^\| ([a-z -]+) \|", PAGE, re.MULTILINE))
    assert {gate.name for gate in gates()} <= rows


def test_what_it_points_at_is_there() -> None:
    named = set(re.findall(r"`((?:tests|agent)/[\w/.]+)`", PAGE))
    assert len(named) > 15
    assert not [path for path in named if not (ROOT / path).exists()]
