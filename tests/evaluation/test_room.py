"""Headroom on a card: the original's own time there against the floor of the card's own peaks."""

import pytest

from agent.evaluation.estimates.estimate import headroom
from agent.evaluation.judge import judge
from agent.evaluation.measures.room import room
from agent.evaluation.prepare import Prepared, prepare
from agent.execution.timing import Race, Timed
from tests.evaluation.kernels import original, rewrite, setting
from tests.evaluation.test_timing import OLD, OTHER, TEXT, Clock

BYTES = 2 * 4 * 20_000
"""x is read and y is written, once each: 20,000 floats."""


def prepared(card: Clock) -> Prepared:
    program, workload = original(TEXT)
    found = prepare(program, workload, setting(device=card))
    assert isinstance(found, Prepared)
    return found


@pytest.mark.parametrize(("part", "exhausted"), [(0.97, True), (0.5, False), (1.3, False)])
def test_the_original_s_time_against_the_floor_of_the_card(part: float, exhausted: bool) -> None:
    """A time of ``1 / part`` floors; below the floor the bytes are in doubt, not the search."""
    found = room(prepared(Clock(peak=BYTES / (part * OLD))))
    assert found.measured and found.how == "measured"
    assert found.ratio == pytest.approx(1 / part, rel=0.01)
    assert found.exhausted is exhausted
    assert "1000.00 us" in found.note and "Test card was measured to do" in found.note


def test_what_is_timed_for_it_serves_the_first_screen_too() -> None:
    card = Clock()
    side = prepared(card)
    assert room(side) is room(side)
    assert judge(side, rewrite(OTHER, side.original.plan)).speed.state == "faster"
    assert len(card.races) == 2


def test_an_original_that_cannot_be_timed_leaves_the_estimate() -> None:
    class Broken(Clock):
        def race(self, race: Race) -> Timed:
            return Timed("refused", "no memory")

    side = prepared(Broken())
    assert room(side) == headroom(side) and not room(side).measured


def test_without_a_card_it_is_an_estimate() -> None:
    program, workload = original(TEXT)
    found = prepare(program, workload, setting())
    assert isinstance(found, Prepared) and room(found) == headroom(found) and room(found).how == "estimated"
