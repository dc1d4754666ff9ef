"""Between a command and its work: may a language model be asked, may Python of the user's run? The job waits for the
answers, in sight."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from lsprotocol import types

from cuda_lsp import protocol
from cuda_lsp.agreeing_reference import Functions, refers
from cuda_lsp.asked_model import NO_MODEL, Consent, consent
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import HELD
from cuda_lsp.putting import ALWAYS, NEVER, put
from cuda_lsp.worker.asked import ModelUse, Options

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

KINDS = ("suggest", "optimize", "idea")
"""Jobs that ask a language model where they may."""

SEND = "Send"
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
    _functions: Functions = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._functions = Functions(self.server)

    def waits(self, kind: str, options: Options) -> bool:
        """Whether a job has to be held until something is settled."""
        return asks(kind, options) or refers(kind, self.server.session.settings)

    async def settle(self, identifier: str) -> None:
        """Let a held job begin, with the model that it may ask and the function that it may run; end it where it can
        do nothing without a model."""
        job = self.server.jobs.get(identifier)
        if job is None or job.state != HELD:
            return
        options: Options | None = job.options
        if asks(job.kind, job.options):
            options = await self._with_model(job)
        if options is None:
            return
        if refers(job.kind, self.server.session.settings):
            options = evolve(options, reference=await self._functions.allowed(job))
        self.server.jobs.release(identifier, options)

    async def _with_model(self, job: Job) -> Options | None:
        """The job's options with the model that it may ask; None where it was ended."""
        try:
            found = await asyncio.to_thread(consent, job.path, job.options.folder, job.document, job.kernel)
            use = await self._allowed(job, found)
        except Exception as error:
            log.exception("whether a language model may be asked could not be found out")
            use, found = None, Consent(problem=f"a fault of cuda-lsp ({type(error).__name__}: {error})")
        if use is not None or not job.options.idea:
            if found.problem and not found.stated:
                self._say(f"{job.kernel}: no language model is asked, {ALONE}: {found.problem}")
            return evolve(job.options, model=use)
        if self.server.jobs.cancel(job.id):
            self._say("nothing was sent" if found.use else found.problem or NO_MODEL)
        return None

    def forget(self) -> None:
        """Take back whatever was answered; what is asked now is ended."""
        from cuda_lsp.answers import forget

        problem = forget()
        self._declined.clear()
        self._functions.forget()
        for job in self.server.jobs.all():
            if job.active and (job.options.model is not None or job.options.reference):
                self.server.jobs.cancel(job.id)
        self._say(
            problem
            or "your answers are forgotten: you are asked before anything is sent to a language model, and before a "
            "reference runs"
        )

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
        if not self.server.session.client.asks:
            text = "\n".join(found.question)
            self._declined.add((use.endpoint, found.project))
            whole = f"{text}\nNothing was sent: " if job.options.idea else f"{use.name} is not asked, {ALONE}: "
            self._say(f"{whole}{CANNOT_AGREE}", types.MessageType.Warning)
            return None
        waits = f"waiting for your answer: may {use.name} be asked?"
        chosen = await put(self.server, job, found.question, (SEND, ALWAYS, NEVER), waits)
        return use if self._noted(job, found, use, chosen) else None

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
