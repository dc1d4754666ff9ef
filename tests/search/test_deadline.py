"""A search's seconds bound every wait in it, and what was left undone is said."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve

from agent.evaluation.deadline import ended, timely, until
from agent.evaluation.judge import judge
from agent.evaluation.prepare import Failure, Prepared, prepare
from agent.search import events
from agent.search import search as searching
from agent.search.options import SearchOptions
from agent.search.run import verdict_of
from agent.search.search import Outcome, search
from agent.search.trace import Trace
from tests.evaluation.kernels import SOFTMAX, original, setting


def searched(folder: Path, seconds: float) -> tuple[Outcome, list[events.Event]]:
    seen: list[events.Event] = []
    program, workload = original(SOFTMAX)
    options = SearchOptions(seconds=seconds, rounds=1, trials=0)
    kernel = program.document.kernels[-1]
    outcome = search(program, kernel, workload, setting(), options, Trace(folder / "trace"), seen.append)
    return outcome, seen


def test_who_cancelled_is_told_apart() -> None:
    over = until(setting(), time.monotonic() - 1, 7.0)
    assert over.cancelled() and ended(over) == "its 7 s were over"
    asked = until(setting(cancelled=lambda: True), time.monotonic() + 1e6, 7.0)
    assert asked.cancelled() and ended(asked) == "cancelled"
    assert not timely(setting()).cancelled()


def test_a_search_without_time_for_its_original_says_so(tmp_path: Path) -> None:
    outcome, seen = searched(tmp_path, 1e-6)
    assert outcome.reason == "budget" and outcome.proposals == ()
    assert outcome.message == "the search ended before the original was known: its 1e-06 s were over"
    assert isinstance(seen[-1], events.Finished)


def test_a_screen_that_the_time_does_not_suffice_for_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original takes no time of the search's here; the first screen meets a limit that is over."""
    began = time.monotonic()

    def late(*arguments: object) -> object:
        clock = SimpleNamespace(monotonic=lambda: began + 1e6)
        monkeypatch.setattr("agent.search.run.time", clock)
        monkeypatch.setattr("agent.evaluation.deadline.time", clock)
        return verdict_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(searching, "verdict_of", late)
    outcome, seen = searched(tmp_path, 1e5)
    assert outcome.reason == "budget" and outcome.proposals == ()
    assert not [event for event in seen if isinstance(event, events.CandidateJudged) and event.verdict]
    (note,) = [event.text for event in seen if isinstance(event, events.Note) and "suffice" in event.text]
    assert note.startswith("the 100000 s did not suffice for: ") and "of round 1" in note


def test_a_verdict_names_the_limit() -> None:
    program, workload = original(SOFTMAX)
    prepared = prepare(program, workload, setting())
    assert isinstance(prepared, Prepared)

    limited = evolve(prepared, setting=until(prepared.setting, time.monotonic(), 3.0))
    verdict = judge(limited, program)
    assert verdict.correctness.state == "undecided" and verdict.correctness.reason == "its 3 s were over"
    cut = prepare(program, workload, until(setting(), time.monotonic(), 3.0))
    assert cut == Failure("cancelled", "its 3 s were over")
