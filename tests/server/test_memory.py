"""What a server holds does not grow with the number of documents, kernels and names that it has seen."""

import asyncio
from pathlib import Path

from lsprotocol import types

from agent.source.document import parse
from cuda_lsp.facts.facts import Facts
from cuda_lsp.facts.store import FactStore, _Entry, place_of
from cuda_lsp.hints import HintStore
from cuda_lsp.session import Session, Snapshot
from tests.server.desk import Desk
from tests.server.rewrites import rewritten
from tests.server.texts import SCALE

URI = "file:///named.cu"
NAMES = 250


def test_proposals_for_documents_that_were_closed_under_a_job_are_let_go(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    uris = [(tmp_path / f"{number}.cu").as_uri() for number in range(60)] + ["untitled:1"]
    for uri in uris:
        desk.editor.close()
        desk.uri = desk.editor.uri = uri
        desk.editor.open()
        job = desk.job()
        desk.proposals.heard(job, None)
        desk.editor.close()
        assert [proposal.state for proposal in desk.proposals.all(uri)] == ["running"]
        desk.end(job, rewritten(parse(desk.editor.text.encode()), "scale"))
        assert len(desk.proposals._kept) <= 20
    assert desk.proposals.all(uris[-2]), "a message about the last few may wait for an answer"
    desk.uri = desk.editor.uri = uris[0]
    desk.editor.open()
    assert len(desk.proposals.all(uris[0])) == 1, "of a file they are on disk"


def named(session: Session, number: int) -> Snapshot:
    """A kernel under another name, as it is when a name is typed letter by letter."""
    text = SCALE.replace("scale", f"scale{number}")
    snapshot = session.change(URI, number + 2, [types.TextDocumentContentChangeWholeDocument(text)])
    assert snapshot is not None
    return snapshot


def test_hints_of_names_that_are_gone_are_let_go() -> None:
    session = Session()
    hints = HintStore(session)
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, SCALE))
    for number in range(NAMES):
        list(
            hints.every(
                named(session, number), lambda finding: types.Diagnostic(types.Range(*[types.Position(0, 0)] * 2), "")
            )
        )
    assert {name for name, _ in hints._tables[URI]} >= {f"scale{NAMES - 1}"}
    assert len(hints._tables[URI]) < NAMES / 2


def test_facts_of_names_that_are_gone_are_let_go() -> None:
    async def scenario() -> None:
        session = Session()
        facts = FactStore(session, HintStore(session), lambda *_: None, lambda _: None)
        session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, SCALE))
        for number in range(NAMES):
            snapshot = named(session, number)
            kernel = snapshot.document.kernels[0]
            facts.want(snapshot, kernel)
            facts._known[place_of(snapshot, kernel)] = _Entry(facts.key(snapshot, kernel), Facts())
            facts._tidy(URI, {place_of(snapshot, one) for one in snapshot.document.kernels})
        assert facts.of(snapshot, kernel) is not None
        assert len(facts._known) < NAMES / 2 and len(facts._wanted[URI]) < NAMES / 2
        facts.end()

    asyncio.run(scenario())
