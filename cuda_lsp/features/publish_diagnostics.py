"""Diagnostics for clients that do not ask for them: sent after each change, with the version they are about, and again
when they differ from what was sent for that version."""

from __future__ import annotations

import asyncio
import json

from lsprotocol import types

from cuda_lsp.diagnostics import written
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    if server.session.client.pulls_diagnostics:
        return
    waiting: set[str] = set()
    sent: dict[str, tuple[int, str]] = {}

    def publish(uri: str) -> None:
        waiting.discard(uri)
        snapshot = server.session.snapshot(uri)
        if snapshot is None:
            return
        # a client may drop those of an older version, so that each version is answered, also where nothing else changed
        found = snapshot.version, written(server, snapshot)
        if sent.get(uri) != found:
            sent[uri] = found
            head = f'"uri": {json.dumps(uri)}, "version": {snapshot.version}'
            server.protocol.notify_written(
                types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, f'{{{head}, "diagnostics": {found[1]}}}'
            )

    def soon(uri: str) -> None:
        """After the message at hand; several changes in a row are answered once."""
        if uri not in waiting:
            waiting.add(uri)
            asyncio.get_running_loop().call_soon(publish, uri)

    def on_change(old: Snapshot | None, new: Snapshot | None) -> None:
        if new is not None:
            soon(new.uri)
        elif old is not None:
            sent.pop(old.uri, None)
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(old.uri, []))

    server.session.subscribe(on_change)

    def again() -> None:
        for snapshot in server.session.snapshots():
            soon(snapshot.uri)

    server.at_refresh(again)
