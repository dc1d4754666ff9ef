"""Others on the card: their time slices fall into some calls and not into others. The interval says so by its width,
and equal code is not called faster; a desktop that draws now and then changes nothing."""

import numpy as np
import pytest

from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import summary
from agent.evaluation.measures.statistics import Interval, decide, interval
from agent.execution.timing import Block, Timed

SLICE = 2e-3
"""Seconds that another process has the card at a time: the order of a card's own time slices."""

BLOCKS, PROCESSES, TIMES = 8, 3, 15


FRAME = 0.3e-3
"""Seconds in which a desktop draws a frame."""


def elapsed(work: float, share: float, dice: np.random.Generator) -> float:
    """Seconds until a call of ``work`` seconds is done, begun at any moment, where others have ``share`` of the card in
    turns (those of a desktop are short); by its own clock it varies by a tenth of a per cent."""
    work *= 1 + dice.normal(0, 1e-3)
    if not share:
        return work
    theirs = SLICE if share > 0.1 else FRAME
    ours = theirs * (1 - share) / share
    moment, total = dice.uniform(0, ours + theirs), 0.0
    while True:
        if moment >= ours:
            total, moment = total + ours + theirs - moment, 0.0
        if work <= ours - moment:
            return total + work
        total, work, moment = total + ours - moment, work - (ours - moment), ours


def timed(old: float, new: float, share: float, dice: np.random.Generator) -> tuple[Block, ...]:
    return tuple(
        (elapsed(old, share, dice), elapsed(old, share, dice), elapsed(new, share, dice), elapsed(new, share, dice))
        for _ in range(BLOCKS)
    )


def found(old: float, new: float, share: float, dice: np.random.Generator) -> tuple[Interval, str]:
    """An interval as a full verdict makes it, and the word."""
    measured = interval([timed(old, new, share, dice) for _ in range(PROCESSES)])
    return measured, decide(measured, interval([timed(old, old, share, dice)]))


@pytest.mark.parametrize("work", [1e-4, 1e-3, 1e-2], ids=["100 us", "1 ms", "10 ms"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_heavy_use_widens_the_interval_and_makes_nothing_faster(share: float, work: float) -> None:
    dice = np.random.default_rng(7)
    alone = [found(work, work, 0.0, dice) for _ in range(TIMES)]
    beside = [found(work, work, share, dice) for _ in range(TIMES)]
    widths = [float(np.median([one.half_width for one, _ in group])) for group in (alone, beside)]
    assert widths[1] > 10 * widths[0]
    assert {word for _, word in (*alone, *beside)} == {"same"}
    assert sum(one.low <= 1 <= one.high for one, _ in beside) >= TIMES - 3


def test_a_desktop_that_draws_now_and_then_does_not_stop_it() -> None:
    dice = np.random.default_rng(7)
    seen = [found(2e-3, 1e-3, 0.02, dice) for _ in range(TIMES)]
    assert {word for _, word in seen} == {"faster"}
    assert sum(one.low <= 2.0 <= one.high for one, _ in seen) >= TIMES - 3


def test_who_else_was_there_is_said() -> None:
    block = (1e-3, 1e-3, 1e-3, 1e-3)
    races = [Timed("ok", cold=(block,) * BLOCKS, foreign=count) for count in (0, 2)]
    told = summary("n=1", races, Timed("ok", cold=(block,) * BLOCKS), [])
    assert isinstance(told, Measurement) and told.notes == ("2 other processes held a context on the card",)
