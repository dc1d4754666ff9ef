"""A question that a held job waits for, put to the user with buttons."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
