"""May the PyTorch function run that a workload names? It is the user's own Python: a setting, and then a question."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from attrs import define, field

from cuda_lsp import protocol
from cuda_lsp.asked_reference import Function, function_of
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import HELD
from cuda_lsp.putting import ALWAYS, NEVER, put
from cuda_lsp.settings import Settings

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

KINDS = ("optimize", "verify", "idea")
"""Jobs whose verdicts can be held against a function of the user's."""

RUN = "Run"
CANNOT_AGREE = (
    "this editor cannot ask whether you agree. Run `cuda-lsp verify` or `optimize` with --reference in a terminal"
)
_BACK = f"the command to ask again ({protocol.FORGET}) takes that back"


def refers(kind: str, settings: Settings) -> bool:
    """Whether a job may have a use for a function of the user's."""
    return settings.reference and kind in KINDS


@define(eq=False)
class Functions:
    """``_declined`` are those that are not brought up again before the server ends; one question at a time is open for
    each."""

    server: CudaServer
    _declined: set[str] = field(factory=set)
    _open: dict[str, asyncio.Lock] = field(factory=dict)

    async def allowed(self, job: Job) -> str:
        """The key of the function that a held job may run; empty where there is none, or it may not."""
        try:
            found = await asyncio.to_thread(function_of, job.path, job.options.folder, job.document, job.kernel)
            if found is None:
                return ""
            async with self._open.setdefault(found.key, asyncio.Lock()):
                return found.key if await self._may(job, found) else ""
        except Exception:
            log.exception("whether a reference may run could not be found out")
            self.server.say(f"{job.kernel}: no reference is run, through a fault of cuda-lsp: its log says more")
            return ""

    def forget(self) -> None:
        self._declined.clear()

    async def _may(self, job: Job, found: Function) -> bool:
        from cuda_lsp.answers import answer, remember

        said = answer(found.key, found.project)
        if said is not None or found.key in self._declined:
            return said is True
        now = self.server.jobs.get(job.id)
        if now is None or now.state != HELD:
            return False
        if not self.server.session.client.asks:
            self._declined.add(found.key)
            self.server.say(f"{found.said} is not run: {CANNOT_AGREE}")
            return False
        chosen = await put(
            self.server, job, found.question, (RUN, ALWAYS, NEVER), f"waiting for your answer: may {found.said} run?"
        )
        if chosen == RUN:
            return True
        if chosen not in (ALWAYS, NEVER):
            self._declined.add(found.key)
            self.server.say(f"{found.said} is not run before the editor starts anew; {_BACK}")
            return False
        problem = remember(found.key, found.project, chosen == ALWAYS)
        if problem and chosen == NEVER:
            self._declined.add(found.key)
        how = "may run" if chosen == ALWAYS else "is not run"
        self.server.say(problem or f"in this project {found.said} {how}; {_BACK}")
        return chosen == ALWAYS
