"""After a save, other files may read differently: a header that was saved is part of the kernels that include it."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.look_again()
        if not server.session.client.watches_files:
            server.index.changed()
