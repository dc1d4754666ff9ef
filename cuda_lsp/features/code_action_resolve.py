"""The edit behind an action, made when it is wanted and only on the text that it was offered on."""

from __future__ import annotations

import asyncio

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException

from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.applying import workspace_edit
from cuda_lsp.describing import insertion
from cuda_lsp.quick_fixes import fix_edit
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

_REQUEST_FAILED = -32803


def register(server: CudaServer) -> None:
    if not server.session.client.resolves_edits:
        return

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        if action.disabled is not None:
            # an editor that does not mark what is disabled lets it be chosen all the same
            raise JsonRpcException(action.disabled.reason, _REQUEST_FAILED)
        if action.data is None:
            return action
        wanted = protocol.read_reference(action.data)
        snapshot, kernel = protocol.find_kernel(server.session, wanted)
        if snapshot.version != wanted.version:
            raise JsonRpcContentModified("the document changed since this was offered; ask again")
        if isinstance(action.data, dict) and "fix" in action.data:
            action.edit = fix_edit(server, snapshot, kernel, action.data)
        else:
            action.edit = await _described(server, snapshot, kernel)
        if action.edit is None:
            raise JsonRpcException("there is no place for this in the text as it is", _REQUEST_FAILED)
        return action


async def _described(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> types.WorkspaceEdit | None:
    text = await asyncio.to_thread(directive, snapshot.document, kernel)
    if server.session.snapshot(snapshot.uri) is not snapshot:
        raise JsonRpcContentModified("the document changed meanwhile; ask again")
    edit = insertion(snapshot.document, kernel, text)
    return workspace_edit(server.session, snapshot, [edit]) if edit else None


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
