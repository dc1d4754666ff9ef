"""What a call hierarchy begins with: a kernel, a function of the device, or a function of the host that launches."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import PREPARE
from cuda_lsp.indexing.shown import asked_at, callee
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    @begun_at_once
    def prepare(params: types.CallHierarchyPrepareParams) -> asyncio.Future[list[types.CallHierarchyItem] | None]:
        return asked_at(server, PREPARE, params, callee)
