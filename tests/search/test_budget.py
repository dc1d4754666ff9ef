"""A search keeps the seconds that the confirmation of its best takes, and what it spends on it beyond is bounded."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from agent.search.options import SearchOptions
from agent.search.run import CONFIRMING, KEPT_BACK, Run
from tests.search.test_select import node


def run(seconds: float, spent: float, screen: float, ratio: float, proposals: int = 1) -> Run:
    nothing: Any = None
    setting: Any = SimpleNamespace(cancelled=lambda: False)
    options = SearchOptions(seconds=seconds, proposals=proposals)
    made = Run(nothing, nothing, nothing, setting, options, nothing, nothing)
    made.began = time.monotonic() - spent
    made.judged.append(node("a", ratio=ratio))
    made.judging.append(screen)
    return made


@pytest.mark.parametrize(
    ("spent", "screen", "ratio", "stopped"),
    [
        (100 - CONFIRMING * 5 - 2, 5.0, 1.5, False),
        (100 - CONFIRMING * 5 + 2, 5.0, 1.5, True),
        (100 - CONFIRMING * 5 + 2, 5.0, 1.0, False),  # nothing to confirm: all seconds are the search's
        (100 * (1 - KEPT_BACK) - 2, 90.0, 1.5, False),  # a dear screen does not end the search at once
        (100 * (1 - KEPT_BACK) + 2, 90.0, 1.5, True),
    ],
)
def test_seconds_are_kept_for_what_would_be_shown(spent: float, screen: float, ratio: float, stopped: bool) -> None:
    assert run(100.0, spent, screen, ratio).stopped() is stopped


def test_nothing_is_kept_where_nothing_will_be_shown() -> None:
    assert not run(100.0, 95.0, 5.0, 1.5, proposals=0).stopped()
    assert run(100.0, 101.0, 5.0, 1.5, proposals=0).stopped()
