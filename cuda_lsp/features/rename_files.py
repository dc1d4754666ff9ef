"""Files that get another name, or go: what belongs to them goes with them."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer

_FILES = types.FileOperationRegistrationOptions(
    [types.FileOperationFilter(types.FileOperationPattern("**/*.{cu,cuh}"), "file")]
)


def register(server: CudaServer) -> None:
    @server.feature(types.WORKSPACE_DID_RENAME_FILES, _FILES)
    def renamed(params: types.RenameFilesParams) -> None:
        for file in params.files:
            server.jobs.renamed(file.old_uri, file.new_uri)
            server.proposals.renamed(file.old_uri, file.new_uri)
        server.index.changed()

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, _FILES)
    def deleted(params: types.DeleteFilesParams) -> None:
        for file in params.files:
            server.jobs.leave(file.uri)
            server.proposals.deleted(file.uri)
        server.index.changed()
