"""A session, an editor and the proposals between them, without a connection and without a worker."""

from pathlib import Path

from attrs import define, evolve, field

from agent.source.document import parse
from cuda_lsp.applying import Applier
from cuda_lsp.client import Client
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import DONE
from cuda_lsp.proposals.book import Proposals
from cuda_lsp.proposals.proposal import Proposal
from cuda_lsp.proposals.store import Store
from cuda_lsp.session import Session
from cuda_lsp.worker.asked import Options
from cuda_lsp.worker.messages import Ended, Rewrite
from tests.server.editor import STRICT, Editor
from tests.server.rewrites import relaunched, rewritten
from tests.server.texts import SCALE


@define(eq=False)
class Desk:
    folder: Path
    text: str = SCALE
    manner: str = STRICT
    late: bool = False
    versioned: bool = True
    uri: str = ""
    said: list[str] = field(factory=list)
    session: Session = field(init=False)
    editor: Editor = field(init=False)
    proposals: Proposals = field(init=False)
    jobs: int = 0

    def __attrs_post_init__(self) -> None:
        self.uri = self.uri or (self.folder / "scale.cu").as_uri()
        self.restart()

    def restart(self) -> None:
        """Another server, the same user: what is on disk is all that is left."""
        self.session = Session()
        self.session.client = Client(applies_edits=True, versioned_edits=self.versioned)
        self.editor = Editor(self.session, self.uri, self.text, self.manner, self.late)
        applier = Applier(self.session, self.editor.apply, answer_seconds=0.3, text_seconds=0.2)
        self.proposals = Proposals(self.session, applier, Store(self.folder / "proposals"), self.said.append)
        self.editor.open()

    def optimized(
        self, kernel: str = "scale", *, launches: bool = False, count: int = 1, first: int = 0
    ) -> list[Proposal]:
        """What a job on the present text proposes."""
        snapshot = self.session.snapshot(self.uri)
        assert snapshot is not None
        self.jobs += 1
        base = parse(snapshot.text, snapshot.path)
        made = [
            relaunched(base, kernel) if launches else rewritten(base, kernel, number)
            for number in range(first, first + count)
        ]
        job = self.job(kernel)
        self.proposals.heard(job, None)
        self.end(job, *made)
        return [proposal for proposal in self.proposals.all(self.uri) if proposal.job == job.id]

    def job(self, kernel: str = "scale") -> Job:
        snapshot = self.session.snapshot(self.uri)
        assert snapshot is not None
        self.jobs += 1
        return Job(f"job-{self.jobs}", "optimize", self.uri, snapshot.version, kernel, Options(), snapshot.read())

    def end(self, job: Job, *rewrites: Rewrite, state: str = DONE) -> None:
        ended = Ended("done", "done", rewrites)
        self.proposals.heard(evolve(job, state=state, message="it failed", ended=ended), ended)

    def state(self, proposal: Proposal) -> str:
        found = self.proposals.get(proposal.id)
        return found.state if found else "gone"

    @property
    def server_text(self) -> str:
        snapshot = self.session.snapshot(self.uri)
        assert snapshot is not None
        return snapshot.lines.text.decode()
