"""Writing into the user's document: through the editor, on the text that was read, and checked afterwards.

What an editor answers is not enough: some say ``applied`` whatever they did. What counts is the text that it then
sends. So each edit promises a text, and has been applied when the document is that text.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from attrs import define, field, frozen
from lsprotocol import types

from agent.source.edits import Edit, apply_edits
from agent.source.line_ends import ended_as
from cuda_lsp.lines import decoded
from cuda_lsp.session import Session, Snapshot

Send = Callable[[types.ApplyWorkspaceEditParams], Awaitable[types.ApplyWorkspaceEditResult]]

ANSWER_SECONDS = 60.0
TEXT_SECONDS = 5.0


@frozen
class Applied:
    """``message`` says what happened where the document is not as promised."""

    ok: bool
    message: str = ""


@define(eq=False)
class _Promise:
    text: bytes = field(repr=False)
    seen: asyncio.Event = field(factory=asyncio.Event)


def workspace_edit(session: Session, snapshot: Snapshot, edits: Sequence[Edit]) -> types.WorkspaceEdit:
    """Edits of a snapshot as the client takes them, with its version where it can be told."""
    raw = snapshot.lines.text
    changes = [types.TextEdit(snapshot.lines.range_of(edit.span), decoded(ended_as(raw, edit.text))) for edit in edits]
    if not session.client.versioned_edits:
        return types.WorkspaceEdit(changes={snapshot.uri: changes})
    document = types.OptionalVersionedTextDocumentIdentifier(snapshot.uri, snapshot.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(changes))])


class Applier:
    """One edit at a time for each document."""

    def __init__(
        self, session: Session, send: Send, answer_seconds: float = ANSWER_SECONDS, text_seconds: float = TEXT_SECONDS
    ) -> None:
        self._session = session
        self._send = send
        self._answer_seconds = answer_seconds
        self._text_seconds = text_seconds
        self._promises: dict[str, _Promise] = {}
        session.subscribe(self._changed)

    async def apply(self, snapshot: Snapshot, edits: Sequence[Edit], label: str) -> Applied:
        """Apply edits whose spans refer to ``snapshot``, which must be the newest."""
        if not self._session.client.applies_edits:
            return Applied(False, "this editor cannot be asked to change a document (no workspace/applyEdit)")
        if self._session.snapshot(snapshot.uri) is not snapshot:
            return Applied(False, "the document changed meanwhile; nothing was written")
        if snapshot.uri in self._promises:
            return Applied(False, "another change of this document is under way; try again when it is done")
        promise = self._promises[snapshot.uri] = _Promise(apply_edits(snapshot.text, edits))
        params = types.ApplyWorkspaceEditParams(workspace_edit(self._session, snapshot, edits), label)
        try:
            return await self._carry_out(snapshot, params, promise)
        finally:
            del self._promises[snapshot.uri]

    async def _carry_out(self, before: Snapshot, params: types.ApplyWorkspaceEditParams, promise: _Promise) -> Applied:
        # Not cancelled when it takes too long: an answer to a request that nobody waits for is an error in pygls.
        sent = asyncio.ensure_future(self._send(params))
        done, _ = await asyncio.wait({sent}, timeout=self._answer_seconds)
        if not done:
            sent.add_done_callback(lambda late: late.cancelled() or late.exception())
            return self._judged(before, promise, f"the editor did not answer within {self._answer_seconds:g} s")
        if (error := sent.exception()) is not None:
            return self._judged(before, promise, f"the editor answered with an error: {error}")
        if not sent.result().applied:
            reason = sent.result().failure_reason
            refused = f"the editor refused the change{f': {reason}' if reason else ''}"
            return self._judged(before, promise, refused, "and the document was edited meanwhile: try again")
        try:
            await asyncio.wait_for(promise.seen.wait(), self._text_seconds)
        except TimeoutError:
            return self._judged(before, promise, "the editor said that it applied the change")
        return Applied(True)

    def _judged(
        self,
        before: Snapshot,
        promise: _Promise,
        what: str,
        changed: str = "but the document was changed to something else meanwhile: look at it, and undo",
    ) -> Applied:
        """The document itself says what became of it; ``changed`` is said of one that is neither as it was nor as it
        should be."""
        if promise.seen.is_set():
            return Applied(True)
        now = self._session.snapshot(before.uri)
        if now is None:
            return Applied(False, f"{what}, and the document was closed")
        if now.text == before.text:
            return Applied(False, f"{what}; the document is as it was")
        return Applied(False, f"{what}, {changed}")

    def _changed(self, old: Snapshot | None, new: Snapshot | None) -> None:
        promise = self._promises.get(new.uri) if new is not None else None
        if promise is not None and new is not None and new.text == promise.text:
            promise.seen.set()
