"""Progress of a job in the client's display, by whichever token there is."""

import asyncio
from typing import Any

import pytest
from attrs import evolve

from agent.source.document import parse
from cuda_lsp.client import Client
from cuda_lsp.features.work_done_progress import Progress
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import CANCELLED, DONE, RUNNING
from cuda_lsp.server import CudaServer
from cuda_lsp.worker.asked import Options

JOB = Job("job-1", "optimize", "file:///a.cu", 1, "scale", Options(), parse(b""))


class Wire:
    """What was sent, and how the client answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: CudaServer, refuses: bool = False) -> None:
        self.sent: list[tuple[str | int, Any]] = []
        self.asked: list[Any] = []
        self.answered = asyncio.Event()

        async def request(method: str, params: Any) -> None:
            self.asked.append((method, params))
            await self.answered.wait()
            if refuses:
                raise RuntimeError("no progress here")

        monkeypatch.setattr(server.protocol, "notify", lambda method, p: self.sent.append((p.token, p.value)))
        monkeypatch.setattr(server.protocol, "send_request_async", request)

    @property
    def kinds(self) -> list[str]:
        return [value.kind for _, value in self.sent]


def made(monkeypatch: pytest.MonkeyPatch, **can: bool) -> tuple[Progress, Wire]:
    server = CudaServer()
    server.session.client = Client(**can)  # type: ignore[arg-type]
    return Progress(server), Wire(monkeypatch, server, can.get("asks", False))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_server_creates_a_token_and_tells_each_stage_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        progress, wire = made(monkeypatch, progress=True)
        progress.heard(JOB, None)
        await settle()
        assert wire.sent == [], "nothing is sent on a token that the client has not agreed to"
        progress.server.jobs._jobs[JOB.id] = evolve(JOB, state=RUNNING, stage="compile")
        wire.answered.set()
        await settle()
        for stage, done, total in (("compile", 0, 0), ("gates", 1, 8), ("gates", 1, 8)):
            progress.heard(evolve(JOB, state=RUNNING, stage=stage, done=done, total=total), None)
        progress.heard(evolve(JOB, state=DONE), None)
        assert wire.kinds == ["begin", "report", "end"]
        begin, report, end = (value for _, value in wire.sent)
        assert begin.cancellable and begin.percentage is None and begin.message == "compile"
        assert (report.message, report.percentage) == ("gates", 12)
        assert end.message == DONE
        assert not progress.tokens and not progress.jobs and not progress.said

    asyncio.run(scenario())


def test_a_job_that_ended_before_the_token_came_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        progress, wire = made(monkeypatch, progress=True)
        progress.heard(JOB, None)
        await settle()
        over = evolve(JOB, state=CANCELLED)
        progress.server.jobs._jobs[JOB.id] = over
        progress.heard(over, None)
        wire.answered.set()
        await settle()
        assert wire.kinds == ["begin", "end"] and not progress.tokens

    asyncio.run(scenario())


def test_a_client_that_refuses_the_token_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        progress, wire = made(monkeypatch, progress=True, asks=True)
        progress.heard(JOB, None)
        wire.answered.set()
        await settle()
        progress.heard(evolve(JOB, state=DONE), None)
        assert wire.sent == [] and not progress.jobs

    asyncio.run(scenario())


def test_the_token_of_the_command_is_used_where_the_server_may_create_none(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, wire = made(monkeypatch)
    progress.server.protocol.work_done_token = "mine"
    progress.heard(JOB, None)
    other = evolve(JOB, id="job-2", kernel="shift")
    progress.heard(other, None)
    progress.heard(evolve(JOB, state=DONE), None)
    assert [(token, value.kind) for token, value in wire.sent] == [("mine", "begin"), ("mine", "end")]
    assert wire.asked == []


def test_without_any_token_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, wire = made(monkeypatch)
    progress.heard(JOB, None)
    progress.heard(evolve(JOB, state=DONE), None)
    assert wire.sent == [] and wire.asked == []
