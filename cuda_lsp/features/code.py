"""PTX and machine code of a kernel, as a document that is no file where the client can show one, else as a file."""

from __future__ import annotations

import logging
from collections import OrderedDict
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import platformdirs
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.uris import from_fs_path

from cuda_lsp import protocol
from cuda_lsp.features.execute_command import begin
from cuda_lsp.jobs import Job
from cuda_lsp.jobs.job import DONE, Listened
from cuda_lsp.server import CudaServer
from cuda_lsp.worker.asked import Options

log = logging.getLogger(__name__)

KIND = "code"
SCHEME = "cuda-lsp-code"
KEPT = 16
"""Listings that are remembered, and files that are kept; older ones go."""

_FORMS = ("ptx", "sass")


def register(server: CudaServer) -> None:
    client = server.session.client
    texts: OrderedDict[str, str] = OrderedDict()

    @server.command(protocol.SHOW_CODE)
    def show_code(*arguments: Any) -> str | None:
        """Of a kernel, as ``ptx`` or ``sass``. The id of a job, or null."""
        if len(arguments) != 2 or arguments[1] not in _FORMS:
            raise JsonRpcInvalidParams('expected a kernel, and "ptx" or "sass"')
        return begin(server, KIND, protocol.read_reference(arguments[0]), Options(seconds=60.0, code=arguments[1]))

    if client.shows_content:

        @server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
        def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
            gone = "// this listing is gone: ask for it again\n"
            return types.TextDocumentContentResult(texts.get(params.uri, gone))

        server.at_start(lambda: server.task(_announce(server)))

    def heard(job: Job, message: Listened) -> None:
        if job.kind == KIND and job.state == DONE and job.ended is not None:
            server.task(_show(server, job, texts))

    server.jobs.subscribe(heard)


async def _announce(server: CudaServer) -> None:
    options = types.TextDocumentContentRegistrationOptions([SCHEME])
    registration = types.Registration(SCHEME, types.WORKSPACE_TEXT_DOCUMENT_CONTENT, options)
    await server.client_register_capability_async(types.RegistrationParams([registration]))


async def _show(server: CudaServer, job: Job, texts: OrderedDict[str, str]) -> None:
    assert job.ended is not None
    text = "\n".join((*job.ended.lines, ""))
    name = f"{job.kernel.replace('::', '.')}.{job.options.code}"
    client = server.session.client
    if client.shows_content and client.shows_documents:
        uri = f"{SCHEME}:/{uuid4().hex[:8]}/{quote(name)}"
        texts[uri] = text
        while len(texts) > KEPT:
            texts.popitem(last=False)
    else:
        try:
            uri = from_fs_path(str(_written(name, text))) or ""
        except OSError as error:
            server.say(f"{job.kernel}: the listing cannot be written: {error}")
            return
    if client.shows_documents:
        shown = await server.window_show_document_async(types.ShowDocumentParams(uri, False, True))
        if shown.success:
            return
    server.say(f"{job.kernel}: its {job.options.code.upper()} is in {uri}", types.MessageType.Info)


def _written(name: str, text: str) -> Path:
    folder = Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "code"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*/*"), key=lambda file: file.stat().st_mtime)[: -KEPT + 1]:
        old.unlink(missing_ok=True)
    file = folder / uuid4().hex[:8] / name
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8", errors="replace")
    return file
