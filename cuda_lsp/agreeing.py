"""Between a command and its work: may a language model be asked? The job waits for the user's answer, in sight."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from cuda_lsp import protocol
from cuda_lsp.asked_model import NO_MODEL, Consent, consent
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import HELD
from cuda_lsp.worker.asked import ModelUse, Options

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

KINDS = ("suggest", "optimize", "idea")
"""Jobs that ask a language model where they may."""

SEND, ALWAYS, NEVER = "Send", "Always in this project", "Never in this project"
CANNOT_AGREE = (
    "this editor cannot ask whether you agree. Run `cuda-lsp optimize` on the file in a terminal, and answer `always`"
)
ALONE = "ideas come from the catalogue alone"
_BACK = f"the command to ask again ({protocol.FORGET}) takes that back"


def asks(kind: str, options: Options) -> bool:
    """Whether a job could have a use for a language model: ideas that are named are the catalogue's."""
    return kind in KINDS and not options.only


@define(eq=False)
class Agreements:
    """What the user answered beyond what is kept for good. ``_declined`` are the (endpoint, project) that are not
    brought up again before the server ends; one question at a time is open for each."""

    server: CudaServer
    _declined: set[tuple[str, str]] = field(factory=set)
    _open: dict[tuple[str, str], asyncio.Lock] = field(factory=dict)

    async def settle(self, identifier: str) -> None:
        """Let a held job begin, with the model that it may ask; end it where it can do nothing without one."""
        job = self.server.jobs.get(identifier)
        if job is None or job.state != HELD:
            return
        try:
            found = await asyncio.to_thread(consent, job.path, job.options.folder, job.document, job.kernel)
            use = await self._allowed(job, found)
        except Exception as error:
            log.exception("whether a language model may be asked could not be found out")
            use, found = None, Consent(problem=f"a fault of cuda-lsp ({type(error).__name__}: {error})")
        if use is not None or not job.options.idea:
            if found.problem and not found.stated:
                self._say(f"{job.kernel}: no language model is asked, {ALONE}: {found.problem}")
            self.server.jobs.release(identifier, evolve(job.options, model=use))
        elif self.server.jobs.cancel(identifier):
            self._say("nothing was sent" if found.use else found.problem or NO_MODEL)

    def forget(self) -> None:
        """Take back whatever was answered; what is asked now is ended."""
        from cuda_lsp.answers import forget

        problem = forget()
        self._declined.clear()
        for job in self.server.jobs.all():
            if job.active and job.options.model is not None:
                self.server.jobs.cancel(job.id)
        self._say(problem or "your answers are forgotten: you are asked before anything is sent to a language model")

    async def _allowed(self, job: Job, found: Consent) -> ModelUse | None:
        if found.use is None:
            return None
        which = (found.use.endpoint, found.project)
        async with self._open.setdefault(which, asyncio.Lock()):
            from cuda_lsp.answers import answer

            said = answer(*which)
            if said is None and which in self._declined:
                said = False
            # an idea of the user's own can only go to the model: there the question is put once more
            if said or (said is False and not job.options.idea):
                return found.use if said else None
            now = self.server.jobs.get(job.id)
            return await self._ask(job, found, found.use) if now is not None and now.state == HELD else None

    async def _ask(self, job: Job, found: Consent, use: ModelUse) -> ModelUse | None:
        text = "\n".join(found.question)
        if not self.server.session.client.asks:
            self._declined.add((use.endpoint, found.project))
            whole = f"{text}\nNothing was sent: " if job.options.idea else f"{use.name} is not asked, {ALONE}: "
            self._say(f"{whole}{CANNOT_AGREE}", types.MessageType.Warning)
            return None
        self.server.jobs.waits(job.id, f"waiting for your answer: may {use.name} be asked?")
        items = [types.MessageActionItem(title) for title in (SEND, ALWAYS, NEVER)]
        params = types.ShowMessageRequestParams(types.MessageType.Info, f"cuda-lsp: {text}", items)
        try:
            chosen = await self.server.window_show_message_request_async(params)
        except JsonRpcException as error:
            log.warning("the client asked nobody: %s", error)
            chosen = None
        return use if self._noted(job, found, use, chosen.title if chosen else "") else None

    def _noted(self, job: Job, found: Consent, use: ModelUse, chosen: str) -> bool:
        """Whether the answer was a yes; what follows from it is said."""
        if chosen == SEND:
            return True
        if chosen not in (ALWAYS, NEVER):
            self._declined.add((use.endpoint, found.project))
            if not job.options.idea:
                self._say(f"{use.name} is not asked before the editor starts anew, {ALONE}; {_BACK}")
            return False
        from cuda_lsp.answers import remember

        problem = remember(use.endpoint, found.project, chosen == ALWAYS)
        if problem and chosen == NEVER:
            self._declined.add((use.endpoint, found.project))
        how = "may be asked" if chosen == ALWAYS else f"is not asked, {ALONE}"
        self._say(problem or f"in this project {use.name} {how}; {_BACK}")
        return chosen == ALWAYS

    def _say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.server.say(text, kind)
