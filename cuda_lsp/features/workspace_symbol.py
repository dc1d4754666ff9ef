"""Kernels, device functions and device variables of the workspace by a part of their name."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import SYMBOLS, Question
from cuda_lsp.indexing.shown import asked, symbol
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.WORKSPACE_SYMBOL)
    @begun_at_once
    def workspace_symbol(params: types.WorkspaceSymbolParams) -> asyncio.Future[list[types.SymbolInformation] | None]:
        return asked(server, Question(SYMBOLS, server.session.client.encoding, query=params.query), symbol)
