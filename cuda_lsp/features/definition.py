"""From a launch to its kernel, from a call on the device to the function, from a copy to a device variable to its
declaration: across the files of the workspace, all candidates."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import DEFINITION
from cuda_lsp.indexing.shown import asked_at, location
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    @begun_at_once
    def definition(params: types.DefinitionParams) -> asyncio.Future[list[types.Location] | None]:
        return asked_at(server, DEFINITION, params, location)
