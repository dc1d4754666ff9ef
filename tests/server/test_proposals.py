"""Proposals as data: their states, what is kept across a restart, and what a full disk costs."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from agent.evaluation.verdict import Verdict
from agent.source.document import parse
from cuda_lsp.jobs.job import CANCELLED, FAILED
from cuda_lsp.proposals.locking import locked
from cuda_lsp.proposals.proposal import ACCEPTED, OUTDATED, READY, REJECTED, RUNNING
from cuda_lsp.proposals.proposal import FAILED as PROPOSAL_FAILED
from cuda_lsp.proposals.store import FILES, MOST, Store
from tests.server.desk import Desk
from tests.server.rewrites import VERDICT, replaced, rewritten
from tests.server.texts import SCALE


def test_running_then_ready_then_at_most_three(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.proposals.heard(evolve(job, state=RUNNING), None)
    (running,) = desk.proposals.all(desk.uri)
    assert (running.state, running.kernel, running.verdict) == (RUNNING, "scale", None)
    base = parse(SCALE.encode())
    desk.end(job, *(rewritten(base, "scale", number) for number in range(5)))
    found = desk.proposals.all(desk.uri)
    assert [proposal.state for proposal in found] == [READY] * 3
    assert [proposal.verdict for proposal in found] == [VERDICT] * 3


def test_a_failed_job_leaves_its_reason_and_what_was_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (old,) = desk.optimized()
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job, state=FAILED)
    kept, failed = desk.proposals.all(desk.uri)
    assert (kept.id, kept.state) == (old.id, READY)
    assert (failed.state, failed.note) == (PROPOSAL_FAILED, "it failed")
    desk.optimized()
    assert all(p.state == READY for p in desk.proposals.all(desk.uri)), "a newer answer replaces both"
    assert desk.state(old) == "gone"


def test_a_cancelled_job_leaves_nothing_and_another_kernel_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (other,) = desk.optimized("shift")
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job, state=CANCELLED)
    assert [p.id for p in desk.proposals.all(desk.uri)] == [other.id]
    desk.optimized("scale")
    assert desk.state(other) == READY


def test_a_search_that_finds_nothing_new_takes_nothing_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (old,) = desk.optimized()
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job)
    assert [p.id for p in desk.proposals.all(desk.uri)] == [old.id]


def test_a_result_for_a_text_that_changed_meanwhile_is_outdated_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.editor.replace("twice(x[i])", "twice(x[i] )")
    desk.end(job, rewritten(job.document, "scale"))
    (proposal,) = desk.proposals.all(desk.uri)
    assert proposal.state == OUTDATED


def test_a_result_for_a_document_that_was_closed_waits_for_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.editor.close()
    desk.end(job, rewritten(job.document, "scale"))
    desk.restart()
    (proposal,) = desk.proposals.all(desk.uri)
    assert proposal.state == READY


def test_all_survive_a_restart_but_what_was_running(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    _, rejected = desk.optimized(count=2)
    desk.proposals.reject(rejected.id, "unreadable \udc80")
    desk.proposals.heard(desk.job("shift"), None)
    before = desk.proposals.all(desk.uri)
    assert [p.state for p in before] == [READY, REJECTED, RUNNING]
    desk.restart()
    after = desk.proposals.all(desk.uri)
    assert after == tuple(evolve(proposal, job="") for proposal in before[:2])
    assert isinstance(after[0].verdict, Verdict) and after[0].anchors == before[0].anchors
    assert after[1].note == "unreadable \udc80"


def test_after_a_restart_the_text_decides(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    desk.text = SCALE.replace("x[i] + 1.0f", "x[i]").replace("int main", "// more\nint main")
    desk.restart()
    assert desk.state(proposal) == READY
    desk.text = SCALE.replace("i < n) y[i] = twice", "i < n)  y[i] = twice")
    desk.restart()
    assert desk.state(proposal) == OUTDATED


def test_an_unsaved_document_leaves_nothing_on_disk(tmp_path: Path) -> None:
    desk = Desk(tmp_path, uri="untitled:Untitled-1")
    (proposal,) = desk.optimized()
    assert desk.state(proposal) == READY
    assert not (tmp_path / "proposals").exists()
    desk.editor.close()
    assert desk.state(proposal) == "gone"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema": 99}', '{"schema": 1, "uri": "x", "proposals": 3}', "\0"])
def test_a_damaged_or_foreign_file_is_as_if_it_were_not_there(tmp_path: Path, damage: str) -> None:
    desk = Desk(tmp_path)
    desk.optimized()
    (file,) = (tmp_path / "proposals").glob("*.json")
    file.write_text(damage)
    desk.restart()
    assert desk.proposals.all(desk.uri) == ()
    desk.optimized()
    desk.restart()
    assert len(desk.proposals.all(desk.uri)) == 1


def test_a_proposal_of_another_shape_is_left_out_with_its_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.optimized()
    (file,) = (tmp_path / "proposals").glob("*.json")
    told = json.loads(file.read_text())
    del told["proposals"][0]["verdict"]["speed"]
    file.write_text(json.dumps(told))
    desk.restart()
    assert desk.proposals.all(desk.uri) == ()


def test_a_full_disk_is_said_once_and_costs_the_memory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    full = OSError(28, "No space left on device")

    def refuse(*_: object, **__: object) -> None:
        raise full

    monkeypatch.setattr("cuda_lsp.proposals.store.os.replace", refuse)
    (first,) = desk.optimized()
    (second,) = desk.optimized("shift")
    assert len(desk.said) == 1 and "No space left on device" in desk.said[0]
    assert [file.name for file in (tmp_path / "proposals").iterdir()] == [".lock"], "no half-written file stays"
    desk.editor.close()
    desk.editor.open()
    assert desk.state(first) == desk.state(second) == READY
    monkeypatch.undo()
    desk.proposals.reject(second.id)
    desk.restart()
    assert desk.state(first) == READY and desk.state(second) == REJECTED


def test_what_is_on_disk_is_bounded(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for number in range(MOST + 5):
        (proposal,) = desk.optimized(first=number)
        desk.proposals.reject(proposal.id)
    desk.restart()
    assert len(desk.proposals.all(desk.uri)) == MOST
    store = Store(tmp_path / "many")
    for number in range(FILES + 3):
        uri = f"file:///{number}.cu"
        assert len(store.save(uri, [], [evolve(proposal, uri=uri, state=REJECTED)])) == 1
        os.utime(store._file(uri), (number, number))
    assert store.load("file:///0.cu") == () and store.load(f"file:///{FILES + 2}.cu") != ()
    assert len(list((tmp_path / "many").glob("*.json"))) <= FILES + 1


def test_what_is_in_memory_is_bounded_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for number in range(3 * MOST):
        (proposal,) = desk.optimized(first=number)
        desk.proposals.reject(proposal.id)
    assert len(desk.proposals.all(desk.uri)) <= MOST


def test_a_renamed_file_takes_its_proposals_along_and_a_deleted_one_loses_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    new = (tmp_path / "renamed.cu").as_uri()
    desk.editor.close()
    desk.proposals.renamed(desk.uri, new)
    desk.uri = new
    desk.restart()
    assert desk.state(proposal) == READY and desk.proposals.get(proposal.id).uri == new  # type: ignore[union-attr]
    desk.proposals.deleted(new)
    desk.restart()
    assert desk.proposals.all(new) == ()


def test_a_rejection_writes_nothing_and_keeps_its_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    assert desk.proposals.reject(proposal.id, "no").ok
    assert not desk.proposals.reject(proposal.id).ok
    assert not desk.proposals.reject("nope").ok
    assert desk.editor.text == SCALE and desk.editor.asked == []
    assert desk.proposals.get(proposal.id).note == "no"  # type: ignore[union-attr]


def test_a_review_shows_both_texts_as_they_are_now(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized(launches=True)
    desk.editor.type(0, 0, "// new\n")
    review = desk.proposals.review(proposal.id)
    assert review is not None and review.proposed is not None
    assert review.original.decode() == "// new\n" + SCALE
    assert review.proposed.decode().startswith("// new\n#include") and b"256, 128>>>" in review.proposed
    desk.editor.replace("twice(x[i])", "twice(0)")
    outdated = desk.proposals.review(proposal.id)
    assert outdated is not None and outdated.proposed is None and "+// helper 0" in outdated.diff
    assert desk.proposals.review("nope") is None


def test_listeners_hear_of_changes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    heard: list[str] = []
    desk.proposals.subscribe(heard.append)
    (proposal,) = desk.optimized()
    count = len(heard)
    assert count == 2 and set(heard) == {desk.uri}
    desk.editor.replace("FACTOR 2.0f", "FACTOR 4.0f")
    assert len(heard) == count, "an edit is the client's own doing"
    desk.proposals.check(desk.uri)
    assert len(heard) == count + 1 and desk.state(proposal) == OUTDATED
    desk.proposals.check(desk.uri)
    assert len(heard) == count + 1, "nothing is new"


def test_two_documents_do_not_meet(tmp_path: Path) -> None:
    one, other = Desk(tmp_path), Desk(tmp_path, uri=(tmp_path / "other.cu").as_uri())
    (proposal,) = one.optimized()
    assert other.proposals.all(other.uri) == () and other.proposals.get(proposal.id) is None


def test_what_has_to_be_applied_by_hand_is_shown_and_not_accepted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.end(job, evolve(rewritten(job.document, "scale"), anchors=None, by_hand="the host code has to be written"))
    (proposal,) = desk.proposals.all(desk.uri)
    applied = asyncio.run(desk.proposals.accept(proposal.id))
    assert not applied.ok and applied.message == "not applied: the host code has to be written"
    review = desk.proposals.review(proposal.id)
    assert review is not None and review.proposed is None and "+// helper 0" in review.diff
    assert desk.editor.asked == []
    before = desk.editor.text
    desk.editor.replace("FACTOR * v", "FACTOR + v")
    desk.proposals.check(desk.uri)
    assert desk.state(proposal) == OUTDATED, "what was proved is not what stands there"
    desk.editor.replace("FACTOR + v", "FACTOR * v")
    assert desk.editor.text == before
    desk.proposals.check(desk.uri)
    assert desk.state(proposal) == READY


def test_a_rewrite_of_host_code_is_kept_re_anchored_and_accepted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.end(job, replaced(job.document, "scale"))
    (proposal,) = desk.proposals.all(desk.uri)
    desk.restart()
    desk.editor.replace("#define FACTOR", "// more\n#define FACTOR")
    review = desk.proposals.review(proposal.id)
    assert review is not None and review.proposed is not None
    desk.editor.replace("    return 0;", "    return 1;")
    assert desk.state(proposal) == OUTDATED
    assert not asyncio.run(desk.proposals.accept(proposal.id)).ok and "part" not in desk.editor.text
    desk.editor.replace("    return 1;", "    return 0;")
    assert asyncio.run(desk.proposals.accept(proposal.id)).ok
    assert desk.editor.text.encode() == review.proposed and "cudaFree(part);" in desk.editor.text


def test_two_servers_on_one_file_spoil_nothing_for_each_other(tmp_path: Path) -> None:
    one, other = Desk(tmp_path), Desk(tmp_path)
    (first,) = one.optimized()
    (second,) = other.optimized("shift")
    one.proposals.heard(evolve(one.job("scale"), state=FAILED), None)
    assert asyncio.run(one.proposals.accept(first.id)).ok
    assert other.state(second) == READY and other.editor.text == SCALE
    other.proposals.reject(second.id, "too long")
    (third,) = one.optimized("shift", first=3)
    again = Desk(tmp_path)
    assert again.state(first) == READY, "the text of this one is not changed"
    assert (again.state(second), again.state(third)) == (REJECTED, READY)
    assert again.proposals.get(second.id).note == "too long"  # type: ignore[union-attr]
    told = {p.id: p.state for p in one.proposals.all(one.uri)}
    assert told.pop(first.id) == ACCEPTED and told.pop(second.id) == REJECTED, "and each learns of the rest"
    assert sorted(told.values()) == [PROPOSAL_FAILED, READY]


def test_what_many_servers_write_at_once_is_all_there(tmp_path: Path) -> None:
    made = evolve(Desk(tmp_path).optimized()[0], uri="file:///a.cu")
    code = (
        "import sys, cattrs\n"
        "from pathlib import Path\n"
        "from cuda_lsp.proposals.proposal import Proposal\n"
        "from cuda_lsp.proposals.store import Store\n"
        "for number in range(4):\n"
        "    made = Proposal(f'{sys.argv[2]}-{number}', 'file:///a.cu', 'k', 'job', 'rejected', 'title')\n"
        "    Store(Path(sys.argv[1])).save('file:///a.cu', [], [made])\n"
    )
    store = Store(tmp_path / "shared")
    store.save(made.uri, [], [made])
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "shared"), str(number)], cwd=root)
        for number in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert {p.id for p in store.load(made.uri)} == {made.id, *(f"{w}-{n}" for w in range(4) for n in range(4))}


def test_a_lock_that_is_never_let_go_does_not_stop_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_lsp.proposals.locking.PATIENCE", 0.05)
    folder = tmp_path / "proposals"
    folder.mkdir()
    with locked(folder):
        desk = Desk(tmp_path)
        (proposal,) = desk.optimized()
        assert desk.said == []
    desk.restart()
    assert desk.state(proposal) == READY


def test_the_file_of_a_deleted_document_goes_though_it_was_never_opened(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.optimized()
    desk.editor.close()
    fresh = Desk(tmp_path, uri=(tmp_path / "other.cu").as_uri())
    fresh.proposals.deleted(desk.uri)
    assert not list((tmp_path / "proposals").glob("*.json"))
