"""What an editor shows has its proof record on disk."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from agent.evaluation.judge import examine
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.record import read
from agent.search.keeping import Kept
from agent.search.node import Node
from cuda_lsp import reviewing
from cuda_lsp.proposals.proposal import READY, Proposal
from cuda_lsp.worker import records
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.records import keep_records
from cuda_lsp.worker.tasks import run
from tests.cli.running import TRANSPOSED
from tests.evaluation.kernels import original, setting
from tests.evaluation.test_draws import ADD


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "cuda-lsp"


def _searched(folder: Path) -> Ended:
    file = folder / "scale.cu"
    file.write_text(TRANSPOSED)
    options = Options(device="emulator", only=("index-exchange",), rounds=1, candidates=1)
    return run(Task("optimize", str(file), TRANSPOSED.encode(), "scale", options), lambda message: None)


def test_a_search_in_the_editor_leaves_the_records_of_what_it_shows(tmp_path: Path, state: Path) -> None:
    ended = _searched(tmp_path)
    (rewrite,) = ended.rewrites
    assert [str(file) for file in (state / "records").iterdir()] == [rewrite.record]
    found = read(rewrite.record)
    assert (found.kernel, found.settings.depth) == ("scale", "full")
    assert found.verdict.evidence.candidate_hash == rewrite.verdict.evidence.candidate_hash
    assert str(tmp_path) not in Path(rewrite.record).read_text()


def test_what_is_said_of_a_change_has_its_record_too(tmp_path: Path, state: Path) -> None:
    file = tmp_path / "add.cu"
    file.write_text(ADD)
    changed = ADD.replace("x[i] + 1.0f", "x[i] + 2.0f")
    options = Options(device="emulator", against="saved")
    ended = run(Task("verify", str(file), changed.encode(), "add", options), lambda message: None)
    (path,) = (state / "records").iterdir()
    assert ended.reason == "wrong" and f"proof record: {path}" in ended.lines
    found = read(path)
    assert (found.verdict.correctness.state, found.settings.depth) == ("wrong", "full")


def test_a_folder_that_cannot_be_written_costs_the_record_only(state: Path) -> None:
    state.mkdir(parents=True)
    (state / "records").write_text("a file where the folder should be")
    program, workload = original(ADD)
    prepared = prepare(program, workload, setting())
    assert isinstance(prepared, Prepared)
    kept, node = Kept(), Node("1.1", program, None, None, None)
    kept.keep(prepared, node, examine(prepared, program))
    shown: Any = SimpleNamespace(identifier="1.1")
    written, problem = keep_records(kept, (shown,))
    assert written == {} and "the record cannot be written" in problem


def test_old_records_go(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FILES", 2)
    folder = state / "records"
    folder.mkdir(parents=True)
    for age, name in enumerate(("new", "older", "oldest")):
        (folder / f"{name}.json").write_text("{}")
        os.utime(folder / f"{name}.json", (1000 - age, 1000 - age))
    assert keep_records(Kept(), ()) == ({}, "")
    assert sorted(file.stem for file in folder.iterdir()) == ["new", "older"]


def test_the_evidence_beside_a_diff_names_the_record_while_it_is_there(tmp_path: Path) -> None:
    proposal: Any = Proposal("1", "file:///a.cu", "k", "", READY, "faster k", record=str(tmp_path / "proof.json"))
    assert reviewing._record(proposal) == ()
    (tmp_path / "proof.json").write_text("{}")
    assert reviewing._record(proposal) == (f"proof record: {tmp_path / 'proof.json'}",)
    assert reviewing._record(evolve(proposal, record="")) == ()
