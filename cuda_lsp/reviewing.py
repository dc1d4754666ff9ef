"""Showing a proposal: in the plugin's own diff, in a file of its own, or in a message, as far as the client can."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import platformdirs
from lsprotocol import types
from pygls.uris import from_fs_path

from cuda_lsp import protocol
from cuda_lsp.lines import decoded
from cuda_lsp.proposals.book import Review
from cuda_lsp.proposals.proposal import OUTDATED, READY, Proposal
from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

FILES = 32
"""Diff files kept; older ones go."""


def best(proposals: Iterable[Proposal], kernel: str) -> Proposal | None:
    """What to look at first for a kernel: the first that is ready, else one that is outdated."""
    mine = [proposal for proposal in proposals if proposal.kernel == kernel and proposal.open]
    return min(mine, key=lambda proposal: (READY, OUTDATED).index(proposal.state), default=None)


def summary(proposal: Proposal) -> str:
    """The verdict in one line."""
    from cuda_lsp.terminal.render import told_text  # brings in what the server starts without

    return told_text(proposal.verdict) if proposal.verdict else proposal.note


def review_of(server: CudaServer, identifier: str) -> dict[str, Any] | None:
    """As docs/protocol.md has it: both texts, the diff, the verdict, and what can be done with the proposal."""
    found = server.proposals.review(identifier)
    return _as_json(found) if found else None


def _as_json(review: Review) -> dict[str, Any]:
    from cuda_lsp.terminal.render import evidence_lines

    proposal = review.proposal
    assert proposal.verdict is not None
    return {
        "id": proposal.id,
        "uri": proposal.uri,
        "kernel": proposal.kernel,
        "state": proposal.state,
        "title": proposal.named,
        "verdict": summary(proposal),
        "evidence": [*evidence_lines(proposal.verdict), *_record(proposal)],
        "note": proposal.note if proposal.state == OUTDATED else proposal.by_hand or proposal.note,
        "original": decoded(review.original),
        "proposed": None if review.proposed is None else decoded(review.proposed),
        "diff": review.diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
    }


def _record(proposal: Proposal) -> tuple[str, ...]:
    """Where the proof record is, while it is there: older ones go."""
    return (f"proof record: {proposal.record}",) if proposal.record and Path(proposal.record).is_file() else ()


def show_review(server: CudaServer, review: dict[str, Any]) -> None:
    """Show it by what the client announced."""
    client = server.session.client
    if client.reviews:
        server.protocol.notify(protocol.REVIEW_NOTIFICATION, review)
    elif client.shows_documents:
        server.task(_show_file(server, review))
    else:
        _say(server, review)


async def _show_file(server: CudaServer, review: dict[str, Any]) -> None:
    try:
        uri = from_fs_path(str(_written(review)))
        assert uri is not None
        shown = await server.window_show_document_async(types.ShowDocumentParams(uri, False, True))
        if shown.success:
            return
    except Exception as error:
        log.warning("the diff cannot be shown as a file: %s", error)
    _say(server, review)


def _say(server: CudaServer, review: dict[str, Any]) -> None:
    server.say(f"{review['title']}: {review['verdict']}\n{review['diff']}", types.MessageType.Info)


def _written(review: dict[str, Any]) -> Path:
    from cuda_lsp.terminal.render import line

    """A diff file with the evidence above it, where ``patch`` takes it as a comment."""
    folder = Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "reviews"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.diff"), key=lambda file: file.stat().st_mtime)[: -FILES + 1]:
        old.unlink(missing_ok=True)
    head = [line("proposal", review["title"]), line("verdict", review["verdict"])]
    head += [line("", text) for text in review["evidence"]]
    head += [line("note", review["note"])] if review["note"] else []
    file = folder / f"{review['id']}.diff"
    file.write_text("\n".join([*head, "", review["diff"]]), encoding="utf-8", errors="replace", newline="")
    return file
