"""The edit behind "Write the workload above it", made when it is wanted and only on the text it was offered on."""

from __future__ import annotations

import asyncio

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException

from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Session, Snapshot

_REQUEST_FAILED = -32803


def register(server: CudaServer) -> None:
    if not server.session.client.resolves_edits:
        return

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        if action.data is None:
            return action
        wanted = protocol.read_reference(action.data)
        snapshot, kernel = protocol.find_kernel(server.session, wanted)
        if snapshot.version != wanted.version:
            raise JsonRpcContentModified("the document changed since this was offered; ask again")
        text = await asyncio.to_thread(directive, snapshot.document, kernel)
        if server.session.snapshot(snapshot.uri) is not snapshot:
            raise JsonRpcContentModified("the document changed meanwhile; ask again")
        action.edit = insertion(server.session, snapshot, kernel.span.start, text)
        return action


def directive(document: Document, kernel: Kernel) -> str:
    """The comment that states the kernel's workload. Raises JsonRpcException with what is missing."""
    from agent.workload.directive import format_directive
    from agent.workload.errors import NoWorkload, WorkloadError
    from agent.workload.find import find_workload

    try:
        return format_directive(find_workload(document, kernel))
    except NoWorkload as error:
        if error.draft:
            return error.draft.rstrip("\n") + "\n"
        raise JsonRpcException(str(error), _REQUEST_FAILED) from error
    except WorkloadError as error:
        raise JsonRpcException(str(error), _REQUEST_FAILED) from error


def insertion(session: Session, snapshot: Snapshot, offset: int, text: str) -> types.WorkspaceEdit:
    """``text`` on lines of its own above the line of ``offset``, with its indentation and the file's line ends."""
    start = snapshot.text.rfind(b"\n", 0, offset) + 1
    line = snapshot.text[start:offset]
    indent = line[: len(line) - len(line.lstrip())].decode()
    end = "\r\n" if b"\r\n" in snapshot.text else "\n"
    written = "".join(f"{indent}{piece}{end}" for piece in text.splitlines())
    at = snapshot.lines.position_of(start)
    edit = types.TextEdit(types.Range(at, at), written)
    if session.client.versioned_edits:
        document = types.OptionalVersionedTextDocumentIdentifier(snapshot.uri, snapshot.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [edit])])
    return types.WorkspaceEdit(changes={snapshot.uri: [edit]})
