"""The commands behind quick fixes: prove a mechanical change, and write it once it is proved."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.features.execute_command import start_job
from cuda_lsp.fixing import KIND, careful, change_of, is_provable, safe_change
from cuda_lsp.jobs import JobRefused
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot
from cuda_lsp.worker.asked import Change, Options

SECONDS = 60.0


def register(server: CudaServer) -> None:
    if not server.session.client.applies_edits:
        return  # nothing could be written

    @server.command(protocol.FIX)
    def fix(*arguments: Any) -> str | None:
        """Of one finding, told by its rule and where it begins in its kernel. The id of a job, or null."""
        if len(arguments) != 2:
            raise JsonRpcInvalidParams("expected a kernel, and which finding as {rule, start}")
        wanted, which = protocol.read_reference(arguments[0]), _which(arguments[1])
        try:
            snapshot, kernel = protocol.find_kernel(server.session, wanted)
            return _start(server, snapshot, kernel, _change(server, snapshot, kernel, which))
        except (JsonRpcContentModified, JobRefused) as problem:
            server.say(str(problem))
            return None

    @server.command(protocol.FIX_ALL)
    def fix_all(*arguments: Any) -> list[str]:
        """Of every kernel of a document the changes that anybody would make. The ids of the jobs, one a kernel."""
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise JsonRpcInvalidParams("expected the URI of a document")
        snapshot = server.session.snapshot(arguments[0])
        if snapshot is None:
            server.say(f"{arguments[0]} is not open")
            return []
        snapshot.read()
        changes = [(kernel, safe_change(server, snapshot, kernel)) for kernel in snapshot.document.kernels]
        if not any(change for _, change in changes):
            server.say("there is nothing to fix that anybody would fix the same way", types.MessageType.Info)
        started: list[str] = []
        problems: dict[str, None] = {}
        for kernel, change in changes:
            try:
                started += [_start(server, snapshot, kernel, change)] if change else []
            except JobRefused as problem:
                problems[str(problem)] = None
        for text in problems:
            server.say(text)
        return started


def _which(told: object) -> tuple[str, int]:
    if isinstance(told, dict) and isinstance(told.get("rule"), str) and type(told.get("start")) is int:
        return told["rule"], told["start"]
    raise JsonRpcInvalidParams("expected which finding as {rule, start}, as quick fixes carry it")


def _change(server: CudaServer, snapshot: Snapshot, kernel: Kernel, which: tuple[str, int]) -> Change:
    rule, start = which
    for finding in careful(server, snapshot, kernel):
        if (finding.rule, finding.span.start - kernel.span.start) == (rule, start) and is_provable(kernel, finding):
            assert finding.repair is not None
            return change_of(finding.repair.title, finding.repair.edits)
    raise JobRefused(f"{kernel.name} has no such finding any more; ask again")


def _start(server: CudaServer, snapshot: Snapshot, kernel: Kernel, change: Change) -> str:
    snapshot.read()
    if snapshot.document.kernel(kernel.qualified_name).span != kernel.span:
        raise JobRefused(f"another kernel before it is called {kernel.name} too: a fix of this one cannot be tried")
    options = Options(seconds=SECONDS, device="emulator", change=change)
    return start_job(server, KIND, snapshot, kernel.qualified_name, options)
