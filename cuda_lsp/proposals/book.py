"""All proposals of a server: made from jobs, found again in whatever the text has become, accepted or rejected."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from agent.source.document import Document
from agent.source.edits import Edit, apply_edits
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from cuda_lsp.applying import Applied, Applier
from cuda_lsp.jobs.job import CANCELLED, DONE, Job, Listened
from cuda_lsp.jobs.job import FAILED as JOB_FAILED
from cuda_lsp.proposals.anchors import is_applied, locate
from cuda_lsp.proposals.proposal import ACCEPTED, FAILED, OUTDATED, READY, REJECTED, RUNNING, SHOWN, Proposal
from cuda_lsp.proposals.store import Store, Unwritable, bounded
from cuda_lsp.session import Session, Snapshot

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from cuda_lsp.worker.messages import Rewrite

KINDS = ("optimize", "idea")
"""Jobs that propose rewrites."""
CLOSED = 16
"""Documents that were closed whose proposals stay at hand, for messages about them that wait for an answer."""

_EDITED = "the kernel, one of its launches or the code around them was edited since this was proved; optimize it again"
_BY_HAND = "the kernel, or something that it uses or is run on, was edited since this was proved; optimize it again"
_USES = "something that the kernel uses or is run on was edited since this was proved; optimize it again"


@frozen
class Review:
    """Both sides of a diff. ``proposed`` is the document as it is now with the rewrite in it; where the rewrite no
    longer fits, or was never to be applied by us, it is None and only ``diff`` shows it."""

    proposal: Proposal
    original: bytes
    proposed: bytes | None
    diff: str


class Proposals:
    """Kept by document. What a proposal's state is depends on the document's text at this moment: it is looked up, not
    tracked, so that no edit can be missed."""

    def __init__(self, session: Session, applier: Applier, store: Store, say: Callable[[str], None]) -> None:
        self._session = session
        self._applier = applier
        self._store = store
        self._say = say
        self._kept: dict[str, tuple[Proposal, ...]] = {}
        self._stale: set[str] = set()
        self._seen: dict[str, tuple[Document, tuple[Proposal, ...]]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._unwritable = False
        self._here = uuid.uuid4().hex[:8]
        """Tells the jobs of this server from those of others, whose proposals may lie in the same file."""
        session.subscribe(self._opened_or_closed)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Be told the URI of a document whose proposals changed (other than by an edit of the document)."""
        self._listeners.append(listener)

    def all(self, uri: str) -> tuple[Proposal, ...]:
        """The proposals of a document in its present text, the best first within each kernel. Between two keystrokes
        the text is known in haste, and one may be called outdated that is not."""
        kept = self._kept.get(uri, ())
        snapshot = self._session.snapshot(uri)
        if not kept or snapshot is None:
            return kept
        seen = self._seen.get(uri)
        if seen is None or seen[0] is not snapshot.document:
            seen = snapshot.document, tuple(self._now(proposal, snapshot.document) for proposal in kept)
            self._seen[uri] = seen
        return seen[1]

    def get(self, identifier: str) -> Proposal | None:
        uri = next((uri for uri, kept in self._kept.items() if any(p.id == identifier for p in kept)), None)
        if uri is None:
            return None
        if (snapshot := self._session.snapshot(uri)) is not None:
            snapshot.read()
        return next((p for p in self.all(uri) if p.id == identifier), None)

    def waiting(self, uri: str) -> bool:
        """Whether the user still has to decide about something there."""
        return any(proposal.open for proposal in self._kept.get(uri, ()))

    def heard(self, job: Job, message: Listened) -> None:
        """What a job did: to be subscribed to the jobs."""
        if job.kind not in KINDS:
            return
        mine = f"{job.id}-{self._here}"
        others = tuple(p for p in self._known(job.uri) if p.id != mine)
        if job.active:
            if not any(p.id == mine for p in self._kept.get(job.uri, ())):
                self._put(job.uri, (*others, Proposal(mine, job.uri, job.kernel, job.id, RUNNING, job.kind)))
        elif job.state == CANCELLED:
            self._put(job.uri, others)
        elif job.state == JOB_FAILED:
            failed = Proposal(mine, job.uri, job.kernel, job.id, FAILED, job.kind, note=job.message)
            self._put(job.uri, (*_without(others, job, FAILED), failed))
        elif job.state == DONE and job.ended is not None:
            again = {id(rewrite) for rewrite, _ in self.repeated(job)}
            found = [rewrite for rewrite in job.ended.rewrites if id(rewrite) not in again]
            fresh = tuple(_made(job, rewrite, self._warning(job, rewrite)) for rewrite in found[:SHOWN])
            # Where nothing better was found, what was found before stands.
            self._put(job.uri, (*_without(others, job, FAILED, *([READY] if fresh else [])), *fresh))

    def rejected(self, uri: str, kernel: str) -> tuple[Proposal, ...]:
        """What the user turned down for a kernel, oldest first."""
        return tuple(p for p in self._known(uri) if p.kernel == kernel and p.state == REJECTED and p.anchors)

    def repeated(self, job: Job) -> tuple[tuple[Rewrite, Proposal], ...]:
        """The rewrites of a job that ended that the user turned down before, byte for byte: they are not shown again,
        and that is said."""
        down = {proposal.anchors: proposal for proposal in self.rejected(job.uri, job.kernel)}
        rewrites = job.ended.rewrites if job.ended else ()
        return tuple((rewrite, down[rewrite.anchors]) for rewrite in rewrites if rewrite.anchors in down)

    def _warning(self, job: Job, rewrite: Rewrite) -> str:
        """That ideas like these were turned down before, and why: the rewrite is another, or of another text."""
        alike = [p for p in self.rejected(job.uri, job.kernel) if set(p.ideas) & set(rewrite.ideas)]
        if not alike:
            return ""
        reason = f": {alike[-1].note}" if alike[-1].note else ""
        return f"you rejected another rewrite of this kind ({alike[-1].title}){reason}"

    async def accept(self, identifier: str) -> Applied:
        """Write a rewrite into the document, exactly as it was promised, or write nothing and say why."""
        proposal = self.get(identifier)
        if proposal is None:
            return Applied(False, f"there is no proposal {identifier} any more")
        if proposal.by_hand:
            return Applied(False, f"not applied: {proposal.by_hand}")
        if proposal.state != READY or proposal.anchors is None:
            return Applied(False, f"this proposal is {proposal.state}{f': {proposal.note}' if proposal.note else ''}")
        snapshot = self._session.snapshot(proposal.uri)
        if snapshot is None:
            return Applied(False, "the document is not open in this editor: open it and accept again")
        edits = self._edits(proposal, snapshot)
        if edits is None:
            self.check(proposal.uri)
            return Applied(False, f"outdated, nothing was written: {_USES}")
        applied = await self._applier.apply(snapshot, edits, f"cuda-lsp: {proposal.title}")
        if applied.ok:
            self._set(evolve(proposal, state=ACCEPTED, note=""))
        else:
            self._tell(proposal.uri)
        return applied

    def reject(self, identifier: str, reason: str = "") -> Applied:
        """Put a proposal away. Writes nothing; the reason is kept."""
        proposal = self.get(identifier)
        if proposal is None:
            return Applied(False, f"there is no proposal {identifier} any more")
        if not (proposal.open or proposal.state == FAILED):
            return Applied(False, f"this proposal is {proposal.state}: there is nothing to reject")
        self._set(evolve(proposal, state=REJECTED, note=reason))
        return Applied(True)

    def review(self, identifier: str) -> Review | None:
        """Both sides as they are now; None where there is no such proposal, or it has no rewrite."""
        proposal = self.get(identifier)
        if proposal is None or proposal.verdict is None:
            return None
        snapshot = self._session.snapshot(proposal.uri)
        if snapshot is None:
            return Review(proposal, b"", None, proposal.diff)
        edits = locate(proposal.anchors, snapshot.read()) if proposal.anchors and proposal.state == READY else None
        proposed = None if edits is None else apply_edits(snapshot.text, edits)
        return Review(proposal, snapshot.text, proposed, proposal.diff)

    def check(self, uri: str) -> None:
        """Look whether what the open proposals rest on beside the kernel itself is still as it was. Takes as long as
        finding the workload does: for a pause in typing."""
        snapshot = self._session.snapshot(uri)
        if snapshot is None:
            return
        before = set(self._stale)
        for proposal in self._kept.get(uri, ()):
            if proposal.open:
                rests = self._rests(proposal, snapshot)
                (self._stale.discard if rests else self._stale.add)(proposal.id)
        if before != self._stale:
            self._tell(uri)

    def renamed(self, old: str, new: str) -> None:
        """A file has another name: its proposals go with it."""
        if kept := self._known(old):
            self._put(old, ())
            self._put(new, tuple(evolve(p, uri=new) for p in kept))

    def deleted(self, uri: str) -> None:
        """A file is gone, and what was proposed for it."""
        self._known(uri)
        self._put(uri, ())

    def _now(self, proposal: Proposal, document: Document) -> Proposal:
        """The state in this text. An undo brings an outdated or accepted proposal back, a redo an accepted one."""
        if proposal.anchors is None and proposal.state == READY and proposal.id in self._stale:
            return evolve(proposal, state=OUTDATED, note=_BY_HAND)
        if proposal.anchors is None or proposal.state not in (READY, ACCEPTED):
            return proposal
        if locate(proposal.anchors, document) is not None:
            stale = proposal.id in self._stale
            return evolve(proposal, state=OUTDATED, note=_USES) if stale else evolve(proposal, state=READY)
        if proposal.taken_back and is_applied(proposal.anchors, document.text):
            return evolve(proposal, state=ACCEPTED, note="")
        # what was accepted may be worked on; what was taken back is open again, and edited since
        return proposal if proposal.state == ACCEPTED else evolve(proposal, state=OUTDATED, note=_EDITED)

    def _taken_back(self, snapshot: Snapshot) -> None:
        """Notice at once that an accepted rewrite was undone: from then on it is open like any other."""
        for proposal in self._kept.get(snapshot.uri, ()):
            if proposal.state != ACCEPTED or proposal.anchors is None or proposal.anchors.old not in snapshot.text:
                continue
            if locate(proposal.anchors, snapshot.document) is not None:
                self._set(evolve(proposal, state=READY, note="", taken_back=True))

    def _edits(self, proposal: Proposal, snapshot: Snapshot) -> tuple[Edit, ...] | None:
        assert proposal.anchors is not None
        edits = locate(proposal.anchors, snapshot.read())
        return edits if edits is not None and self._rests(proposal, snapshot) else None

    def _rests(self, proposal: Proposal, snapshot: Snapshot) -> bool:
        from cuda_lsp.proposals.proof import current_key, project_settings

        try:
            document = snapshot.read()
            settings = project_settings(snapshot.path, proposal.folder)
            return current_key(document, document.kernel(proposal.kernel), settings) == proposal.proof
        except (SourceError, WorkloadError):
            return False

    def _known(self, uri: str) -> tuple[Proposal, ...]:
        if uri not in self._kept and _lasting(uri):
            self._kept[uri] = self._store.load(uri)
        return self._kept.get(uri, ())

    def _set(self, changed: Proposal) -> None:
        kept = self._kept.get(changed.uri, ())
        self._put(changed.uri, tuple(changed if p.id == changed.id else p for p in kept))

    def _put(self, uri: str, proposals: tuple[Proposal, ...]) -> None:
        before = self._kept.pop(uri, ())  # so that what was touched last comes last
        self._kept[uri] = bounded(proposals)
        if _lasting(uri) and (self._unwritable or _ended(before) != _ended(self._kept[uri])):
            self._remember(uri, before)
        self._tidy()
        self._tell(uri)

    def _tidy(self) -> None:
        """Let go of documents that are no longer open: what is proposed for files is on disk."""
        closed = [uri for uri in self._kept if self._session.snapshot(uri) is None and not self._running(uri)]
        files = [uri for uri in closed if self._kept[uri] and _lasting(uri)]
        at_hand = set(files if self._unwritable else files[-CLOSED:])
        for uri in closed:
            if uri not in at_hand:
                self._seen.pop(uri, None)
                self._stale -= {p.id for p in self._kept.pop(uri)}

    def _running(self, uri: str) -> bool:
        return any(p.state == RUNNING for p in self._kept.get(uri, ()))

    def _remember(self, uri: str, before: tuple[Proposal, ...]) -> None:
        """On disk, for a restart; and learn what other servers have there."""
        mine = self._kept[uri]
        try:
            # what could not be written before is news to the disk, whatever it is to us
            merged = self._store.save(uri, () if self._unwritable else _ended(before), _ended(mine))
        except Unwritable as problem:
            if not self._unwritable:
                self._say(str(problem))
            self._unwritable = True
            return
        self._unwritable = False
        known = {proposal.id for proposal in mine}
        others = tuple(proposal for proposal in merged if proposal.id not in known)
        self._kept[uri] = bounded((*others, *mine))

    def _tell(self, uri: str) -> None:
        self._seen.pop(uri, None)
        for listener in tuple(self._listeners):
            listener(uri)

    def _opened_or_closed(self, old: Snapshot | None, new: Snapshot | None) -> None:
        if new is not None:
            self._known(new.uri)
            self._taken_back(new)
        elif old is not None:
            self._seen.pop(old.uri, None)
            if not self._running(old.uri) and not self._unwritable:
                self._stale -= {p.id for p in self._kept.pop(old.uri, ())}


