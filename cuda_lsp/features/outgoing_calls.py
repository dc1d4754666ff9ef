"""What a function launches and, on the device, calls."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from cuda_lsp.indexing.messages import OUTGOING, Item, Question
from cuda_lsp.indexing.shown import asked, callee, place_of, range_of
from cuda_lsp.server import CudaServer
from cuda_lsp.transport import begun_at_once


def register(server: CudaServer) -> None:
    @server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
    @begun_at_once
    def outgoing(
        params: types.CallHierarchyOutgoingCallsParams,
    ) -> asyncio.Future[list[types.CallHierarchyOutgoingCall] | None]:
        question = Question(OUTGOING, server.session.client.encoding, place=place_of(params.item))
        return asked(server, question, _call)


def _call(item: Item) -> types.CallHierarchyOutgoingCall:
    return types.CallHierarchyOutgoingCall(callee(item), [range_of(one) for one in item.ranges])
