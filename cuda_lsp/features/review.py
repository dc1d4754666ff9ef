"""Reviewing, accepting and rejecting proposals."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from cuda_lsp import protocol
from cuda_lsp.reviewing import best, review_of, show_review
from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    @server.command(protocol.REVIEW)
    def review(*arguments: Any) -> dict[str, Any] | None:
        """Of a proposal by its id, or the best one of a kernel."""
        identifier = _identifier(server, arguments)
        found = review_of(server, identifier) if identifier else None
        if found is None:
            server.say("there is no such proposal any more" if identifier else "there is nothing to review here")
        elif not server.session.client.reviews:
            show_review(server, found)
        return found

    @server.command(protocol.ACCEPT)
    async def accept(*arguments: Any) -> bool:
        """True where the document now is exactly what was promised."""
        identifier = _identifier(server, arguments)
        applied = await server.proposals.accept(identifier)
        if not applied.ok:
            server.say(applied.message)
        return applied.ok

    @server.command(protocol.REJECT)
    def reject(*arguments: Any) -> bool:
        """With a reason in words, if the user gave one. Writes nothing."""
        reason = arguments[1] if len(arguments) > 1 else ""
        if not isinstance(reason, str):
            raise JsonRpcInvalidParams("the reason is a text")
        rejected = server.proposals.reject(_identifier(server, arguments[:1]), reason)
        if not rejected.ok:
            server.say(rejected.message, types.MessageType.Info)
        return rejected.ok


def _identifier(server: CudaServer, arguments: tuple[Any, ...]) -> str:
    """From an id, or a kernel's best proposal; empty where the kernel has none. Raises JsonRpcInvalidParams."""
    if len(arguments) != 1:
        raise JsonRpcInvalidParams("expected the id of a proposal, or a kernel")
    if isinstance(arguments[0], str):
        return arguments[0]
    wanted = protocol.read_reference(arguments[0])
    found = best(server.proposals.all(wanted.uri), wanted.kernel)
    return found.id if found else ""
