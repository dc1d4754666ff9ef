"""Questions to the user, with buttons: those that a held job waits for, and what to do with how one ended."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from cuda_lsp.jobs import Job

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

log = logging.getLogger(__name__)

ALWAYS, NEVER = "Always in this project", "Never in this project"


async def put(server: CudaServer, job: Job, question: Sequence[str], answers: Sequence[str], waits: str) -> str:
    """The answer that the user chose, empty where he chose none; the job says meanwhile what it ``waits`` for. For
    clients that can ask."""
    server.jobs.waits(job.id, waits)
    items = [types.MessageActionItem(title) for title in answers]
    text = "\n".join(question)
    params = types.ShowMessageRequestParams(types.MessageType.Info, f"cuda-lsp: {text}", items)
    try:
        chosen = await server.window_show_message_request_async(params)
    except JsonRpcException as error:
        log.warning("the client asked nobody: %s", error)
        return ""
    return chosen.title if chosen else ""


async def choose(server: CudaServer, text: str, actions: dict[str, Callable[[], Awaitable[None]]]) -> None:
    """A message with buttons where the client has them, else without; what belongs to the one chosen is done."""
    if not server.session.client.asks:
        server.say(text, types.MessageType.Info)
        return
    items = [types.MessageActionItem(title) for title in actions]
    params = types.ShowMessageRequestParams(types.MessageType.Info, f"cuda-lsp: {text}", items)
    chosen = await server.window_show_message_request_async(params)
    if chosen is not None and chosen.title in actions:
        await actions[chosen.title]()
