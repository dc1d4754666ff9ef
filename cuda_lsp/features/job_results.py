"""What the user is told when a job ends, and what can be done with it from there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from attrs import evolve
from lsprotocol import types

from cuda_lsp import fixing
from cuda_lsp.describing import write_directive
from cuda_lsp.features.execute_command import start_job
from cuda_lsp.jobs import Job, JobRefused
from cuda_lsp.jobs.job import DONE, FAILED, Listened
from cuda_lsp.proposals.book import KINDS
from cuda_lsp.putting import choose
from cuda_lsp.reviewing import review_of, show_review, summary
from cuda_lsp.server import CudaServer
from cuda_lsp.worker.asked import Options

if TYPE_CHECKING:
    from agent.ideas.idea import Idea

log = logging.getLogger(__name__)

_BAD = ("wrong", "less precise", "undecided", "broken original")


def register(server: CudaServer) -> None:
    def heard(job: Job, message: Listened) -> None:
        if job.state in (DONE, FAILED):
            _log(server, job)
            server.task(_told(server, job))

    server.jobs.subscribe(heard)


def _log(server: CudaServer, job: Job) -> None:
    """The details, where a user who wants them looks."""
    more = job.ended.lines if job.ended and job.kind != "code" else ()
    lines = [f"{job.id} {job.kind} {job.kernel}: {job.message}", *more]
    server.window_log_message(types.LogMessageParams(types.MessageType.Info, "\n  ".join(lines)))
    if job.ended and job.ended.detail:
        log.error("%s", job.ended.detail)


async def _told(server: CudaServer, job: Job) -> None:
    trouble = f". {job.ended.trouble}" if job.ended and job.ended.trouble else ""
    job = evolve(job, message=f"{job.message}{trouble}")
    if job.state == DONE and job.kind == "code":
        return  # it is shown as a document
    if job.state == DONE and job.kind == fixing.KIND:
        await fixing.finish(server, job)
    elif job.state == FAILED or job.ended is None:
        server.say(f"{job.kernel}: {job.message}", types.MessageType.Error)
    elif job.kind in KINDS:
        await _proposed(server, job, trouble)
    elif job.kind == "suggest" and job.ended.ideas:
        await _suggested(server, job)
    elif job.kind == "describe" and job.ended.directive:
        await write_directive(server, job)
    else:
        bad = job.ended.reason in _BAD
        server.say(job.message, types.MessageType.Warning if bad else types.MessageType.Info)


async def _proposed(server: CudaServer, job: Job, trouble: str) -> None:
    again = [f"{old.title}{f' ({old.note})' if old.note else ''}" for _, old in server.proposals.repeated(job)]
    left_out = f"; found again and not shown, as you rejected it: {', '.join(again)}" if again else ""
    fresh = [proposal for proposal in server.proposals.all(job.uri) if proposal.job == job.id]
    if not fresh:
        assert job.ended is not None
        text = f"{job.kernel}: {job.message if job.ended.message else job.ended.reason + trouble}{left_out}"
        bad = job.ended.reason in _BAD
        server.say(text, types.MessageType.Warning if bad else types.MessageType.Info)
        return
    first = fresh[0]
    more = f" ({len(fresh)} proposals)" if len(fresh) > 1 else ""
    text = f"{job.kernel}: {first.named}: {summary(first)}{more}"
    note = f"; {first.note}" if first.note else ""

    def review() -> None:
        found = review_of(server, first.id)
        if found is None:
            server.say("this proposal is gone: a newer one replaced it")
        else:
            show_review(server, found)

    async def accept() -> None:
        applied = await server.proposals.accept(first.id)
        if not applied.ok:
            server.say(applied.message)

    async def dismiss() -> None:
        return None

    async def reviewed() -> None:
        review()

    if job.options.apply and not first.by_hand:
        applied = await server.proposals.accept(first.id)
        server.say(f"applied to {text}{note}{left_out}{trouble}" if applied.ok else applied.message)
        return

    # what has to be applied by hand is not offered for acceptance
    answers: dict[str, Callable[[], Awaitable[None]]] = {"Review": reviewed, "Accept": accept, "Later": dismiss}
    if first.by_hand:
        del answers["Accept"]
    by_hand = f"; to be applied by hand: {first.by_hand}" if first.by_hand else ""
    await choose(server, text + by_hand + note + left_out + trouble, answers)


async def _suggested(server: CudaServer, job: Job) -> None:
    assert job.ended is not None

    def trying(idea: Idea) -> Callable[[], Awaitable[None]]:
        async def attempt() -> None:
            snapshot = server.session.snapshot(job.uri)
            kind, options = _attempt(idea, job.options)
            try:
                if snapshot is None:
                    raise JobRefused("the document was closed")
                start_job(server, kind, snapshot, job.kernel, options)
            except JobRefused as problem:
                server.say(str(problem))

        return attempt

    await choose(server, job.message, {f"Try {idea.name}": trying(idea) for idea in job.ended.ideas[:3]})


def _attempt(idea: Idea, asked: Options) -> tuple[str, Options]:
    """The job that tries an idea. A model does not say the same thing twice: its idea is tried in its own words."""
    if idea.source == "catalog":
        return "optimize", Options(scope=asked.scope, only=(idea.name,))
    return "idea", Options(scope=asked.scope, idea=f"{idea.title}: {idea.why}", suggested=True)
