"""Where a kernel is launched or given to the runtime, a device function called, a device variable used."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import REFERENCES
from cuda_lsp.indexing.shown import asked_at, location
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    @begun_at_once
    def references(params: types.ReferenceParams) -> asyncio.Future[list[types.Location] | None]:
        return asked_at(server, REFERENCES, params, location, declarations=params.context.include_declaration)
