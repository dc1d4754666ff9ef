"""What a job is doing, in the client's own progress display; cancelling there kills the work."""

from __future__ import annotations

import logging

from attrs import define, field
from lsprotocol import types

from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import Listened
from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

_TITLES = {
    "suggest": "Looking for ideas for {}",
    "optimize": "Optimizing {}",
    "verify": "Verifying {}",
    "benchmark": "Estimating {}",
    "describe": "Describing {}",
    "idea": "Trying your idea on {}",
    "code": "Compiling {}",
    "fix": "Verifying a fix of {}",
}


def register(server: CudaServer) -> None:
    progress = Progress(server)
    server.jobs.subscribe(progress.heard)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: types.WorkDoneProgressCancelParams) -> None:
        job = progress.jobs.get(params.token)
        if job is not None:
            server.jobs.cancel(job)
        elif (cancelled := server.cancels.get(params.token)) is not None:
            cancelled()


@define(eq=False)
class Progress:
    """A token for each job: the server's own where the client lets it create one (that of a command is void once the
    command is answered), else the command's, else none."""

    server: CudaServer
    jobs: dict[str | int, str] = field(factory=dict)
    tokens: dict[str, str | int] = field(factory=dict)
    said: dict[str, str] = field(factory=dict)

    def heard(self, job: Job, message: Listened) -> None:
        token = self.tokens.get(job.id)
        if token is None and job.active:
            self._open(job)
        elif token is not None and job.id in self.said:
            if job.active and job.stage != self.said[job.id]:
                self.said[job.id] = job.stage
                self._send(
                    token,
                    types.WorkDoneProgressReport(cancellable=True, message=job.stage, percentage=_percentage(job)),
                )
            elif not job.active:
                self._close(job, token)

    def _open(self, job: Job) -> None:
        if self.server.session.client.progress:
            token: str | int = f"cuda-lsp/{job.id}"
            self._know(job, token)
            self.server.task(self._create(job.id, token))
        elif (given := self.server.protocol.work_done_token) is not None and given not in self.jobs:
            self._know(job, given)
            self._begin(job, given)

    def _know(self, job: Job, token: str | int) -> None:
        self.jobs[token], self.tokens[job.id] = job.id, token

    async def _create(self, identifier: str, token: str | int) -> None:
        try:
            await self.server.protocol.send_request_async(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token)
            )
        except Exception as error:
            log.warning("the client shows no progress: %s", error)
            self._forget(identifier, token)
            return
        job = self.server.jobs.get(identifier)
        if job is not None:
            self._begin(job, token)
            if not job.active:
                self._close(job, token)

    def _begin(self, job: Job, token: str | int) -> None:
        self.said[job.id] = job.stage
        title = _TITLES.get("optimize" if job.options.suggested else job.kind, "Working on {}").format(job.kernel)
        self._send(
            token, types.WorkDoneProgressBegin(title, cancellable=True, message=job.stage, percentage=_percentage(job))
        )

    def _close(self, job: Job, token: str | int) -> None:
        self._send(token, types.WorkDoneProgressEnd(message=job.state))
        self._forget(job.id, token)

    def _forget(self, identifier: str, token: str | int) -> None:
        self.jobs.pop(token, None)
        self.tokens.pop(identifier, None)
        self.said.pop(identifier, None)

    def _send(
        self,
        token: str | int,
        value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd,
    ) -> None:
        self.server.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))


def _percentage(job: Job) -> int | None:
    """Only where it is known how much there is to do."""
    return 100 * job.done // job.total if job.total else None
