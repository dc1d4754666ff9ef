"""Who launches a kernel, and who calls a function of the device."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import INCOMING, Item, Question
from cuda_lsp.indexing.shown import asked, callee, place_of, range_of
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)
    @begun_at_once
    def incoming(
        params: types.CallHierarchyIncomingCallsParams,
    ) -> asyncio.Future[list[types.CallHierarchyIncomingCall] | None]:
        question = Question(INCOMING, server.session.client.encoding, place=place_of(params.item))
        return asked(server, question, _call)


def _call(item: Item) -> types.CallHierarchyIncomingCall:
    return types.CallHierarchyIncomingCall(callee(item), [range_of(one) for one in item.ranges])
