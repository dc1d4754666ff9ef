"""The command behind the first lens: what is known about a kernel, as a message."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from cuda_lsp import protocol, words
from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    @server.command(protocol.SHOW_KERNEL)
    def show_kernel(*arguments: Any) -> None:
        snapshot, kernel = protocol.find_kernel(server.session, protocol.read_arguments(arguments))
        server.facts.want(snapshot, kernel)
        known = words.at_length(snapshot.document, kernel, server.facts.of(snapshot, kernel))
        server.say("\n".join((words.signature(snapshot.document, kernel), *known)), types.MessageType.Info)
