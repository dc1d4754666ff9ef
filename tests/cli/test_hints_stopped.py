"""Ctrl-C and a fault of our own: what was begun is ended as it should be."""

import json
import signal
import traceback
from pathlib import Path

import pytest

from cuda_lsp.cli import hints as module
from cuda_lsp.settings import Settings
from cuda_lsp.terminal.hints.reported import Examine, Looked, look
from tests.cli.hinting import Hints, hints, put

__all__ = ["hints"]


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_the_first_ctrl_c_ends_the_output_after_the_file(
    hints: Hints, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def interrupted(path: str, settings: Settings, examine: Examine | None) -> Looked:
        signal.raise_signal(signal.SIGINT)
        return look(path, settings, examine)

    monkeypatch.setattr(module, "look", interrupted)
    put("a.cu")
    put("b.cu")
    code, out, err = hints(".", "--format", form)
    answer = json.loads(out)
    found = answer["findings"] if form == "json" else answer["runs"][0]["results"]
    assert (code, len(found), "the rest was not looked at" in err) == (130, 1, True)
    assert hints(".", "--write-baseline", "known.json")[0] == 130
    assert not Path("known.json").exists()


def test_a_fault_names_the_file_and_how_to_leave_it_out(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(path: str, settings: Settings, examine: Examine | None) -> Looked:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(module, "look", faulty)
    put("a.cu")
    with pytest.raises(RuntimeError) as fault:
        hints(".")
    last = "".join(traceback.format_exception(fault.value)).strip().splitlines()[-1]
    assert last == "RuntimeError while looking at a.cu; --exclude leaves it out"


def test_what_is_nested_too_deeply_is_said(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*arguments: object) -> Looked:
        raise RecursionError

    monkeypatch.setattr("cuda_lsp.terminal.hints.reported.found_in", deep)
    put("a.cu")
    code, out, err = hints(".")
    assert (code, out, "a.cu: is nested too deeply to be read; exclude it" in err) == (3, "", True)
