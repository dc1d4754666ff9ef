"""The page says what the tables say, every row has an answer, and what it points at is there."""

import re
from pathlib import Path

from tests.attacks.catalogue import CATALOGUE
from tests.attacks.page import against, page
from tests.attacks.tables import ATTACKS, CONTROLS

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "attacks.md").read_text() == page(), "run: python -m tests.attacks.page > docs/attacks.md"


def test_every_row_has_an_attack_or_a_reason() -> None:
    assert len(CATALOGUE) == 98
    assert not [number for number, (_, answer) in CATALOGUE.items() if not answer and not against(number)]


def test_every_entry_stands_for_a_row_that_there_is() -> None:
    named = {row for attack in ATTACKS for row in attack.rows} | {row for control in CONTROLS for row in control.rows}
    assert named <= set(CATALOGUE)
    assert all(attack.rows for attack in ATTACKS)


def test_what_the_page_points_at_is_there() -> None:
    paths = set(re.findall(r"tests/[\w/]+(?:\.py)?", page()))
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]
