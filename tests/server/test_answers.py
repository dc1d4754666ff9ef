"""What the user answered about language models: kept for a project or an endpoint, taken back, and never made up."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuda_lsp import answers

HERE, THERE = "http://127.0.0.1:8080/v1", "https://models.example/v1"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(HERE),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["endpoints", "projects", "/p", HERE]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(answers, "_file", lambda: tmp_path / "state" / "consent.json")
    return tmp_path / "state"


def test_an_answer_is_for_one_endpoint_in_one_project() -> None:
    assert answers.answer(HERE, "/p") is None
    assert answers.remember(HERE, "/p") == ""
    assert answers.remember(THERE, "/p", yes=False) == ""
    assert (answers.answer(HERE, "/p"), answers.answer(THERE, "/p")) == (True, False)
    assert answers.answer(HERE, "/q") is None and answers.answer(HERE) is None
    assert answers.agreed(HERE, "/p") and not answers.agreed(THERE, "/p") and not answers.agreed(HERE, "/q")


def test_one_for_the_endpoint_holds_everywhere_but_where_the_project_has_another() -> None:
    answers.remember(HERE)
    answers.remember(HERE, "/p", yes=False)
    assert answers.agreed(HERE, "/q") and answers.agreed(HERE) and not answers.agreed(HERE, "/p")
    answers.remember(HERE, "/p")
    assert answers.agreed(HERE, "/p")


def test_all_of_them_are_taken_back(state: Path) -> None:
    answers.remember(HERE)
    answers.remember(THERE, "/p", yes=False)
    assert answers.forget() == "" and answers.forget() == ""
    assert answers.answer(HERE, "/p") is None and answers.answer(THERE, "/p") is None
    assert list(state.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said(state: Path) -> None:
    state.write_text("no folder")
    assert "you will be asked again" in answers.remember(HERE, "/p")
    assert answers.answer(HERE, "/p") is None


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(JSON)
def test_no_file_but_one_with_a_plain_yes_allows_anything(state: Path, told: object) -> None:
    state.mkdir(exist_ok=True)
    (state / "consent.json").write_text(json.dumps(told))
    endpoints = told.get("endpoints") if isinstance(told, dict) else None
    projects = told.get("projects") if isinstance(told, dict) else None
    said = projects.get("/p") if isinstance(projects, dict) else None
    own = said.get(HERE) if isinstance(said, dict) else None
    anywhere = isinstance(endpoints, list) and HERE in endpoints
    assert answers.agreed(HERE, "/p") == (own is True or (anywhere and own is not False))
