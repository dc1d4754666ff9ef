"""After a pause in typing: does what the open proposals rest on still stand?"""

from __future__ import annotations

import asyncio

from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

PAUSE = 0.6


def register(server: CudaServer) -> None:
    timers: dict[str, asyncio.TimerHandle] = {}

    def changed(old: Snapshot | None, new: Snapshot | None) -> None:
        uri = (new or old).uri  # type: ignore[union-attr]
        if (timer := timers.pop(uri, None)) is not None:
            timer.cancel()
        if new is not None and server.proposals.waiting(uri):
            timers[uri] = asyncio.get_running_loop().call_later(PAUSE, check, uri)

    def check(uri: str) -> None:
        timers.pop(uri, None)
        server.proposals.check(uri)

    server.session.subscribe(changed)
    server.proposals.subscribe(lambda uri: server.refresh())
