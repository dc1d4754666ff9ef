"""The command behind "3 hints": go to the first, or list them where the client cannot be sent anywhere."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from cuda_lsp import protocol
from cuda_lsp.server import CudaServer
from cuda_lsp.upheld import upheld


def register(server: CudaServer) -> None:
    @server.command(protocol.SHOW_HINTS)
    def show_hints(*arguments: Any) -> None:
        snapshot, kernel = protocol.find_kernel(server.session, protocol.read_arguments(arguments))
        found = upheld(server, snapshot, kernel, server.hints.of(snapshot, kernel))
        lines = [f"line {snapshot.document.line(hint.span.start)}: {hint.message}" for hint in found]
        server.say("\n".join(lines) or f"no hints on {kernel.name}", types.MessageType.Info)
        if found and server.session.client.shows_documents:
            where = snapshot.lines.range_of(found[0].span)
            server.window_show_document(
                types.ShowDocumentParams(snapshot.uri, external=False, take_focus=True, selection=where)
            )
