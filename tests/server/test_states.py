"""The states of a proposal, what leads from one to the other, and what becomes of what was turned down."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from agent.source.document import parse
from cuda_lsp.jobs.job import CANCELLED, FAILED
from cuda_lsp.proposals.proposal import ACCEPTED, OUTDATED, READY, REJECTED, RUNNING, Proposal
from cuda_lsp.proposals.proposal import FAILED as PROPOSAL_FAILED
from cuda_lsp.worker.messages import Ended
from tests.server.desk import Desk
from tests.server.rewrites import rewritten
from tests.server.texts import SCALE

INSIDE, ELSEWHERE, USED = ("twice(x[i])", "twice(x[i] )"), ("x[i] + 1.0f", "x[i] + 2.0f"), ("FACTOR 2", "FACTOR 3")
GONE = "gone"


def _accept(desk: Desk, proposal: Proposal) -> None:
    asyncio.run(desk.proposals.accept(proposal.id))


def _undo(desk: Desk, proposal: Proposal) -> None:
    for line in ("// helper 0\n", " /* faster 0 */"):
        desk.editor.replace(line, "")


def _edit(change: tuple[str, str]) -> Callable[[Desk, Proposal], None]:
    return lambda desk, proposal: desk.editor.replace(*change)


def _unedit(change: tuple[str, str]) -> Callable[[Desk, Proposal], None]:
    return lambda desk, proposal: desk.editor.replace(*reversed(change))


def _check(desk: Desk, proposal: Proposal) -> None:
    desk.proposals.check(desk.uri)


def _reject(desk: Desk, proposal: Proposal) -> None:
    desk.proposals.reject(proposal.id, "no")


def _reopen(desk: Desk, proposal: Proposal) -> None:
    desk.editor.close()
    desk.editor.open()


def _restart(desk: Desk, proposal: Proposal) -> None:
    desk.text = desk.editor.text
    desk.restart()


def _search_again(desk: Desk, proposal: Proposal) -> None:
    base = parse(desk.editor.text.encode())
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job, rewritten(base, "scale", 7))


def _find_nothing(desk: Desk, proposal: Proposal) -> None:
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job)


def _search_elsewhere(desk: Desk, proposal: Proposal) -> None:
    desk.optimized("shift")


def _fail(desk: Desk, proposal: Proposal) -> None:
    job = desk.job()
    desk.proposals.heard(job, None)
    desk.end(job, state=FAILED)


def _delete(desk: Desk, proposal: Proposal) -> None:
    desk.proposals.deleted(desk.uri)


STATES: list[tuple[str, list[Callable[[Desk, Proposal], None]], str]] = [
    ("ready", [], READY),
    ("ready, edited elsewhere", [_edit(ELSEWHERE)], READY),
    ("ready, edited inside", [_edit(INSIDE)], OUTDATED),
    ("ready, edited inside and back", [_edit(INSIDE), _unedit(INSIDE)], READY),
    ("ready, what it uses edited", [_edit(USED), _check], OUTDATED),
    ("ready, what it uses edited and back", [_edit(USED), _check, _unedit(USED), _check], READY),
    ("ready, what it uses edited, accept", [_edit(USED), _accept], OUTDATED),
    ("ready, reopened", [_reopen], READY),
    ("ready, restarted", [_restart], READY),
    ("ready, restarted on an edited text", [_edit(INSIDE), _restart], OUTDATED),
    ("ready, a better one found", [_search_again], GONE),
    ("ready, nothing found", [_find_nothing], READY),
    ("ready, another kernel searched", [_search_elsewhere], READY),
    ("ready, a search failed", [_fail], READY),
    ("ready, deleted", [_delete], GONE),
    ("outdated, accept", [_edit(INSIDE), _accept], OUTDATED),
    ("outdated, reject", [_edit(INSIDE), _reject], REJECTED),
    ("outdated, rejected, edited back", [_edit(INSIDE), _reject, _unedit(INSIDE)], REJECTED),
    ("outdated, a better one found", [_edit(INSIDE), _search_again], GONE),
    ("accepted", [_accept], ACCEPTED),
    ("accepted, accept", [_accept, _accept], ACCEPTED),
    ("accepted, reject", [_accept, _reject], ACCEPTED),
    ("accepted, edited elsewhere", [_accept, _edit(ELSEWHERE)], ACCEPTED),
    ("accepted, worked on", [_accept, _edit(INSIDE)], ACCEPTED),
    ("accepted, reopened", [_accept, _reopen], ACCEPTED),
    ("accepted, restarted", [_accept, _restart], ACCEPTED),
    ("accepted, undone", [_accept, _undo], READY),
    ("accepted, undone, accept", [_accept, _undo, _accept], ACCEPTED),
    ("accepted, undone, reject", [_accept, _undo, _reject], REJECTED),
    ("accepted, undone, edited inside", [_accept, _undo, _edit(INSIDE)], OUTDATED),
    ("accepted, undone, edited inside and back", [_accept, _undo, _edit(INSIDE), _unedit(INSIDE)], READY),
    ("accepted, undone, restarted, edited", [_accept, _undo, _restart, _edit(INSIDE)], OUTDATED),
    ("accepted, undone elsewhere, restarted, edited", [_accept, _reopen, _undo, _restart, _edit(INSIDE)], OUTDATED),
    ("accepted, undone, edited, restarted", [_accept, _undo, _edit(INSIDE), _restart], OUTDATED),
    ("rejected", [_reject], REJECTED),
    ("rejected, accept", [_reject, _accept], REJECTED),
    ("rejected, restarted", [_reject, _restart], REJECTED),
    ("rejected, another found", [_reject, _search_again], REJECTED),
]


@pytest.mark.parametrize(("steps", "state"), [case[1:] for case in STATES], ids=[case[0] for case in STATES])
def test_each_state_and_what_leads_out_of_it(
    tmp_path: Path, steps: list[Callable[[Desk, Proposal], None]], state: str
) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    for step in steps:
        step(desk, proposal)
    assert desk.state(proposal) == state


@pytest.mark.parametrize(("end", "state"), [(CANCELLED, GONE), (FAILED, PROPOSAL_FAILED)])
def test_what_runs_ends_and_cannot_be_decided_about(tmp_path: Path, end: str, state: str) -> None:
    desk = Desk(tmp_path)
    job = desk.job()
    desk.proposals.heard(job, None)
    (running,) = desk.proposals.all(desk.uri)
    assert running.state == RUNNING
    assert not desk.proposals.reject(running.id).ok
    assert "this proposal is running" in asyncio.run(desk.proposals.accept(running.id)).message
    desk.editor.replace(*INSIDE)
    assert desk.state(running) == RUNNING
    desk.end(job, state=end)
    assert desk.state(running) == state
    if state == PROPOSAL_FAILED:
        assert "this proposal is failed: it failed" in asyncio.run(desk.proposals.accept(running.id)).message
        assert desk.proposals.review(running.id) is None
        assert desk.proposals.reject(running.id).ok and desk.state(running) == REJECTED


def test_a_redo_is_an_acceptance_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    _accept(desk, proposal)
    accepted = desk.editor.text
    _undo(desk, proposal)
    assert desk.state(proposal) == READY
    desk.editor.type(0, len(desk.editor.text), accepted)
    assert desk.state(proposal) == ACCEPTED


# --- what was turned down --------------------------------------------------------------------------------------------


def test_what_was_rejected_is_not_proposed_again_and_others_of_its_kind_say_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first, _ = desk.optimized(count=2)
    desk.proposals.reject(first.id, "too clever")
    base = parse(SCALE.encode())
    job = desk.job()
    desk.proposals.heard(job, None)
    rewrites = tuple(rewritten(base, "scale", number) for number in (0, 5))
    desk.end(job, *rewrites)
    ended = evolve(job, ended=Ended("done", "", rewrites))
    assert [old.id for _, old in desk.proposals.repeated(ended)] == [first.id]
    (again,) = [proposal for proposal in desk.proposals.all(desk.uri) if proposal.job == job.id]
    assert again.anchors == rewrites[1].anchors and again.state == READY
    assert again.note == "you rejected another rewrite of this kind (faster scale): too clever"
    assert [p.id for p in desk.proposals.rejected(desk.uri, "scale")] == [first.id]
    assert desk.proposals.rejected(desk.uri, "shift") == ()
    desk.restart()
    assert [p.note for p in desk.proposals.rejected(desk.uri, "scale")] == ["too clever"]


def test_what_was_rejected_on_another_text_of_the_kernel_is_another_proposal(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (first,) = desk.optimized()
    desk.proposals.reject(first.id)
    desk.editor.replace(*INSIDE)
    (second,) = desk.optimized()
    assert second.state == READY and "you rejected another rewrite of this kind" in second.note
