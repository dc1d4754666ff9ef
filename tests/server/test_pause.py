"""What counts as a pause in typing: nothing is begun between two keys that is in the way of the second."""

import pytest

from cuda_lsp.facts import store
from cuda_lsp.facts.store import FactStore
from cuda_lsp.hints import HintStore
from cuda_lsp.session import Session


def pauses(monkeypatch: pytest.MonkeyPatch, gaps: list[float]) -> list[float]:
    session, now = Session(), 1000.0
    facts = FactStore(session, HintStore(session), lambda *_: None, lambda _: None)
    found = []
    for gap in gaps:
        now += gap
        monkeypatch.setattr(store.time, "monotonic", lambda now=now: now)
        found.append(round(facts._pause("file:///a.cu"), 3))
    return found


def test_the_setting_holds_for_a_single_edit(monkeypatch):
    assert pauses(monkeypatch, [9.0, 9.0, 5.0]) == [0.15, 0.15, 0.15]


def test_between_keys_of_a_slow_typist_there_is_no_pause(monkeypatch):
    found = pauses(monkeypatch, [9.0, 0.2, 0.25, 0.1, 0.05])
    assert found == [0.15, 0.4, 0.5, 0.5, 0.5]


def test_what_was_typed_long_ago_is_forgotten(monkeypatch):
    assert pauses(monkeypatch, [9.0, 0.3, 0.04, 0.04, 0.04, 0.04])[-1] == 0.15
