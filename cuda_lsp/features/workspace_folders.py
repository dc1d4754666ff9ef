"""The folders of the workspace; there may be several, or none."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_workspace_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        folders = server.session.folders
        for folder in params.event.removed:
            folders.pop(folder.uri, None)
        folders.update({folder.uri: folder.name for folder in params.event.added})
        server.index.changed()