def _lasting(uri: str) -> bool:
    """Whether the document has a name that it will have after a restart."""
    return uri.startswith("file:")


def _ended(proposals: tuple[Proposal, ...]) -> tuple[Proposal, ...]:
    """What a restart may find: what runs ends with the server."""
    return tuple(proposal for proposal in proposals if proposal.state != RUNNING)


def _without(proposals: tuple[Proposal, ...], job: Job, *states: str) -> tuple[Proposal, ...]:
    """Without what an earlier job said on the same kernel and a newer answer replaces."""
    return tuple(p for p in proposals if p.kernel != job.kernel or p.state not in states)


def _made(job: Job, rewrite: Rewrite, note: str) -> Proposal:
    return Proposal(
        id=uuid.uuid4().hex[:12],
        uri=job.uri,
        kernel=job.kernel,
        job=job.id,
        state=READY,
        title=rewrite.title,
        ideas=rewrite.ideas,
        variant=rewrite.variant,
        why=rewrite.why,
        verdict=rewrite.verdict,
        anchors=rewrite.anchors,
        proof=rewrite.proof,
        diff=rewrite.diff,
        by_hand=rewrite.by_hand,
        changed_lines=rewrite.changed_lines,
        note=note,
        record=rewrite.record,
        folder=job.options.folder,
        created=time.time(),
        origin=rewrite.origin,
    )
